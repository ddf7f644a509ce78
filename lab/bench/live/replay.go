package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"pinwheel/internal/settings"
	"pinwheel/internal/tools/compare"
	"pinwheel/lab/replay"
	"pinwheel/verbs"
	"pinwheel/verbs/calibrate"
)

// replayed is what the simulation makes of the row's own record: on the recorded timeline, with the
// costs of registration that were measured on the device beside busy processors, and with the helpers' share of a core.
type replayed struct {
	CapturedAvg *float64 `json:"captured_avg,omitempty"`
	Late        float64  `json:"late_share"` // of the needs after the first
	// Costs are those of the device beside as many busy processors as the job had.
	Costs  verbs.Costs `json:"costs"`
	Failed string      `json:"failed,omitempty"`
}

// worthReplaying: below it there is nothing to capture.
const worthReplaying = 0.1

// replayOnce records the row's job and replays the record, if there is something to save and it has not been done. The
// microbenchmarks of papers are made up for replays (package lab/replay/micro).
func (m *measurement) replayOnce(r row) error {
	runs, _, done := m.state.of(m.key(r))
	if done != nil && done.Failed == "" || m.limits.Over(m.ctx) != "" || slices.Contains(paperRows, r) {
		return nil
	}
	if s, ok := compare.Summarize(runs); !ok || s.Savable < worthReplaying {
		return nil
	}
	result, err := m.replay(r)
	if err != nil {
		result.Failed = err.Error()
		say("FAILED   %s: %v", r, err)
	} else if result.CapturedAvg != nil {
		say("%-36s replay of its record: captured_avg %.2f", r, *result.CapturedAvg)
	}
	return m.state.Add(line{key: m.key(r), Replay: &result})
}

func (m *measurement) replay(r row) (result replayed, err error) {
	costs, err := m.calibration(r)
	if err != nil {
		return result, err
	}
	dir := filepath.Join(m.Out, "trace")
	if err := os.RemoveAll(dir); err != nil {
		return result, err
	}
	defer os.RemoveAll(dir) // the next record removes what is left
	request := m.jobs[r].Request
	merged := filepath.Join(dir, "all.pwt")
	args := append([]string{"record", "--out", filepath.Join(dir, "%r.pwt"), "--merged", merged, "--"}, request.Command...)
	if _, err := m.command(request.Environ, "pinwheel", args...); err != nil {
		return result, err
	}
	options := []string{"compare", "--json", "--timeline", "recorded", "--costs", costs,
		"--policy", "leave-pinned,pinwheel,oracle"}
	if !r.idle { // every processor has a rank, so the helpers of the job had their share of one
		options = append(options, "--helper-share", settings.FormatShare(settings.Default().Cost))
	}
	out, err := m.command(os.Environ(), "nasreplay", append(options, merged)...)
	if err != nil {
		return result, err
	}
	if result, err = pick(out); err != nil {
		return result, err
	}
	c, err := calibrate.Load(costs)
	if err == nil {
		result.Costs = c.Costs()
	}
	return result, err
}

// pick finds the line of Pinwheel and all ranks among the results of a replay.
func pick(out []byte) (result replayed, err error) {
	in := json.NewDecoder(bytes.NewReader(out))
	for {
		var res replay.Result
		if err := in.Decode(&res); errors.Is(err, io.EOF) {
			return result, errors.New("the replay has no line of Pinwheel and all ranks")
		} else if err != nil {
			return result, err
		}
		if res.Policy == replay.Pinwheel && res.Rank == replay.AllRanks {
			result.CapturedAvg = res.CapturedAvg
			result.Late = res.LateShare()
			return result, nil
		}
	}
}

// calibration returns the file with the costs of registration on the row's device while as many other processors are
// busy as the job has. It is measured once for all such rows.
func (m *measurement) calibration(r row) (string, error) {
	busy, name, settings := min(r.ranks, runtime.NumCPU())-1, "costs", []string(nil)
	if r.slow {
		name, settings = "costs.slow", slowDevice()
	}
	path := filepath.Join(m.Out, fmt.Sprintf("%s.%s.%d.json", name, m.state.Head.Build, busy))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	device := string(m.device)
	environ := slices.Concat(os.Environ(), settings,
		[]string{"LD_LIBRARY_PATH=" + filepath.Join(device, "lib"), "SYSFS_PATH=" + filepath.Join(device, "sys")})
	_, err := m.command(environ, "nasreplay", "calibrate", "--provider", "rdma", "--max-size", "32M",
		"--between", "64M", "--beside", fmt.Sprint(busy), // the jobs compute between two exchanges, on all processors
		"--rounds", "29", "--out", path)
	if err != nil {
		return "", fmt.Errorf("costs of the device: %w", err)
	}
	return path, nil
}
