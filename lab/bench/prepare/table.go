package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"pinwheel/mem"
)

// read reads what run has written.
func read(file string) (h header, rows []row, err error) {
	f, err := os.Open(file)
	if err != nil {
		return h, nil, err
	}
	defer f.Close()
	in := json.NewDecoder(bufio.NewReader(f))
	if err := in.Decode(&h); err != nil {
		return h, nil, fmt.Errorf("%s: %w", file, err)
	}
	for in.More() {
		var r row
		if err := in.Decode(&r); err != nil {
			return h, nil, fmt.Errorf("%s: %w", file, err)
		}
		rows = append(rows, r)
	}
	return h, rows, nil
}

var deviceNames = map[string]string{"uring": "io_uring", "rdma": "RDMA"}

// markdown returns the table of medians.
func markdown(h header, rows []row) string {
	var b strings.Builder
	b.WriteString("| device | pages | pool | plain, touched | plain, untouched | prepared, 1 thread | prepared, all threads | speed-up | at best |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	type line struct {
		device string
		huge   bool
		bytes  int64
	}
	var lines []line
	for _, r := range rows {
		if l := (line{r.Device, r.Huge, r.Bytes}); !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	size := func(huge bool) string { return map[bool]string{false: "4 KiB", true: "THP"}[huge] }
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(-cmp.Compare(a.device, b.device), cmp.Compare(size(a.huge), size(b.huge)), cmp.Compare(a.bytes, b.bytes))
	})
	var others []float64
	fewest := h.Rounds
	for _, l := range lines {
		wall, cpu := map[string]int64{}, map[string]int64{}
		threads := 0
		fmt.Fprintf(&b, "| %s | %s | %s |", deviceNames[l.device], size(l.huge), mem.FormatBytes(uint64(l.bytes)))
		for _, way := range []string{"touched", "untouched", "1 thread", "all threads"} {
			var walls, cpus []int64
			for _, r := range rows {
				if r.Device == l.device && r.Huge == l.huge && r.Bytes == l.bytes && r.Way == way {
					walls, cpus, others = append(walls, r.WallNs), append(cpus, r.CPUNs), append(others, r.Others)
					threads = max(threads, r.Threads)
				}
			}
			if len(walls) == 0 {
				b.WriteString(" |")
				continue
			}
			fewest = min(fewest, len(walls))
			wall[way], cpu[way] = median(walls), median(cpus)
			fmt.Fprintf(&b, " %s (%s) |", seconds(wall[way]), seconds(cpu[way]))
		}
		if len(wall) == len(ways) && threads > 0 {
			best := cpu["touched"] + max(0, cpu["all threads"]-cpu["touched"])/int64(threads)
			fmt.Fprintf(&b, " %.2f | %.2f |\n", float64(wall["untouched"])/float64(wall["all threads"]), float64(cpu["untouched"])/float64(best))
		} else {
			b.WriteString(" | |\n")
		}
	}
	fmt.Fprintf(&b, "\nSeconds, and in brackets those of processor time of all threads: medians of at least %d interleaved runs. Other\n"+
		"processes used %.2f processors meanwhile (median), at most %.2f. Pinwheel %s, %s, %d processors, Linux %s.\n",
		fewest, median(others), slices.Max(others), h.Version, h.Machine.Processor, h.Machine.Processors, h.Machine.Kernel)
	return b.String()
}

func seconds(ns int64) string { return fmt.Sprintf("%.3f", time.Duration(ns).Seconds()) }

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
