package main

import (
	"fmt"
	"io"
	"strings"

	"pinwheel/internal/compare"
	"pinwheel/internal/outfile"
	"pinwheel/internal/report"
	"pinwheel/schedule"
)

// Run implements the command table.
func (c *tableCmd) Run() error {
	var s state
	if err := s.Read(c.Runs); err != nil {
		return err
	}
	tables := map[string]string{"noise": s.noiseTable(), "waits": s.waitsTable(), "starts": s.startsTable()}
	fmt.Print(tables[c.Which])
	text := fmt.Sprintf(preface, s.Head.Version, s.Head.Date, s.Head.Machine.Processor, s.Head.Machine.Processors,
		s.Head.Machine.Kernel, s.Head.Stack, s.load()) + tables["noise"] + tables["waits"] + tables["starts"]
	return outfile.Write(c.Into, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

const preface = `# What a helper takes from the rank whose processor it shares

    make bench-noise bench-waits bench-starts    # raw: noise.jsonl

Pinwheel %s, %s. %s, %d processors, Linux %s;
%s on the software device. Load of the machine before a run: %.1f (median).

Two ranks, each bound to a processor, work in quanta of some 0.25 ms and exchange buffers of 8 MiB
(` + "`bench/noise/programs/quanta.c`" + `). In the row "shared" each helper is bound to the processor of
its rank, and in "auto" it is where PINWHEEL_IDLE_POLICY puts it. Runs with Pinwheel and without it,
where the transport keeps its registrations, follow each other in turn. Figures are medians over the
rounds, with the 95 %% interval of the median by ranks in brackets (of fewer than six rounds: least
and greatest).
`

// pair is a round of a row, with Pinwheel and without.
type pair struct{ with, without *run }

// shared are the rows in which helpers share their ranks' processors.
var shared = []string{"shared", "auto"}

// load returns the median load before a run.
func (s *state) load() float64 {
	var loads []float64
	for _, r := range s.Lines {
		loads = append(loads, r.Load)
	}
	if len(loads) == 0 {
		return 0
	}
	return compare.Estimated(loads).Median
}

// pairs returns the rounds of a row.
func (s *state) pairs(row string) (all []pair) {
	last := -1
	for _, r := range s.Lines {
		last = max(last, r.Round)
	}
	for round := range last + 1 {
		p := pair{s.of(row, with, round), s.of(row, without, round)}
		if p.with != nil && p.without != nil && len(p.with.Ranks) == len(p.without.Ranks) {
			all = append(all, p)
		}
	}
	return all
}

// noise is the share by which quanta took longer than the least one, which is the time that nothing disturbs.
type noise struct {
	without, with    float64
	registrations    float64 // in quanta, by processor time
	registrationsAll float64 // those in waits included
	beyond           float64

	// By processor time, of which other processes take nothing: the change of that of the quanta, and that of the
	// helper without its registrations, as a share of the run's time.
	slower, helper float64
}

// noise compares the runs of a round. The least quantum is that of the rank in both runs. The processor time of
// registrations counts by the share of them that began outside of waits.
func (p pair) noise() (n noise) {
	var workNs float64
	var withCPU, withoutCPU figures
	for i := range p.with.Ranks {
		a, b := p.with.Ranks[i].Quanta, p.without.Ranks[i].Quanta
		leastNs := min(a.LeastNs, b.LeastNs)
		workNs += float64(a.N) * leastNs
		n.with += a.SumNs - float64(a.N)*leastNs
		n.without += b.SumNs - float64(b.N)*leastNs
		withCPU.add(p.with.Ranks[i].CPU)
		withoutCPU.add(p.without.Ranks[i].CPU)
	}
	own := p.with.Own
	n.with, n.without = n.with/workNs, n.without/workNs
	n.registrationsAll = float64(own.HelperActionNs) / workNs
	n.registrations = n.registrationsAll * (1 - inWaits(own))
	n.beyond = n.with - n.without - n.registrations
	n.slower = withCPU.mean()/withoutCPU.mean() - 1
	n.helper = float64(max(own.HelperCPUNs-own.HelperActionNs, 0)) / (1e9 * own.Seconds * float64(len(p.with.Ranks)))
	return n
}

// inWaits is the share of the helpers' registrations and deregistrations that began in a wait.
func inWaits(own *report.Rank) float64 {
	return float64(own.InWaits) / float64(max(own.HelperRegs+own.HelperDeregs, 1))
}

func (f *figures) add(o figures) { f.N, f.SumNs = f.N+o.N, f.SumNs+o.SumNs }

func (f *figures) mean() float64 { return f.SumNs / float64(max(f.N, 1)) }

// estimated returns the estimate of one value of each pair.
func estimated(pairs []pair, of func(pair) float64) compare.Estimate {
	var values []float64
	for _, p := range pairs {
		values = append(values, of(p))
	}
	return compare.Estimated(values)
}

func (s *state) noiseTable() string {
	var b strings.Builder
	b.WriteString(noiseHead)
	for _, row := range shared {
		pairs := s.pairs(row)
		if len(pairs) == 0 {
			continue
		}
		percent := func(of func(noise) float64) string {
			e := estimated(pairs, func(p pair) float64 { return 100 * of(p.noise()) })
			return fmt.Sprintf("%.2f %% [%.2f, %.2f]", e.Median, e.Low, e.High)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", row, len(pairs),
			percent(func(n noise) float64 { return n.without }), percent(func(n noise) float64 { return n.with }),
			percent(func(n noise) float64 { return n.registrations }),
			percent(func(n noise) float64 { return n.registrationsAll }),
			percent(func(n noise) float64 { return n.beyond }), percent(func(n noise) float64 { return n.slower }),
			percent(func(n noise) float64 { return n.helper }), percent(func(n noise) float64 { return n.slower + n.helper }))
	}
	return b.String()
}

const noiseHead = `
## Noise

By how much quanta took longer than the least one, as a share of their time. Registrations are the
helper's, by its processor time; those in quanta began while the rank did not wait. The goal is less
than 0.5 % beyond them. The last columns say the same by processor time, of which other processes
take nothing: how much more the quanta take, for caches that the helper has used, and what the
helper takes beside registrations, in waits too, as a share of the run.

| row | rounds | without Pinwheel | with it | registrations in quanta | all registrations | **beyond** | quanta, processor time | helper beside registrations | **both** |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`

// delay returns a figure of the ends of all ranks' waits, weighted by how many they are.
func (r *run) delay(of func(figures) float64) float64 {
	var sum, n float64
	for _, each := range r.Ranks {
		sum += of(each.Waits) * float64(each.Waits.N)
		n += float64(each.Waits.N)
	}
	return sum / max(n, 1)
}

func (s *state) waitsTable() string {
	var b strings.Builder
	b.WriteString(waitsHead)
	for _, row := range shared {
		pairs := s.pairs(row)
		if len(pairs) == 0 {
			continue
		}
		in := estimated(pairs, func(p pair) float64 { return 100 * inWaits(p.with.Own) })
		for _, figure := range []struct {
			name string
			of   func(figures) float64
		}{
			{"mean", func(f figures) float64 { return f.mean() }},
			{"median", func(f figures) float64 { return f.P50Ns }},
			{"99th percentile", func(f figures) float64 { return f.P99Ns }},
			{"longest", func(f figures) float64 { return f.MaxNs }},
		} {
			us := func(of func(pair) float64) string {
				e := estimated(pairs, func(p pair) float64 { return of(p) / 1e3 })
				return fmt.Sprintf("%.1f [%.1f, %.1f]", e.Median, e.Low, e.High)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.0f %% |\n", row, figure.name,
				us(func(p pair) float64 { return p.without.delay(figure.of) }),
				us(func(p pair) float64 { return p.with.delay(figure.of) }),
				us(func(p pair) float64 { return p.with.delay(figure.of) - p.without.delay(figure.of) }), in.Median)
		}
	}
	return b.String()
}

const waitsHead = `
## Waits

A rank waits for a small message of the other, which works for longer. How long after the message was
sent does the wait end? In us; a helper that is in the middle of a registration makes it longer. The
last column is the share of the helper's registrations and deregistrations that began in a wait.

| row | of all waits | without Pinwheel | with it | **change** | in waits |
|---|---|---:|---:|---:|---:|
`

func (s *state) startsTable() string {
	var idle, works, waits schedule.Histogram
	for _, r := range s.Lines {
		switch {
		case r.Own == nil || r.Failed != "" || r.Row == "auto":
		case r.Row == "idle": // whether the rank waits means nothing there
			idle.Add(&r.Own.Starts)
			idle.Add(&r.Own.StartsInWaits)
		default:
			works.Add(&r.Own.Starts)
			waits.Add(&r.Own.StartsInWaits)
		}
	}
	var b strings.Builder
	b.WriteString(`
## Starts of registrations

How long after its planned moment each registration began that was planned, in us, over all rounds. Negative
ones began early: by the margins with which sleeps end and, in waits, because the rank waited.

| helper | registrations | p50 | p99 | max |
|---|---:|---:|---:|---:|
`)
	for _, row := range []struct {
		name string
		h    *schedule.Histogram
	}{{"on an idle processor", &idle}, {"on its rank's, which works", &works}, {"on its rank's, which waits", &waits}} {
		us := func(ns int64) float64 { return float64(ns) / 1e3 }
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.1f | %.1f |\n", row.name, row.h.Count(), us(row.h.QuantileNs(0.5)),
			us(row.h.QuantileNs(0.99)), us(row.h.MaxNs()))
	}
	return b.String()
}
