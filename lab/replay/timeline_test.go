package replay

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"pinwheel/internal/testwait"
	"pinwheel/internal/usage"
	"pinwheel/lab/replay/replaytest"
	"pinwheel/mem"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// roundNumbers are parameters whose results can be checked in the head.
func roundNumbers() Options {
	return Options{
		Polls:    true,
		Network:  Network{LatencyNs: 2000, OverheadNs: 0, GapNs: 0, BytesPerNs: 16.384, EagerBytes: 16 << 10, CopyBytesPerNs: 8.192},    // 64K: 4 us on the wire, 8 us to copy
		Costs:    verbs.Costs{Register: verbs.Cost{PerPageNs: 250, FixedNs: 4000}, Deregister: verbs.Cost{PerPageNs: 0, FixedNs: 2000}}, // 64K: 8 us and 2 us
		DQItemNs: 1000, RQItemNs: 1000,
		BounceBytes: 128 << 10, PipelineBytes: 32 << 10,
	}
}

// metronome deregisters a region after every use and registers it again a
// fixed time after the begin of that use.
type metronome struct {
	afterNs int64
	todo    []schedule.Action
	due     []schedule.Action
}

func (m *metronome) Observe(e schedule.Event, _ int64) {
	m.todo = append(m.todo, schedule.Action{Kind: schedule.Deregister, Region: e.Region})
	m.due = append(m.due, schedule.Action{Kind: schedule.Register, Region: e.Region, UntilNs: e.StartNs + m.afterNs})
}

func (m *metronome) Next(nowNs int64) (a schedule.Action) {
	switch {
	case len(m.todo) > 0:
		a, m.todo = m.todo[0], m.todo[1:]
	case len(m.due) == 0:
	case m.due[0].UntilNs > nowNs:
		return schedule.Action{Kind: schedule.Wait, UntilNs: m.due[0].UntilNs}
	default:
		a, m.due = m.due[0], m.due[1:]
	}
	return a
}

func (m *metronome) Missed(schedule.Miss, int64)               {}
func (m *metronome) Done(schedule.Action, int64, int64, error) {}
func (m *metronome) Forget(mem.RegionID)                       {}
func (m *metronome) SetShareNs(int64)                          {}
func (m *metronome) SetWorkers(int)                            {}
func (m *metronome) SetShared(bool, int64) float64             { return 0 }
func (m *metronome) Spend(int64, int64)                        {}
func (m *metronome) Rest(int64) int64                          { return 0 }
func (m *metronome) Cost() schedule.CostCounts                 { return schedule.CostCounts{} }
func (m *metronome) Late() schedule.LateUses                   { return schedule.LateUses{} }

// interval is a stretch of a rank's time in a chart.
type interval struct {
	from, to int64
	mark     byte
}

// chartPath notes what happens on a path.
type chartPath struct {
	path
	log *[]interval
}

func (c *chartPath) acquire(t int64, n *need, u *bufferUse) (int64, error) {
	ns, err := c.path.acquire(t, n, u)
	*c.log = append(*c.log, interval{t, t + ns, 'r'}, interval{t + ns, never, '='})
	return ns, err
}

func (c *chartPath) release(t int64, u *bufferUse) (int64, error) {
	ns, err := c.path.release(t, u)
	for i := range *c.log {
		if x := &(*c.log)[i]; x.to == never {
			x.to = t
			break
		}
	}
	*c.log = append(*c.log, interval{t, t + ns, 'd'})
	return ns, err
}

// chart draws each rank's time, a column a step: '.' outside transfers, 'r'
// held up by a buffer, '=' transferring, 'd' held up by giving one back; and
// below it how many units of pages are pinned.
func chart(e *engine, logs [][]interval, step time.Duration, unit int64) string {
	var b strings.Builder
	for i, r := range e.ranks {
		row := []byte(strings.Repeat(".", int((r.endNs+int64(step)-1)/int64(step))))
		for _, x := range logs[i] {
			for c := range row {
				if t := int64(c) * int64(step); x.from <= t && t < x.to && (row[c] == '.' || x.mark != '=') {
					row[c] = x.mark
				}
			}
		}
		fmt.Fprintf(&b, "%d %s\n  ", r.id, row)
		s := r.usage.Series()
		for c := range row {
			t := int64(c) * int64(step)
			n := int64(0)
			if bin := int(t / s.WidthNs); bin < len(s.Peak) {
				n = int64(s.Mean(bin)+0.5) / unit
			}
			b.WriteByte("_123456789abcdefghijklmnopqrstuvwxyz"[min(n, 35)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTimelines(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	datadriven.Walk(t, "testdata/timelines", func(t *testing.T, path string) {
		var text string
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "trace" {
				text = d.Input
				return ""
			}
			o := roundNumbers()
			policy, step, lateNs, afterNs := LeavePinned, time.Microsecond, int64(0), int64(0)
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "policy":
					policy = a.Vals[0]
				case "recorded":
					o.Timeline = Recorded
				case "pairwise":
					o.AlltoallPairwise = true
				case "budget":
					o.BudgetBytes = int64(replaytest.Bytes(t, a.Vals[0]))
				case "node":
					var n []int
					for _, v := range a.Vals {
						n = append(n, replaytest.Int(t, v))
					}
					o.Nodes = append(o.Nodes, n)
				case "after":
					v, err := time.ParseDuration(a.Vals[0])
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					afterNs = v.Nanoseconds()
				case "late":
					lateNs = o.roundLate(t, a.Vals[0])
				default:
					d.Fatalf(t, "unknown argument %s", a.Key)
				}
			}
			o.EnsureDefaults()
			o.LookupNs = 0
			if policy == Pipeline {
				o.Network.registerNsPerByte = o.pipelineNsPerByte()
			}
			e, err := newEngine(&o, recorded{replaytest.Trace(t, text)})
			if err != nil {
				return err.Error()
			}
			if err := e.install(policy, lateNs); err != nil {
				return err.Error()
			}
			logs := make([][]interval, len(e.ranks))
			for i, r := range e.ranks {
				r.usage.Series().WidthNs = int64(step)
				r.path = &chartPath{r.path, &logs[i]}
				if r.helper != nil {
					r.helper.loop.Decider = &metronome{afterNs: afterNs}
				}
			}
			if err := e.run(context.Background(), nil); err != nil {
				return err.Error()
			}
			results := e.results("script", policy, make([]usage.Usage, 0))
			var b strings.Builder
			b.WriteString(chart(e, logs, step, 64<<10))
			for _, r := range results[:len(e.ranks)] {
				fmt.Fprintf(&b, "%d: %.1f us, peak %dK, %d needs", r.Rank, float64(r.RunNs)/1e3, r.PeakPinnedBytes>>10, r.Needs)
				for _, c := range []struct {
					n    int64
					name string
				}{{r.FirstRegs, "first"}, {r.LateRegs, "late"}, {r.LateWaits, "waits"}, {r.HelperRegs, "helper regs"}, {r.HelperDeregs, "helper deregs"},
					{r.WastedRegs, "wasted"}, {r.Unregistered, "unregistered"}, {r.StallNs, "ns stall"}} {
					if c.n != 0 {
						fmt.Fprintf(&b, ", %d %s", c.n, c.name)
					}
				}
				b.WriteByte('\n')
			}
			return b.String()
		})
	})
}

func (o *Options) roundLate(t *testing.T, size string) int64 {
	r, err := mem.NewRange(0, replaytest.Bytes(t, size))
	if err != nil {
		t.Fatal(err)
	}
	return o.Costs.Register.Ns(r.Pages())
}
