package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pinwheel/internal/measure"
	"pinwheel/mem"
)

var deviceNames = map[string]string{"uring": "io_uring", "rdma": "RDMA"}

// markdown returns the table of medians.
func (r *runs) markdown() string {
	var b strings.Builder
	b.WriteString("| device | pages | pool | plain, touched | plain, untouched | prepared, 1 thread | prepared, all threads | speed-up | at best |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	type line struct {
		device string
		huge   bool
		bytes  int64
	}
	var lines []line
	for _, m := range r.Lines {
		if l := (line{m.Device, m.Huge, m.Bytes}); !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	size := func(huge bool) string { return map[bool]string{false: "4 KiB", true: "THP"}[huge] }
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(-cmp.Compare(a.device, b.device), cmp.Compare(size(a.huge), size(b.huge)), cmp.Compare(a.bytes, b.bytes))
	})
	var others []float64
	fewest := math.MaxInt
	for _, l := range lines {
		wall, cpu := map[string]float64{}, map[string]float64{}
		threads := 0
		fmt.Fprintf(&b, "| %s | %s | %s |", deviceNames[l.device], size(l.huge), mem.FormatBytes(uint64(l.bytes)))
		for _, way := range []string{"touched", "untouched", "1 thread", "all threads"} {
			var walls, cpus []float64
			for _, m := range r.Lines {
				if m.Device == l.device && m.Huge == l.huge && m.Bytes == l.bytes && m.Way == way {
					walls, cpus, others = append(walls, float64(m.WallNs)), append(cpus, float64(m.CPUNs)), append(others, m.Others)
					threads = max(threads, m.Threads)
				}
			}
			if len(walls) == 0 {
				b.WriteString(" |")
				continue
			}
			fewest = min(fewest, len(walls))
			wall[way], cpu[way] = measure.Median(walls), measure.Median(cpus)
			fmt.Fprintf(&b, " %s (%s) |", seconds(wall[way]), seconds(cpu[way]))
		}
		if len(wall) == len(ways) && threads > 0 {
			best := cpu["touched"] + max(0, cpu["all threads"]-cpu["touched"])/float64(threads)
			fmt.Fprintf(&b, " %.2f | %.2f |\n", wall["untouched"]/wall["all threads"], cpu["untouched"]/best)
		} else {
			b.WriteString(" | |\n")
		}
	}
	fmt.Fprintf(&b, "\nSeconds, and in brackets those of processor time of all threads: medians of at least %d interleaved runs. Other\n"+
		"processes used %.2f processors meanwhile (median), at most %.2f.\n%s",
		fewest, measure.Median(others), slices.Max(others), r.Head.Describe(nil))
	return b.String()
}

func seconds(ns float64) string { return fmt.Sprintf("%.3f", ns/1e9) }
