package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pinwheel/internal/node"
	"pinwheel/internal/report"
)

// join makes this process a rank of a job.
func join(t *testing.T, job string, rank int, budget int64) *node.Member {
	t.Helper()
	m, err := node.Join(node.Options{Job: job, Rank: rank, BudgetBytes: budget, Ranks: 2})
	if err != nil {
		t.Skipf("processes of a job can't find each other here: %v", err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestLookAtMembersOfThisProcess(t *testing.T) {
	job := fmt.Sprintf("test-look-%d", os.Getpid())
	second, first := join(t, job, 1, 1<<30), join(t, job, 0, 1<<30)
	source := Node(job)
	l, err := source()
	if err != nil || len(l.Jobs) != 0 {
		t.Errorf("members that have published nothing: %+v, %v", l, err)
	}
	s := node.State{
		PinnedBytes: 2, PeakBytes: 3, Hits: 4, First: 5, Late: 6, StallNs: 7, Predicted: 10, Within05: 2, Within5: 9,
		Helper: node.Helper{
			Running: true, CPU: 11, Parked: true, Shared: true, ShareLimit: 0.5, CPUNs: 12, ActionNs: 13,
			Wakeups: 14, Registers: 15, Deregs: 16,
		},
		Cost: node.Cost{Share: .005, AgainNs: 17, PriceNs: 18},
	}
	first.Publish(s)
	second.Publish(node.State{})
	if l, err = source(); err != nil || len(l.Jobs) != 1 || len(l.Jobs[0].Ranks) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	j := l.Jobs[0]
	r := j.Ranks[0]
	if j.ID != job || *j.BudgetBytes != 1<<30 || j.PinnedBytes != 2 || j.Ranks[1].Rank != 1 {
		t.Errorf("%+v", j)
	}
	limit := 0.5
	want := Rank{
		Rank: 0, PID: os.Getpid(), Manager: r.Manager, Program: filepath.Base(os.Args[0]), startNs: r.startNs,
		StartSeconds: r.StartSeconds, RunSeconds: r.RunSeconds, AgeSeconds: r.AgeSeconds, ShareBytes: r.ShareBytes,
		PinnedBytes: 2, PeakPinnedBytes: 3, Hits: 4, FirstRegs: 5, LateUses: 6, StallNs: 7, HelperRegs: 15, HelperDeregs: 16,
		Helper: Helper{Running: true, Parked: true, CPU: 11, Shared: true, ShareLimit: &limit, CPUNs: 12,
			RegisterNs: 13, Wakeups: 14},
		Cost:     report.Cost{Share: .005, AgainNs: 17, PriceNs: 18},
		Accuracy: report.Accuracy{Predictions: 10, Err05: 0.2, Err5: 0.9},
		Within05: 2, Within5: 9,
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	if r.ShareBytes == nil || *r.ShareBytes > 1<<29 {
		t.Errorf("share %v", r.ShareBytes)
	}
	start := time.Unix(0, int64(r.StartSeconds*1e9))
	if age := time.Since(start).Seconds(); age < 0 || age > 600 || r.RunSeconds < 0 || r.RunSeconds > age+1 ||
		r.AgeSeconds < 0 || r.AgeSeconds > age {
		t.Errorf("started %v, ran for %g s, %g s ago", start, r.RunSeconds, r.AgeSeconds)
	}
	var h History
	for hits := range int64(3) {
		time.Sleep(time.Millisecond) // a publication has a time of its own
		first.Publish(node.State{Hits: hits})
		l, _ = source()
		h.Add(l)
	}
	if n := len(h.tracks[identify(job, &l.Jobs[0].Ranks[0])]); n != 3 {
		t.Errorf("of three looks at a rank, its history has %d", n)
	}
	second.Close()
	first.Close()
	if _, err = source(); !errors.Is(err, ErrNoJob) {
		t.Errorf("a job that has ended: %v", err)
	}
}

func TestAllJobsAreFound(t *testing.T) {
	names := []string{fmt.Sprintf("test-b-%d", os.Getpid()), fmt.Sprintf("test-a-%d", os.Getpid())}
	for _, job := range names {
		join(t, job, -1, 0).Publish(node.State{PinnedBytes: 1})
	}
	l, err := Node("")()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for i, j := range l.Jobs { // others may have jobs here, too
		found[j.ID] = i + 1
	}
	if found[names[0]] == 0 || found[names[1]] == 0 || found[names[1]] > found[names[0]] {
		t.Errorf("%v", found)
	}
	if j := l.Jobs[found[names[0]]-1]; j.BudgetBytes != nil || j.Ranks[0].ShareBytes != nil || j.Ranks[0].Rank != -1 ||
		j.Ranks[0].Helper.ShareLimit != nil {
		t.Errorf("%+v", j)
	}
}
