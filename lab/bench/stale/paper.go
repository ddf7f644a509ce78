package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"pinwheel/internal/measure"
	"pinwheel/mem"
)

type paperCmd struct {
	Files []string `arg:"" help:"Output of cost."`
}

const paperHead = `# What watching costs, beside Wyckoff and Wu (2005)

Made by "stale paper" from the output of "stale cost"; do not edit. Their kernel module makes a
registration at most 2 %% slower. Its check takes less than 1 %% of a small transfer, with what it finds
to deregister. A thread that is told of changes takes 2 %% of the time where no processor is idle: ours
are told in the kernel, so what stands here in its place is what system calls of all other
processes take more while eight processes watch.

Medians over the runs, each beside the run without a watch of the same round, with the 95 %% interval
of the median by ranks in brackets (of fewer than six: least and greatest). The check and what a hit
takes more are shares of registering and deregistering 64 KiB without a watch.
%s.

| watch | user | rounds | registration of %s | check | hit | other system calls |
|---|---|---:|---:|---:|---:|---:|
`

// Run prints a table.
func (c paperCmd) Run() error {
	all, err := readLines(c.Files)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(os.Stdout)
	if err := writePaper(w, slices.DeleteFunc(all, func(l line) bool { return l.Cost == "" })); err != nil {
		return err
	}
	return w.Flush()
}

// byColumn has costs by who watches, and by what it is that they are the costs of.
type byColumn map[[2]string]line

// writePaper writes the table of costs, of which some are without a watch.
func writePaper(w io.Writer, costs []line) error {
	var columns []string
	of := byColumn{}
	for _, l := range costs {
		if c := l.who(); !slices.Contains(columns, c) && c != unwatched && c != peer {
			columns = append(columns, c)
		}
		of[[2]string{l.who(), l.Cost}] = l
	}
	var sizes, took []string
	for _, n := range registeredSizes {
		sizes = append(sizes, mem.FormatBytes(n))
		took = append(took, short(of[[2]string{unwatched, registrationOf(n)}].Median/1000)+" us")
	}
	fmt.Fprintf(w, paperHead, machines(costs), strings.Join(sizes, ", "))
	for _, c := range columns {
		cells, err := of.cells(c)
		if err != nil {
			return err
		}
		mechanism, user, other := strings.Cut(c, ", ")
		if !other {
			user = "root"
		}
		fmt.Fprintf(w, "| %s | %s | %d | %s |\n", mechanism, user, len(of[[2]string{c, theHit}].Runs), strings.Join(cells, " | "))
	}
	fmt.Fprintf(w, "\nWithout a watch, the registrations take %s (io_uring, as no adapter is at hand), a hit %s ns and the\nsystem call %s ns.\n",
		strings.Join(took, ", "), short(of[[2]string{unwatched, theHit}].Median), short(of[[2]string{unwatched, unrelated}].Median))
	return nil
}

// cells are those of one row.
func (of byColumn) cells(column string) (cells []string, err error) {
	var registration []string
	for _, n := range registeredSizes {
		text, err := of.more(column, registrationOf(n), registrationOf(n), registrationOf(n))
		if err != nil {
			return nil, err
		}
		registration = append(registration, text)
	}
	cells = append(cells, strings.Join(registration, ", "))
	small := registrationOf(registeredSizes[0])
	for _, x := range [][3]string{{theCheck, "", small}, {theHit, theHit, small}, {unrelatedBeside, unrelated, unrelated}} {
		text, err := of.more(column, x[0], x[1], x[2])
		if err != nil {
			return nil, err
		}
		cells = append(cells, text)
	}
	return cells, nil
}

// more is what a cost is more than another one without a watch, as a share of a third one without a watch. The other is 0 if
// it is "".
func (of byColumn) more(column, cost, less, whole string) (string, error) {
	v, without, base := of[[2]string{column, cost}].Runs, of[[2]string{unwatched, less}].Runs, of[[2]string{unwatched, whole}].Runs
	if less == "" {
		without = make([]float64, len(v))
	}
	if len(v) == 0 || len(v) != len(base) || len(v) != len(without) {
		return "", fmt.Errorf("%q has %d runs under %s, and %q has %d without a watch: measure all by one run of the command cost",
			cost, len(v), column, whole, len(base))
	}
	var shares []float64
	for i := range v {
		shares = append(shares, 1+(v[i]-without[i])/base[i])
	}
	return measure.Estimated(shares).Percent(), nil
}
