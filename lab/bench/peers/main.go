// Command peers runs the benchmarks of the registration cache and of its
// peers alternately, so that a noisy machine treats them alike, and reports
// medians with their spread.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"pinwheel/internal/measure"
	"pinwheel/internal/outfile"
)

// peer is one implementation and the program that measures it; see peer.h
// for what that takes and prints.
type peer struct{ impl, program string }

var peers = []peer{{"pinwheel-go", "gopeer"}, {"pinwheel-c", "cpeer"}, {"ucx", "ucxpeer"}}

// hitResult is a line of the output file.
type hitResult struct {
	Impl    string  `json:"impl"`
	Regions int     `json:"regions"`
	Threads int     `json:"threads"`
	NsPerOp float64 `json:"ns_per_op"`
	NsMin   float64 `json:"ns_min"`
	NsMax   float64 `json:"ns_max"`
}

func main() {
	bin := flag.String("bin", "out/bin", "directory of the peers' programs")
	out := flag.String("out", "out/bench-peers.jsonl", "file for the figures of hits, one object per line")
	runs := flag.Int("runs", 15, "repetitions of each measurement, of which the median counts")
	iterations := flag.Int("iterations", 200_000, "gets and puts in one repetition")
	flag.Parse()
	if *runs < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "peers: want at least one run and no arguments")
		os.Exit(2)
	}
	if err := run(os.Stdout, *bin, *out, *runs, *iterations); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, bin, out string, runs, iterations int) error {
	b := bench{bin: bin, runs: runs}
	for _, p := range peers {
		if _, err := os.Stat(filepath.Join(bin, p.program)); err == nil {
			b.peers = append(b.peers, p)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	var lines bytes.Buffer
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "get+put, ns per thread, dependent random accesses: median (min to max) of %d, and what two "+
		"threads do together\n", runs)
	b.head(tab, "regions\tthreads")
	for _, n := range []int{1, 64, 1024, 8192, 65536} {
		single := make([]float64, len(b.peers))
		for threads := 1; threads <= 2; threads++ {
			got, err := b.measure("hit", n, threads, iterations)
			if err != nil {
				return err
			}
			fmt.Fprintf(tab, "%d\t%d", n, threads)
			for i, p := range b.peers {
				s := column(got[i], 0)
				fmt.Fprintf(tab, "\t%.1f (%.1f to %.1f)", measure.Median(s), s[0], s[len(s)-1])
				if threads == 1 {
					single[i] = measure.Median(s)
				} else {
					fmt.Fprintf(tab, ", %.2fx", float64(threads)*single[i]/measure.Median(s))
				}
				line, err := json.Marshal(hitResult{p.impl, n, threads, measure.Median(s), s[0], s[len(s)-1]})
				if err != nil {
					return err
				}
				lines.Write(append(line, '\n'))
			}
			fmt.Fprintln(tab)
		}
	}
	tab.Flush()
	if err := b.others(tab); err != nil {
		return err
	}
	return outfile.Write(out, func(w io.Writer) error {
		_, err := lines.WriteTo(w)
		return err
	})
}

// others prints what is not a hit.
func (b *bench) others(tab *tabwriter.Writer) error {
	b.head(tab, "other")
	for _, test := range []string{"miss", "invalidate"} {
		got, err := b.measure(test, 8192)
		if err != nil {
			return err
		}
		b.row(tab, test+", 8192 regions, ns each", got, func(v [][]float64) string {
			s := column(v, 0)
			return fmt.Sprintf("%.0f (%.0f to %.0f)", measure.Median(s), s[0], s[len(s)-1])
		})
	}
	got, err := b.measure("window")
	if err != nil {
		return err
	}
	b.row(tab, "64 KiB window by 32 KiB over 31.3 MiB, MiB registered", got, func(v [][]float64) string {
		return fmt.Sprintf("%.1f", v[0][0]/(1<<20))
	})
	if got, err = b.measure("stall"); err != nil {
		return err
	}
	for i, what := range []string{"hits", "nothing"} {
		b.row(tab, "during 20 ms registrations: worst of "+what+", us", got, func(v [][]float64) string {
			s := column(v, 3*i)
			return fmt.Sprintf("%.1f (%.1f to %.1f)", measure.Median(s)/1e3, s[0]/1e3, s[len(s)-1]/1e3)
		})
		b.row(tab, "above 10 us, per million "+what, got, func(v [][]float64) string {
			var above, n float64
			for _, r := range v {
				above += r[3*i+1]
				n += r[3*i+2]
			}
			return fmt.Sprintf("%.1f", above/n*1e6)
		})
	}
	return tab.Flush()
}

// bench runs the programs.
type bench struct {
	bin   string
	runs  int
	peers []peer
}

// measure returns, for each peer, the numbers of each repetition.
func (b *bench) measure(test string, args ...int) ([][][]float64, error) {
	argv := []string{test}
	for _, a := range args {
		argv = append(argv, strconv.Itoa(a))
	}
	got := make([][][]float64, len(b.peers))
	for range b.runs {
		for i, p := range b.peers {
			cmd := exec.Command(filepath.Join(b.bin, p.program), argv...)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", p.program, strings.Join(argv, " "), err)
			}
			var numbers []float64
			for _, f := range strings.Fields(string(out)) {
				v, err := strconv.ParseFloat(f, 64)
				if err != nil {
					return nil, fmt.Errorf("%s %s printed %q", p.program, strings.Join(argv, " "), out)
				}
				numbers = append(numbers, v)
			}
			if len(numbers) != 1 && len(numbers) != 6 {
				return nil, fmt.Errorf("%s %s printed %q", p.program, strings.Join(argv, " "), out)
			}
			got[i] = append(got[i], numbers)
		}
	}
	return got, nil
}

func (b *bench) head(tab *tabwriter.Writer, first string) {
	fmt.Fprint(tab, "\n", first)
	for _, p := range b.peers {
		fmt.Fprintf(tab, "\t%s", p.impl)
	}
	fmt.Fprintln(tab)
}

func (b *bench) row(tab *tabwriter.Writer, name string, got [][][]float64, cell func([][]float64) string) {
	fmt.Fprint(tab, name)
	for i := range b.peers {
		fmt.Fprintf(tab, "\t%s", cell(got[i]))
	}
	fmt.Fprintln(tab)
}

// column returns one number of each repetition, sorted.
func column(runs [][]float64, i int) []float64 {
	var c []float64
	for _, r := range runs {
		c = append(c, r[i])
	}
	slices.Sort(c)
	return c
}
