package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pinwheel/internal/jobreport"
	"pinwheel/internal/launch"
)

// Job is what is run in every mode. It is a plain value.
type Job struct {
	// Request is for the job under Pinwheel. Its NoPinwheel and KeepCaches are the mode's.
	Request launch.Request
}

// Run is what one run took. Times are sums over all ranks.
type Run struct {
	Mode  Mode `json:"mode"`
	Round int  `json:"round"` // from 0
	Ranks int  `json:"ranks"`
	// Sampled is how many ranks were on this node; memory is theirs.
	Sampled        int     `json:"sampled_ranks"`
	AvgPinnedBytes float64 `json:"avg_pinned_bytes"` // from MPI_Init's return to MPI_Finalize
	PeakBytes      float64 `json:"peak_pinned_bytes"`
	Seconds        float64 `json:"run_s"` // likewise, of the slowest rank
	// CPUNs is the processor time of all threads from MPI_Init's return to MPI_Finalize, StartCPUNs before
	// that, and EndCPUNs after it.
	CPUNs      float64 `json:"cpu_ns"`
	UserNs     float64 `json:"user_ns"`
	SystemNs   float64 `json:"system_ns"`
	StartCPUNs float64 `json:"start_cpu_ns"`
	EndCPUNs   float64 `json:"end_cpu_ns"`
	Own        *Own    `json:"own,omitempty"` // with Pinwheel
	// Failed says in one line why the job failed; then all else may be missing.
	Failed string `json:"failed,omitempty"`
	Output string `json:"-"` // the end of what the job printed
}

// Own is what the ranks report of Pinwheel, added up; names are those of report.Rank.
type Own struct {
	Uses             float64 `json:"uses"`
	Hits             float64 `json:"hits"`
	First            float64 `json:"first_regs"`
	Late             float64 `json:"late_regs"`
	HelperRegs       float64 `json:"helper_regs"`
	HelperDeregs     float64 `json:"helper_deregs"`
	StallNs          float64 `json:"stall_ns"`
	PathNs           float64 `json:"path_ns"` // of all uses
	HelperCPUNs      float64 `json:"helper_cpu_ns"`
	ServerCPUNs      float64 `json:"server_cpu_ns"`
	RegisterNs       float64 `json:"register_ns"`
	HelperRegisterNs float64 `json:"helper_register_ns"`
	ParkedNs         float64 `json:"parked_ns"`
}

// Run runs the job once. An error says in one line why nothing can be compared; a job
// that fails is no error, but Run.Failed.
func (j Job) Run(m Mode, round int) (Run, error) {
	meter, err := findMeter(j.Request.Library)
	if err != nil {
		return Run{}, err
	}
	dir, err := jobreport.NewDir()
	if err != nil {
		return Run{}, err
	}
	defer dir.Remove() // what is left there is the next one's to sweep
	r := j.Request
	m.apply(&r)
	r.Tools = append(r.Tools[:len(r.Tools):len(r.Tools)], meter)
	r.Variables = append(r.Variables[:len(r.Variables):len(r.Variables)], meterVariable+"="+dir.Path())
	if m == Pinwheel {
		r.Settings = append(r.Settings[:len(r.Settings):len(r.Settings)], "PINWHEEL_STATS="+dir.Pattern())
	}
	p, err := launch.Make(r)
	if err != nil {
		return Run{}, err
	}
	if p.Plain != "" {
		return Run{}, errors.New(p.Plain)
	}
	run := Run{Mode: m, Round: round}
	return run, run.perform(p, dir.Path())
}

// perform starts the job, waits for its end, and fills in the run.
func (run *Run) perform(p launch.Plan, dir string) error {
	streams, err := openStreams()
	if err != nil {
		return err
	}
	defer streams.close()
	s := startSampler(dir)
	state, err := p.RunOn(streams.in, streams.out, streams.out)
	samples := s.end()
	if err != nil {
		return err
	}
	run.Output = streams.end()
	if !state.Success() {
		run.Failed = strings.Join(strings.Fields(state.String()+lastLine(run.Output)), " ")
		return nil
	}
	ranks, err := readMeter(dir, s.prefix)
	if err != nil {
		run.Failed = err.Error()
		return nil
	}
	run.add(ranks, samples)
	if run.Mode == Pinwheel {
		run.Own, err = readOwn(dir)
	}
	return err
}

// add adds up the ranks.
func (run *Run) add(ranks []meterFile, samples map[int][]sample) {
	for _, r := range ranks {
		run.Ranks++
		run.CPUNs += float64(r.Finalize.CPUNs - r.Init.CPUNs)
		run.UserNs += float64(r.Finalize.UserUs-r.Init.UserUs) * 1e3
		run.SystemNs += float64(r.Finalize.SystemUs-r.Init.SystemUs) * 1e3
		run.StartCPUNs += float64(r.Init.CPUNs)
		run.EndCPUNs += float64(r.End.CPUNs - r.Finalize.CPUNs)
		run.Seconds = max(run.Seconds, float64(r.Finalize.WallNs-r.Init.WallNs)/1e9)
		if seen := samples[r.PID]; r.local && len(seen) > 0 {
			avg, peak := mean(seen, r.Init.WallNs, r.Finalize.WallNs)
			run.Sampled++
			run.AvgPinnedBytes += avg
			run.PeakBytes += peak
		}
	}
}

// readOwn adds up what the ranks report. It returns nil if no rank does.
func readOwn(dir string) (*Own, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sum *Own
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if filepath.Ext(name) != ".json" || strings.HasPrefix(e.Name(), meterPrefix) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var r Own
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if sum == nil {
			sum = &Own{}
		}
		sum.add(r)
	}
	return sum, nil
}

func (o *Own) add(r Own) {
	o.PathNs += r.PathNs * r.Uses // a rank reports that of one use
	o.Uses += r.Uses
	o.Hits += r.Hits
	o.First += r.First
	o.Late += r.Late
	o.HelperRegs += r.HelperRegs
	o.HelperDeregs += r.HelperDeregs
	o.StallNs += r.StallNs
	o.HelperCPUNs += r.HelperCPUNs
	o.ServerCPUNs += r.ServerCPUNs
	o.RegisterNs += r.RegisterNs
	o.HelperRegisterNs += r.HelperRegisterNs
	o.ParkedNs += r.ParkedNs
}

// addedNs is the processor time that Pinwheel adds beside registrations, as it counts itself: its two threads
// without the registrations that they make, and the path of each use.
func (o *Own) addedNs() float64 {
	helper := o.HelperCPUNs - o.HelperRegisterNs
	server := o.ServerCPUNs - (o.RegisterNs - o.HelperRegisterNs)
	return max(helper, 0) + max(server, 0) + o.PathNs
}
