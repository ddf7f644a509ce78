package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"pinwheel/lab/replay"
)

// RealFile is the file of real runs below the report: what
// nasreplay compare --mode real --json printed.
const RealFile = "real.jsonl"

// readReal reads the real runs; none if there is no such file.
func readReal(dir string) ([]replay.Result, error) {
	path := filepath.Join(dir, RealFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	var rs []replay.Result
	for dec := json.NewDecoder(f); ; {
		var r replay.Result
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return rs, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: result %d: %w", path, len(rs)+1, err)
		}
		if r.RealRun == nil {
			return nil, fmt.Errorf("%s: result %d is not of a real run", path, len(rs)+1)
		}
		rs = append(rs, r)
	}
}

// realRow is a policy on one rank of a trace in real time.
type realRow struct {
	Trace, Provider, Policy, Version                 string
	Rank, Pairs                                      int
	Scale                                            string
	Slowdown, From, To, AvgSaved, Late, Stall, VMPin string
}

func realRows(rs []replay.Result) []realRow {
	type key struct {
		trace, provider string
		rank            int
	}
	base := map[key]*replay.Result{}
	for i := range rs {
		if r := &rs[i]; r.Policy == replay.LeavePinned {
			base[key{r.Trace, r.Provider, r.Rank}] = r
		}
	}
	var rows []realRow
	for i := range rs {
		r := &rs[i]
		row := realRow{Trace: r.Trace, Provider: r.Provider, Policy: r.Policy, Version: r.Version, Rank: r.Rank, Pairs: r.Pairs, Scale: fmt.Sprintf("%g", r.Scale),
			Slowdown: Number(r.Slowdown, "%.4f"), From: fmt.Sprintf("%.4f", r.SlowdownMin), To: fmt.Sprintf("%.4f", r.SlowdownMax), AvgSaved: "-",
			Late: fmt.Sprintf("%.2f %%", 100*r.LateShare()), Stall: fmt.Sprintf("%.1f ms", float64(r.StallNs)/1e6),
			VMPin: fmt.Sprintf("%d pages in %d samples", r.VMDiffPages, r.VMSamples)}
		if r.Profile {
			row.Policy += ", with a profile"
		}
		if b := base[key{r.Trace, r.Provider, r.Rank}]; b != nil {
			row.AvgSaved = Percent(saved(b.AvgPinnedBytes, r.AvgPinnedBytes))
		}
		rows = append(rows, row)
	}
	return rows
}
