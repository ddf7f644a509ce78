package compare

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"pinwheel/internal/report"
	"pinwheel/internal/tools/jobreport"
	"pinwheel/internal/tools/launch"
)

// Job is what is run in each mode. It is a plain value.
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
	// LeastBytes is the least that each rank had pinned after its peak. Without a cache, that is what the
	// transport pins for itself, and what was never given back.
	LeastBytes float64 `json:"least_pinned_bytes"`
	Seconds    float64 `json:"run_s"` // likewise, of the slowest rank
	// CPUNs is the processor time of all threads from MPI_Init's return to MPI_Finalize, StartCPUNs before
	// that, and EndCPUNs after it.
	CPUNs      float64 `json:"cpu_ns"`
	UserNs     float64 `json:"user_ns"`
	SystemNs   float64 `json:"system_ns"`
	StartCPUNs float64 `json:"start_cpu_ns"`
	EndCPUNs   float64 `json:"end_cpu_ns"`
	// Own is what the ranks report of Pinwheel and its policies, added up, and Reasons is what keeps memory registered.
	Own     *report.Rank `json:"own,omitempty"`
	Reasons []string     `json:"reasons,omitempty"`
	// Failed says in one line why the job failed; then all else may be missing.
	Failed string `json:"failed,omitempty"`
	Output string `json:"-"` // the end of what the job printed
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
	r.Tools = append(slices.Clip(r.Tools), meter)
	r.Variables = append(slices.Clip(r.Variables), meterVariable+"="+dir.Path())
	if !r.NoPinwheel {
		r.Settings = append(slices.Clip(r.Settings), "PINWHEEL_STATS="+dir.Pattern())
	}
	p, err := launch.Make(r)
	if err != nil {
		return Run{}, err
	}
	if p.Plain != "" {
		return Run{}, errors.New(p.Plain)
	}
	run := Run{Mode: m, Round: round}
	if err = run.perform(p, dir); err == nil && run.Failed == "" && !r.NoPinwheel {
		err = run.readOwn(dir)
	}
	return run, err
}

// perform starts the job, waits for its end, and fills in the run.
func (run *Run) perform(p launch.Plan, dir jobreport.Dir) error {
	streams, err := openStreams()
	if err != nil {
		return err
	}
	defer streams.close()
	s := startSampler(dir.Path())
	state, err := p.RunOn(streams.in, streams.out, streams.out)
	samples := s.end()
	if err != nil {
		return err
	}
	run.Output = streams.end()
	if !state.Success() {
		run.Failed = strings.Join(strings.Fields(state.String()+lastLine(run.Output)+streams.full()), " ")
		return nil
	}
	ranks, err := readMeter(dir.Path(), s.prefix)
	if err != nil {
		run.Failed = err.Error()
		return nil
	}
	run.add(ranks, samples)
	return nil
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
			p := pinnedBetween(seen, r.Init.WallNs, r.Finalize.WallNs)
			run.Sampled++
			run.AvgPinnedBytes += p.mean
			run.PeakBytes += p.peak
			run.LeastBytes += p.least
		}
	}
}

// readOwn takes what the ranks report of Pinwheel.
func (run *Run) readOwn(dir jobreport.Dir) error {
	files, err := dir.Files()
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(name string) bool {
		return strings.HasPrefix(filepath.Base(name), meterPrefix)
	})
	job, err := jobreport.Read(files)
	if errors.Is(err, jobreport.ErrNone) {
		return nil
	}
	total := job.Total()
	run.Own, run.Reasons = &total, job.Reasons()
	return err
}
