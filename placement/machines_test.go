package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"pinwheel/helper"
	"pinwheel/internal/cgroup"
	"pinwheel/internal/cpulist"
	"pinwheel/internal/testtree"
)

// TestHelpersOnRealMachines prints where the helpers of busy ranks settle under every policy:
//
//	ranks machine=xeon-4208-2s on=(0,2) [busy=(4,6)] [allowed=0-15]
//
// The rest of the input are files of the machine as they are a second later, when the ranks have used their quota.
func TestHelpersOnRealMachines(t *testing.T) {
	datadriven.RunTest(t, "testdata/machines", func(t *testing.T, d *datadriven.TestData) string {
		var machine string
		d.ScanArgs(t, "machine", &machine)
		root := readTree(t, machine)
		all := view{topology: readTopology(t, root), load: map[int]float64{}}
		all.allowed = all.topology.Online()
		if list, ok := d.Arg("allowed"); ok {
			var err error
			if all.allowed, err = cpulist.Parse(strings.Join(list.Vals, ",")); err != nil {
				t.Fatal(err)
			}
		}
		var ranks []int
		for _, s := range values(d, "on") {
			ranks = append(ranks, atoi(t, s))
		}
		for _, cpu := range ranks {
			all.load[cpu] = 1
		}
		for _, s := range values(d, "busy") {
			all.load[atoi(t, s)] = 1
		}
		quota, now := cgroup.NewCPUQuota(root), time.Unix(1e9, 0)
		quota.Left(now)
		maps.Copy(root, testtree.Parse(t, d.Input))
		left := quota.Left(now.Add(time.Second))

		var b strings.Builder
		fmt.Fprintf(&b, "%-14s", "rank on")
		for _, cpu := range ranks {
			fmt.Fprintf(&b, "%-12d", cpu)
		}
		for _, policy := range []string{"auto", "conservative", "aggressive"} {
			fmt.Fprintf(&b, "\n%-14s", policy)
			for i, c := range settle(t, policy, all, ranks, left) {
				where := "none"
				if c.CPU != helper.AnyCPU {
					where = fmt.Sprintf("%d %s", c.CPU, distanceNames[all.topology.Distance(ranks[i], c.CPU)])
				}
				fmt.Fprintf(&b, "%-12s", where)
			}
		}
		return trimmed(b.String())
	})
}

// settle lets the helpers of all ranks choose in turn until none moves.
func settle(t *testing.T, policyName string, all view, ranks []int, quotaLeft float64) []Claim {
	policy, err := ParseIdlePolicy(policyName)
	if err != nil {
		t.Fatal(err)
	}
	claims := make([]Claim, len(ranks))
	for i := range claims {
		claims[i] = Claim{Owner: Owner{PID: int32(i + 1)}, CPU: helper.AnyCPU, Bytes: 64 << 20}
	}
	for round := 0; ; round++ {
		before := slices.Clone(claims)
		for i, cpu := range ranks {
			v := all
			v.commCPU, v.self, v.others = cpu, claims[i], slices.Delete(slices.Clone(claims), i, i+1)
			v.quotaUsedUp = isUsedUp(quotaLeft, claims[i].CPU != helper.AnyCPU && !v.isRanks(claims[i].CPU))
			claims[i], _, _ = v.choose(policy) // nobody takes the core of an equal
		}
		if slices.Equal(before, claims) {
			return claims
		}
		if round > 10 {
			t.Fatalf("still moving: %v", claims)
		}
	}
}

// trimmed returns lines without spaces at their ends.
func trimmed(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
