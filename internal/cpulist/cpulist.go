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
	spans, err := Spans(s)
	if err != nil || slices.ContainsFunc(spans, func(s Span) bool { return s.Last > maxCPU }) {
		return nil, fmt.Errorf("%q is not a list of processors", s)
	}
	var list []int
	for _, span := range spans {
		for cpu := span.First; cpu <= span.Last; cpu++ {
			list = append(list, cpu)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Span is one part of a list: the numbers from First to Last.
type Span struct{ First, Last int }

// Spans returns the parts of a list of numbers, however large, as they are written there.
func Spans(s string) ([]Span, error) {
	var spans []Span
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if errors.Join(err, err2) != nil || lo < 0 || hi < lo {
			return nil, fmt.Errorf("%q is not a list of numbers", s)
		}
		spans = append(spans, Span{lo, hi})
	}
	return spans, nil
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
