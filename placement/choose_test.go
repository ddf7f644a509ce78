package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"

	"pinwheel/helper"
	"pinwheel/internal/cpulist"
	"pinwheel/mem"
)

// TestIdlePolicy runs one decision per command:
//
//	choose policy=conservative machine=vm-2 comm=0 bytes=64M [now=1] [busy=(0,1:0.3)] [others=(1:32M,none:1G)]
//
// busy lists processors with their load (0.9 if not given); others lists the
// claims of other processes as processor:bytes. Processors are all allowed
// unless allowed=0-3 says otherwise.
func TestIdlePolicy(t *testing.T) {
	datadriven.RunTest(t, "testdata/idle", func(t *testing.T, d *datadriven.TestData) string {
		var machine, policyName string
		d.ScanArgs(t, "machine", &machine)
		d.ScanArgs(t, "policy", &policyName)
		policy, err := ParseIdlePolicy(policyName)
		if err != nil {
			t.Fatal(err)
		}
		v := view{topology: readTopology(t, readTree(t, machine)), load: map[int]float64{}, commCPU: helper.AnyCPU}
		v.self.CPU = helper.AnyCPU
		v.allowed = v.topology.Online()
		d.MaybeScanArgs(t, "comm", &v.commCPU)
		d.MaybeScanArgs(t, "now", &v.self.CPU)
		for _, s := range values(d, "allowed") {
			if v.allowed, err = cpulist.Parse(s); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range values(d, "busy") {
			cpu, load, ok := strings.Cut(s, ":")
			if !ok {
				load = "0.9"
			}
			v.load[atoi(t, cpu)], err = strconv.ParseFloat(load, 64)
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range values(d, "others") {
			cpu, size, _ := strings.Cut(s, ":")
			c := Claim{Owner: Owner{PID: int32(i + 1)}, CPU: helper.AnyCPU, Bytes: parseBytes(t, size)}
			if cpu != "none" {
				c.CPU = atoi(t, cpu)
			}
			v.others = append(v.others, c)
		}
		for _, s := range values(d, "bytes") {
			v.self.Bytes = parseBytes(t, s)
		}
		c, loser, withRank := v.choose(policy)
		switch {
		case withRank && c.CPU == helper.AnyCPU:
			return "with the rank, wherever that is\n"
		case withRank:
			return fmt.Sprintf("processor %d, with the rank and %d others\n", c.CPU, v.helpersOn(c.CPU))
		case c.CPU == helper.AnyCPU:
			return "no helper\n"
		case loser >= 0:
			return fmt.Sprintf("processor %d, taken from process %d\n", c.CPU, v.others[loser].Owner.PID)
		default:
			return fmt.Sprintf("processor %d, with %d others\n", c.CPU, v.helpersOn(c.CPU))
		}
	})
}

func values(d *datadriven.TestData, key string) []string {
	arg, _ := d.Arg(key)
	return arg.Vals
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func parseBytes(t *testing.T, s string) int64 {
	n, err := mem.ParseBytes(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLoadIsTheBusyShareOfTheIntervalAlone(t *testing.T) {
	read := func(text string) map[int]cpuTimes {
		times, err := readCPUTimes(fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return times
	}
	before := read("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 900 0 100 1000 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\ncpu3 1 0 0 0 0 0 0 0\nintr 5\ncpu7 1 1 1 1 1 1 1 1 1 1\n")
	// Processor 0: 10 user, 5 nice, 2 system, 60 idle, 20 iowait, 1 irq, 1
	// softirq, 1 steal; guest time is within user time.
	after := read("cpu0 910 5 102 1060 20 1 1 1 10 5\ncpu1 0 0 0 0 0 0 0 0 0 0\ncpu2 5 5 5 5 5 5 5 5 5 5\ncpu3 0 0 0 9 0 0 0 0\n")
	got := loads(before, after)
	if len(got) != 1 || got[0] != 0.20 {
		t.Errorf("loads = %v, want 0.20 of processor 0; 1 had no tick, 2 is new, 3 went backwards", got)
	}
	for _, text := range []string{"cpu0 1 x 3 4\n"} {
		if _, err := readCPUTimes(fstest.MapFS{"proc/stat": &fstest.MapFile{Data: []byte(text)}}); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestParseIdlePolicyKnowsEverySettingsValue(t *testing.T) {
	want := map[string]IdlePolicy{"auto": Auto, "conservative": Conservative, "aggressive": Aggressive, "off": Off}
	for s, p := range want {
		if got, err := ParseIdlePolicy(s); got != p || err != nil {
			t.Errorf("ParseIdlePolicy(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseIdlePolicy("on"); err == nil {
		t.Error("\"on\" was accepted")
	}
}

// The claims must settle: when every process in turn chooses with the same
// view until nothing changes, the idle cores go to the biggest processes.
func TestConservativeClaimsSettleOnTheBiggestProcesses(t *testing.T) {
	topology := readTopology(t, readTree(t, "epyc-2s-ccx"))
	load := map[int]float64{}
	for _, cpu := range []int{0, 1, 2, 3, 4} {
		load[cpu] = 0.95
	}
	var claims []Claim
	for i, bytes := range []int64{10, 20, 40, 80, 160} {
		claims = append(claims, Claim{Owner: Owner{PID: int32(i)}, CPU: helper.AnyCPU, Bytes: bytes << 20})
	}
	for round := 0; ; round++ {
		before := slices.Clone(claims)
		for i := range claims {
			v := view{topology: topology, allowed: topology.Online(), load: load, commCPU: i, self: claims[i]}
			v.others = slices.Delete(slices.Clone(claims), i, i+1)
			c, loser, _ := v.choose(Conservative)
			if loser >= 0 {
				at := slices.IndexFunc(claims, func(c Claim) bool { return c.Owner == v.others[loser].Owner })
				claims[at].CPU = helper.AnyCPU
			}
			claims[i] = c
		}
		if slices.Equal(before, claims) {
			break
		}
		if round > 10 {
			t.Fatalf("still moving: %v", claims)
		}
	}
	// Cores 5, 6 and 7 are idle with both their threads.
	used := map[int]bool{}
	for i, c := range claims {
		if has := c.CPU != helper.AnyCPU; has != (i >= 2) {
			t.Errorf("process with %d MiB: processor %d", c.Bytes>>20, c.CPU)
		} else if has {
			used[topology.Core(c.CPU)[0]] = true
		}
	}
	if len(used) != 3 || !used[5] || !used[6] || !used[7] {
		t.Errorf("helpers on cores %v, want 5, 6 and 7, one each", used)
	}
}
