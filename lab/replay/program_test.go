package replay

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay/replaytest"
)

// drawProgram makes a program that can't deadlock: every step is a message
// or a collective that all its ranks come to in the same order, and a rank
// waits for a request only after both sides of it have come up.
func drawProgram(t *rapid.T) string {
	n := rapid.IntRange(1, 4).Draw(t, "ranks")
	calls := make([][]string, n)
	open := make([][]int, n) // requests not waited for
	reqs := 0
	say := func(r int, format string, args ...any) { calls[r] = append(calls[r], fmt.Sprintf(format, args...)) }
	buffer := rapid.SampledFrom([]string{"a", "a+4K", "a+60K", "b", "b+8K", "c"})
	size := rapid.SampledFrom([]string{"8", "8K", "16K", "20K", "64K", "100K"})
	for range rapid.IntRange(0, 25).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0, 1, 2, 3, 4:
			src, dst := rapid.IntRange(0, n-1).Draw(t, "src"), rapid.IntRange(0, n-1).Draw(t, "dst")
			tag, bytes := rapid.IntRange(0, 2).Draw(t, "tag"), size.Draw(t, "bytes")
			reqs += 2
			say(src, "isend %d %s %s tag=%d req=%d", dst, bytes, buffer.Draw(t, "from"), tag, reqs-1)
			say(dst, "irecv %d 100K %s tag=%d req=%d", src, buffer.Draw(t, "to"), tag, reqs)
			open[src], open[dst] = append(open[src], reqs-1), append(open[dst], reqs)
		case 5, 6:
			r := rapid.IntRange(0, n-1).Draw(t, "waiting")
			if k := len(open[r]); k > 0 {
				take := rapid.IntRange(1, k).Draw(t, "requests")
				say(r, "wait %s", strings.Trim(fmt.Sprint(open[r][:take]), "[]"))
				open[r] = open[r][take:]
			}
		case 7:
			op := rapid.SampledFrom([]string{"barrier", "bcast 0 64K a", "allreduce 20K a b", "alltoall 128K a b", "alltoall 256K c a+4K"}).Draw(t, "collective")
			for r := range n {
				say(r, "%s", op)
			}
		default:
			say(rapid.IntRange(0, n-1).Draw(t, "computing"), "cpu %dus", rapid.IntRange(0, 200).Draw(t, "us"))
		}
	}
	for r := range n {
		if len(open[r]) > 0 {
			say(r, "wait %s", strings.Trim(fmt.Sprint(open[r]), "[]"))
		}
	}
	var b strings.Builder
	for r, c := range calls {
		fmt.Fprintf(&b, "%d: %s\n", r, strings.Join(c, "; "))
	}
	return b.String()
}

func TestEveryProgramThatCanEndEndsUnderEveryPolicy(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := replaytest.Trace(t, drawProgram(rt))
		o := Options{
			BudgetBytes: 128 << 10, BudgetHelped: rapid.Bool().Draw(rt, "budget for helpers"), PipelineBytes: 16 << 10,
			AlltoallPairwise: rapid.Bool().Draw(rt, "pairwise"),
			Timeline:         rapid.SampledFrom([]Timeline{Dedicated, Recorded}).Draw(rt, "timeline"),
		}
		rs, err := Compare(t.Context(), o, f)
		if err != nil {
			rt.Fatal(err)
		}
		n := f.Header().Ranks + 1
		for i, r := range rs {
			base := &rs[i%n] // leave-pinned is the first policy
			if r.Needs != base.Needs || r.TraceEvents != base.TraceEvents {
				rt.Errorf("%s, rank %d: %d needs in %d events, leave-pinned has %d in %d", r.Policy, r.Rank, r.Needs, r.TraceEvents, base.Needs, base.TraceEvents)
			}
			if r.Rank >= 0 && r.PeakPinnedBytes > o.BudgetOf(r.Policy) {
				rt.Errorf("%s pins %d bytes on rank %d, above its budget", r.Policy, r.PeakPinnedBytes, r.Rank)
			}
			if r.WastedRegs > r.HelperDeregs || r.HelperRegs+r.FirstRegs+r.LateRegs < r.HelperDeregs && r.Policy != Oracle {
				rt.Errorf("%s: %+v", r.Policy, r.Counts)
			}
		}
	})
}

// Calls without order or sense: a result or an error, never a panic or a hang.
func TestNonsenseIsAnErrorNotACrash(t *testing.T) {
	testwait.SkipUnderRace(t, "TestEveryProgramThatCanEndEndsUnderEveryPolicy has as many threads")
	rapid.Check(t, func(rt *rapid.T) {
		call := rapid.SampledFrom([]string{
			"send 0 64K a", "send 1 8K b tag=1", "recv any 64K a tag=any", "recv 0 64K c", "recv 1 8K a tag=1", "ssend 1 64K a", "isend 0 64K a req=1",
			"irecv any 64K b req=2", "wait 1", "wait 2", "wait 1 2", "barrier", "alltoall 64K a b", "alltoallv 0 64K a b 1 64K b c", "sendrecv 1 64K a 0 64K b",
			"bcast 1 64K a", "send none 64K a", "isend 1 64K a req=3", "free 3", "free 1", "barrier req=4", "wait 4", "wait 3 4", "sendrecv 1 64K a 0 64K b req=5",
			"wait 5", "put 1 64K a req=6", "get 0 64K a", "wait 6", "bsend 1 64K a", "probe 1", "scan 64K a b", "send out 64K a", "irecv out 64K a req=1", "leftout 1", "cpu 9us", "send 1 60T a", "alltoall 100T a b", "cut",
		})
		var b strings.Builder
		for r := range 2 {
			fmt.Fprintf(&b, "%d: %s\n", r, strings.Join(rapid.SliceOfN(call, 0, 8).Draw(rt, "calls"), "; "))
		}
		f, err := replaytest.TryTrace(t, b.String())
		if err != nil {
			return // the trace itself refuses it
		}
		rs, err := Compare(t.Context(), Options{}, f)
		if (err == nil) == (len(rs) == 0) {
			rt.Errorf("%d results, error %v", len(rs), err)
		}
	})
}

func TestPipelineAccountsForHugeBuffersInGroups(t *testing.T) {
	f := replaytest.Trace(t, "0: send 1 60T a; cpu 1s\n1: recv 0 60T b; cpu 1s")
	rs, err := Compare(t.Context(), Options{Policies: []string{Pipeline}}, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs[:2] {
		if r.FirstRegs != 60<<20 || r.PeakPinnedBytes != 60<<40 {
			t.Errorf("rank %d: %d registrations of 1 MiB, peak %d", r.Rank, r.FirstRegs, r.PeakPinnedBytes)
		}
	}
}
