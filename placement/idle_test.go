package placement

import (
	"errors"
	"os"
	"slices"
	"testing"

	"pinwheel/helper"
	"pinwheel/internal/testtree"
)

func TestIdleProcessorsAreThoseThatAHelperWouldTake(t *testing.T) {
	other, own := Owner{PID: int32(os.Getpid()) + 1}, Owner{PID: int32(os.Getpid())}
	for name, c := range map[string]struct {
		machine string
		busy    []int
		files   string
		allowed []int
		claims  []Claim
		failed  error
		want    []int
	}{
		"of two":                           {machine: "vm-2", busy: []int{95, 2}, allowed: []int{0, 1}, want: []int{1}},
		"both busy":                        {machine: "vm-2", busy: []int{95, 95}, allowed: []int{0, 1}},
		"not allowed":                      {machine: "vm-2", busy: []int{95, 2}, allowed: []int{0}},
		"another's helper":                 {machine: "vm-2", busy: []int{95, 2}, allowed: []int{0, 1}, claims: []Claim{{Owner: other, CPU: 1}}},
		"our own helper":                   {machine: "vm-2", busy: []int{95, 2}, allowed: []int{0, 1}, claims: []Claim{{Owner: own, CPU: 1}}, want: []int{1}},
		"claims that can't be read":        {machine: "vm-2", busy: []int{95, 2}, allowed: []int{0, 1}, failed: errors.New("no"), want: []int{1}},
		"one of each core, none of ours":   {machine: "epyc-2s-ccx", busy: make([]int, 16), allowed: []int{0, 1, 2, 8, 9}, want: []int{1, 2}},
		"a sibling is busy":                {machine: "epyc-2s-ccx", busy: slices.Replace(make([]int, 16), 9, 10, 90), allowed: []int{0, 1, 2}, want: []int{2}},
		"the quota leaves one":             {machine: "docker-v2", busy: []int{2, 2, 2, 2}, allowed: []int{0, 1, 2, 3}, want: []int{1}},
		"quiet processors are left alone":  {machine: "vm-2", busy: []int{95, 2}, files: "sys/devices/system/cpu/isolated: 1", allowed: []int{0, 1}},
		"unless the process is bound them": {machine: "vm-2", busy: []int{95, 2}, files: "sys/devices/system/cpu/isolated: 0-1", allowed: []int{0, 1}, want: []int{1}},
		"offline":                          {machine: "vm-2", busy: []int{95}, allowed: []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFakeMachine(t, c.machine, c.busy...)
			m.setFiles(testtree.Parse(t, c.files))
			i, err := LookForIdle(m, func() ([]Claim, error) { return c.claims, c.failed })
			if err != nil {
				t.Fatal(err)
			}
			if got, err := i.CPUs(c.allowed, 0); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestProcessesWithHelpersDivideIdleProcessors(t *testing.T) {
	m := newFakeMachine(t, "epyc-2s-ccx", make([]int, 16)...)
	i, err := LookForIdle(m, func() ([]Claim, error) { return []Claim{{Owner: Owner{PID: 1}, CPU: 7}}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := i.CPUs([]int{0, 1, 2, 3, 4, 5, 6, 7}, helper.AnyCPU); err != nil || len(got) != 3 {
		t.Errorf("%v, %v, want three of the seven idle cores that no helper has", got, err)
	}
}

func TestNodesOfAMachine(t *testing.T) {
	root := testtree.Parse(t, "sys/devices/system/node/node0/cpulist: 0-1,4\nsys/devices/system/node/node12/cpulist: 2-3\n"+
		"sys/devices/system/node/node13/cpulist: \nsys/devices/system/node/possible: 0-15\n")
	got := ReadNodes(root)
	if len(got) != 3 || !slices.Equal(got[0], []int{0, 1, 4}) || !slices.Equal(got[12], []int{2, 3}) || len(got[13]) != 0 {
		t.Errorf("%v", got)
	}
}
