package perturb

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay"
	"pinwheel/schedule"
	"pinwheel/trace"
)

// read returns all records of a rank.
func read(t *testing.T, j replay.Job, rank int) (all []trace.Record) {
	t.Helper()
	s, err := j.Rank(rank)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var r trace.Record
		if err := s.Next(&r); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func run(t *testing.T, name string) replay.Job {
	t.Helper()
	f, err := trace.Open("../../../results/traces/" + name + ".pwt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return replay.RunOf(f)
}

// computing is the processor time between the calls of some records, and how many calls there are.
func computing(rs []trace.Record) (ns float64, calls int) {
	for i := range rs {
		if i > 0 && !replay.SameCall(&rs[i-1], &rs[i]) {
			ns += float64(rs[i].StartCPUNs - rs[i-1].EndCPUNs)
			calls++
		}
	}
	return ns, calls
}

func TestOnlyTimesChangeAndByAsMuchAsTheKindSays(t *testing.T) {
	job := run(t, "bt.B.4")
	recorded := read(t, job, 1)
	_, callsWere := computing(recorded)
	middle := slices.IndexFunc(recorded, func(r trace.Record) bool { return r.StartNs >= recorded[len(recorded)-1].EndNs/2 })
	firstWas, _ := computing(recorded[:middle])
	secondWas, _ := computing(recorded[middle:])
	for _, tc := range []struct {
		kind          Kind
		first, second float64 // how much longer the halves become
	}{{Noise5, 1, 1}, {Noise20, 1, 1}, {Halve, 1, 0.5}, {Double, 1, 2}, {Drift, 1.25, 1.75}} {
		changed := read(t, New(job, tc.kind, 1), 1)
		if len(changed) != len(recorded) {
			t.Fatalf("%s: %d records, want %d", tc.kind, len(changed), len(recorded))
		}
		same := true
		for i, r := range changed {
			w := recorded[i]
			if r.EndNs-r.StartNs != w.EndNs-w.StartNs || r.EndCPUNs-r.StartCPUNs != w.EndCPUNs-w.StartCPUNs {
				t.Fatalf("%s: the call of record %d has another length", tc.kind, i)
			}
			same = same && r.StartCPUNs == w.StartCPUNs
			r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs = w.StartNs, w.EndNs, w.StartCPUNs, w.EndCPUNs
			if r != w {
				t.Fatalf("%s: record %d is %+v, was %+v", tc.kind, i, r, w)
			}
		}
		first, _ := computing(changed[:middle])
		second, _ := computing(changed[middle:])
		_, calls := computing(changed)
		if same || calls != callsWere || math.Abs(first/firstWas-tc.first) > 0.06 || math.Abs(second/secondWas-tc.second) > 0.06 {
			t.Errorf("%s: the halves compute %.3f and %.3f times as long, in %d calls of %d", tc.kind, first/firstWas, second/secondWas, calls, callsWere)
		}
	}
}

func TestTheSameSeedGivesTheSameRecords(t *testing.T) {
	job := run(t, "ft.B.4")
	for name, make := range map[string]func(seed uint64) replay.Job{
		"noise":    func(seed uint64) replay.Job { return New(job, Noise20, seed) },
		"random":   Random,
		"drifting": Drifting,
	} {
		a := read(t, make(7), 2)
		if !slices.Equal(a, read(t, make(7), 2)) {
			t.Errorf("%s: two runs with one seed differ", name)
		}
		if slices.Equal(a, read(t, make(8), 2)) {
			t.Errorf("%s: another seed changes nothing", name)
		}
	}
}

func TestMadeUpTrafficCanBeReplayed(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	for _, job := range []replay.Job{Random(1), Drifting(1)} {
		rs, err := replay.CompareJob(t.Context(), replay.Options{Policies: []string{replay.LeavePinned, replay.Pinwheel}}, job)
		if err != nil {
			t.Fatal(err)
		}
		r := rs[len(rs)-1]
		if r.Needs != 2*2*pairs*exchangesEach || r.FirstRegs != 2*2*pairs*buffers || *r.Slowdown > 1+1.5*schedule.DefaultCost {
			t.Errorf("%s: %d needs, %d of them first, slowdown %.4f", job.Program(), r.Needs, r.FirstRegs, *r.Slowdown)
		}
	}
}

func TestDriftingBuffersMoveOn(t *testing.T) {
	rs := read(t, Drifting(1), 0)
	uses := 0 // in a row, at one call site
	for i := 2 * callSites; i < len(rs)-1; i += 2 {
		if rs[i].Stack != rs[i-2*callSites].Stack {
			t.Fatalf("record %d is not of the loop", i)
		}
		if rs[i].Addr == rs[i-2*callSites].Addr {
			uses++
		}
	}
	if share := float64(uses) / exchangesEach; share < 0.7 || share > 0.95 {
		t.Errorf("%.2f of the uses have the buffer of the iteration before", share)
	}
}
