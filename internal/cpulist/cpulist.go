// Package cpulist reads and writes lists of processors as the kernel does: "0-3,8,10-11"
// (cpuset(7), "List format").
package cpulist

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers that a list may hold: CPU_SETSIZE of <sched.h>
// is 1024, and no kernel is built for more than 8192.
const maxCPU = 8191

// Parse returns the processors of a list in ascending order.
func Parse(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if errors.Join(err, err2) != nil || lo < 0 || hi < lo || hi > maxCPU {
			return nil, fmt.Errorf("%q is not a list of processors", s)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			list = append(list, cpu)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Read parses a file. Its errors name the file.
func Read(root fs.FS, name string) ([]int, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	list, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	return list, nil
}

// Format writes processors, which are in ascending order.
func Format(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); i++ {
		first := i
		for i+1 < len(cpus) && cpus[i+1] == cpus[i]+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[first]))
		if i > first {
			b.WriteString("-" + strconv.Itoa(cpus[i]))
		}
	}
	return b.String()
}
