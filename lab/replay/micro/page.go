package micro

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pinwheel/lab/replay"
	"pinwheel/mem"
)

const head = `# The papers' microbenchmarks, in virtual time

Made by "nasreplay micro" from micro.jsonl; do not edit. Two ranks. *Overlap* is Figure 1 of Li et
al. (CF 2011): three buffers are sent by turns, and a second of computing follows each message. Of
*fresh* buffers none is used in two rounds. *Ping-pong* is a message to and one fro without a pause,
as in Figure 1 of Wyckoff and Wu (2005). Bandwidth is that of the sender without its computing.
Costs of registration: %s.

bounce copies through buffers that are registered once. pipeline registers chunks of 1 MiB and
deregisters them after each message, and pipeline-pinned keeps them. Pinwheel stands here with two
values of PINWHEEL_COST, .5 %% being the default: late uses may take so much of the run time, and
a second of computing pays for one that takes 5 ms.

## Beside the paper's section 6.1

Messages of 4 MiB on a network of %s Gb/s, which is nearest to theirs. Their peaks have their
bounce buffers in them, ours only what is registered of the user's buffers. Their 24.75 %% are two of
three buffers, as ours are, if the bounce buffers are 20.3 MiB: (12 - 4) / (12 + 20.3). *With these*
is what we get with as much beside the buffers. Why other figures differ: their pipeline sends the
first segment of a message from a bounce buffer of its own, and ours has none.

| what | paper | ours, policy paper | with these | ours, Pinwheel | with these |
|---|---:|---:|---:|---:|---:|
`

// theirBounce is what the paper's peaks have besides users' buffers, in bytes; see head.
const theirBounce = 20.3 * (1 << 20)

// Page is a document with the tables of results: Markdown. The results are all those of one call of Compare, with 4 and
// 5 MiB among the sizes.
func Page(rs []Result) string {
	var b strings.Builder
	nearest := page{rs: rs}.nearest()
	fmt.Fprintf(&b, head, rs[0].Provider, number(nearest))
	page{rs, nearest}.beside(&b)
	for _, gb := range distinct(rs, func(r *Result) float64 { return r.GbPerS }) {
		for _, j := range jobs {
			t := table{page{rs, gb}, j}
			fmt.Fprintf(&b, "\n## %s, %s Gb/s: bandwidth in MB/s\n\n", t.title(), number(gb))
			t.write(&b, func(r *Result) string { return fmt.Sprintf("%.0f", r.MBPerS) })
			if gb != nearest || j.benchmark == PingPong { // the same memory, or hardly less than all
				continue
			}
			fmt.Fprintf(&b, "\n## %s: peak of pinned memory in MiB, average in brackets\n\n", t.title())
			t.write(&b, func(r *Result) string {
				return fmt.Sprintf("%s (%s)", mebibytes(float64(r.PeakPinnedBytes)), mebibytes(r.AvgPinnedBytes))
			})
		}
	}
	return b.String()
}

func number(v float64) string    { return fmt.Sprintf("%g", v) }
func mebibytes(v float64) string { return fmt.Sprintf("%.3g", v/(1<<20)) }

func distinct[T comparable](rs []Result, of func(*Result) T) (all []T) {
	for i := range rs {
		if v := of(&rs[i]); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// page finds results on one network.
type page struct {
	rs     []Result
	gbPerS float64
}

// nearest is the bandwidth that is nearest to that of the papers' networks.
func (p page) nearest() float64 {
	return slices.MinFunc(p.rs, func(x, y Result) int { return cmp.Compare(x.GbPerS, y.GbPerS) }).GbPerS
}

// find returns a result; cost 0 is any.
func (p page) find(j job, policy string, cost float64) *Result {
	i := slices.IndexFunc(p.rs, func(r Result) bool {
		return r.Benchmark == j.benchmark && r.Rounds == j.rounds && r.Fresh == j.fresh && r.Bytes == j.bytes &&
			r.GbPerS == p.gbPerS && r.Policy == policy && (cost == 0 || r.Cost == cost)
	})
	return &p.rs[i]
}

// beside sets our figures beside the paper's.
func (p page) beside(b *strings.Builder) {
	reused, again, fresh := jobs[0], jobs[1], jobs[2]
	for _, row := range []struct {
		what, paper string
		job         job
		policy      string // that the helper's is compared with
		of          func(helper, other *Result, beside float64) string
	}{
		{"Fig. 9, buffers reused: peak saved of leave-pinned", "24.75 %", reused, replay.LeavePinned, saved},
		{"the same, of pipeline", "3.84 %", reused, replay.Pipeline, saved},
		{"the same, of pipeline-pinned", "21.04 %", reused, replay.PipelinePinned, saved},
		{"Fig. 9: latency over that of leave-pinned, 10 rounds", "< 5 %", reused, replay.LeavePinned, slower},
		{"the same, 100 rounds", "< 5 %", again, replay.LeavePinned, slower},
		{"Fig. 10, no reuse: leave-pinned's peak", "4.62 x", fresh, replay.LeavePinned, times},
		{"the same, pipeline-pinned's", "3.31 x", fresh, replay.PipelinePinned, times},
		{"the same, pipeline's", "1.04 x", fresh, replay.Pipeline, times},
		{"Fig. 10: latency over that of leave-pinned", "comparable", fresh, replay.LeavePinned, slower},
	} {
		row.job.bytes = 4 << 20
		fmt.Fprintf(b, "| %s | %s |", row.what, row.paper)
		for _, policy := range []string{replay.Paper, replay.Pinwheel} {
			helper, other := p.find(row.job, policy, 0), p.find(row.job, row.policy, 0)
			alone, with := row.of(helper, other, 0), row.of(helper, other, theirBounce)
			if alone == with {
				with = ""
			}
			fmt.Fprintf(b, " %s | %s |", alone, with)
		}
		b.WriteString("\n")
	}
	reused.bytes = 5 << 20
	fmt.Fprintf(b, "\nFigure 2: without leave pinned, a message of 5 MB takes 25.83 %% longer there. On-demand takes %s longer than\n"+
		"leave-pinned here", slower(p.find(reused, replay.OnDemand, 0), p.find(reused, replay.LeavePinned, 0), 0))
	for _, p.gbPerS = range distinct(p.rs, func(r *Result) float64 { return r.GbPerS }) {
		if p.gbPerS != p.nearest() {
			fmt.Fprintf(b, ", and %s on %s Gb/s", slower(p.find(reused, replay.OnDemand, 0), p.find(reused, replay.LeavePinned, 0), 0), number(p.gbPerS))
		}
	}
	b.WriteString(".\n")
}

// The relations of the table, with so many bytes beside what is pinned.

func saved(helper, other *Result, beside float64) string {
	return percent(1 - (float64(helper.PeakPinnedBytes)+beside)/(float64(other.PeakPinnedBytes)+beside))
}

func times(helper, other *Result, beside float64) string {
	return fmt.Sprintf("%.2f x", (float64(other.PeakPinnedBytes)+beside)/(float64(helper.PeakPinnedBytes)+beside))
}

func slower(helper, other *Result, _ float64) string {
	return percent(helper.MessageNs/other.MessageNs - 1)
}

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

// table has a row for each size of the messages of a job, and a column for each policy.
type table struct {
	page
	job
}

func (t table) title() string {
	name := strings.ToUpper(string(t.benchmark)[:1]) + string(t.benchmark)[1:]
	switch {
	case t.fresh:
		name += ", fresh buffers"
	case t.benchmark == Overlap:
		name += fmt.Sprintf(", %d rounds", t.rounds)
	}
	return name
}

func (t table) write(b *strings.Builder, cell func(*Result) string) {
	costs := distinct(t.rs, func(r *Result) float64 { return r.Cost })
	names, rule := "", ""
	t.each(costs, func(policy string, cost float64) {
		if cost > 0 {
			policy += fmt.Sprintf(" %g %%", 100*cost)
		}
		names, rule = names+" "+policy+" |", rule+"---:|"
	})
	fmt.Fprintf(b, "| size |%s\n|---|%s\n", names, rule)
	for _, t.bytes = range distinct(t.rs, func(r *Result) uint64 { return r.Bytes }) {
		fmt.Fprintf(b, "| %s |", mem.FormatBytes(t.bytes))
		t.each(costs, func(policy string, cost float64) { fmt.Fprintf(b, " %s |", cell(t.find(t.job, policy, cost))) })
		b.WriteString("\n")
	}
}

// each calls f for each column; cost is 0 for a policy without one.
func (t table) each(costs []float64, f func(policy string, cost float64)) {
	for _, policy := range policies {
		for _, cost := range costs {
			if (cost > 0) == (policy == replay.Pinwheel) {
				f(policy, cost)
			}
		}
	}
}
