package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/console"
	"pinwheel/internal/node"
	"pinwheel/internal/report"
)

// Source takes a look. It may be called from one goroutine at a time, or as its maker says.
type Source func() (Look, error)

// ErrNoJob is the error of a look at a job that is not there.
var ErrNoJob = errors.New("there is no such job on this node")

// Node returns a source of the jobs of this user on this node, of the processes at its broker, and of those that serve
// files; or of one job if that is not empty. It may be called concurrently. A node without jobs is no error, but the
// lack of the one that was asked for is ErrNoJob.
func Node(job string) Source {
	vmmc := &processes[broker.Process]{
		list: func(ctx context.Context) ([]broker.Process, error) { return broker.List(ctx, broker.Socket()) },
	}
	servers := &processes[files.ServerInfo]{list: files.Servers}
	return func() (Look, error) {
		jobs, err := node.Jobs()
		if err != nil {
			return Look{}, err
		}
		if job != "" {
			if !slices.Contains(jobs, job) {
				return Look{}, fmt.Errorf("%s: %w", job, ErrNoJob)
			}
			return lookAt([]string{job}), nil
		}
		l := lookAt(jobs)
		l.VMMC, l.Files = vmmc.look(), servers.look()
		for i := range l.Files {
			l.Files[i].Dir = console.Printable(l.Files[i].Dir)
		}
		return l, nil
	}
}

// lookAt looks at jobs. Those that have just ended are left out.
func lookAt(jobs []string) Look {
	l := Look{Time: time.Now(), Jobs: []Job{}}
	l.Host, _ = os.Hostname()
	for _, id := range jobs {
		j, err := jobOf(id, l.Time)
		switch {
		case errors.Is(err, node.ErrNone):
		case err != nil:
			l.Unreadable = append(l.Unreadable, Unreadable{id, err.Error()})
		case len(j.Ranks) > 0:
			l.Jobs = append(l.Jobs, j)
		}
	}
	l.tidy()
	return l
}

func jobOf(id string, now time.Time) (Job, error) {
	v, err := node.Open(id)
	if err != nil {
		return Job{}, err
	}
	defer v.Close()
	j := Job{ID: id}
	if budget, _ := v.BudgetBytes(); budget > 0 {
		j.BudgetBytes = &budget
	}
	nowBootNs := node.NowNs()
	for _, s := range v.Members() {
		if s.AtNs == 0 {
			continue // it has published nothing yet
		}
		r := rankOf(&s, j.BudgetBytes != nil)
		r.AgeSeconds = seconds(nowBootNs - s.AtNs)
		r.StartSeconds = math.Round(100*seconds(now.UnixNano()-nowBootNs+s.StartNs)) / 100 // StartNs has no more digits
		j.Ranks = append(j.Ranks, r)
	}
	return j, nil
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// rankOf converts what a rank has published.
func rankOf(s *node.State, budgeted bool) Rank {
	h := &s.Helper
	r := Rank{
		Rank: s.Rank, PID: s.PID, Manager: s.Instance, Program: s.Program, startNs: s.StartNs,
		RunSeconds:  seconds(s.AtNs - s.StartNs),
		PinnedBytes: s.PinnedBytes, PeakPinnedBytes: s.PeakBytes,
		Hits: s.Hits, FirstRegs: s.First, LateUses: s.Late, StallNs: s.StallNs,
		HelperRegs: h.Registers, HelperDeregs: h.Deregs,
		Helper: Helper{
			Running: h.Running, Parked: h.Parked, CPU: h.CPU, Shared: h.Shared,
			CPUNs: h.CPUNs, RegisterNs: h.ActionNs, Wakeups: h.Wakeups,
		},
		Cost: report.Cost(s.Cost), Within05: s.Within05, Within5: s.Within5,
	}
	r.Predictions = s.Predicted
	if budgeted {
		r.ShareBytes = &s.ShareBytes
	}
	if h.ShareLimit > 0 {
		r.Helper.ShareLimit = &h.ShareLimit
	}
	return r
}
