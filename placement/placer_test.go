package placement

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/atomic"

	"pinwheel/helper"
	"pinwheel/internal/cgroup"
	"pinwheel/internal/node"
	"pinwheel/internal/testtree"
	"pinwheel/internal/testwait"
)

// fakeMachine is a root directory with a golden topology and a /proc/stat
// that advances at every reading, by 100 ticks a processor.
type fakeMachine struct {
	fstest.MapFS
	mu    sync.Mutex
	busy  []int // ticks out of 100, per processor
	spent []int
	reads int
}

func newFakeMachine(t *testing.T, name string, busy ...int) *fakeMachine {
	return &fakeMachine{MapFS: readTree(t, name), busy: busy, spent: make([]int, len(busy))}
}

func (m *fakeMachine) setBusy(busy ...int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = busy
}

func (m *fakeMachine) setFiles(files fstest.MapFS) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.MapFS, files)
}

func (m *fakeMachine) ReadFile(name string) ([]byte, error) {
	if name != "proc/stat" {
		return fs.ReadFile(m.MapFS, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	var b strings.Builder
	for cpu, busy := range m.busy {
		m.spent[cpu] += busy
		fmt.Fprintf(&b, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n", cpu, m.spent[cpu], 100*m.reads-m.spent[cpu])
	}
	return []byte(b.String()), nil
}

// placed is one helper's process as its Placer sees it.
type placed struct {
	*Placer
	bytes atomic.Int64
	at    atomic.Pointer[helper.Placement]
}

// place starts a Placer of a process of this job.
func place(t *testing.T, policy IdlePolicy, job string, m *fakeMachine, bytes int64) *placed {
	t.Helper()
	member, err := node.Join(node.Options{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { member.Close() })
	return placeMember(t, policy, member, m, bytes, 2*time.Millisecond, func(err error) { t.Error(err) })
}

func placeMember(
	t *testing.T, policy IdlePolicy, member *node.Member, m *fakeMachine, bytes int64, interval time.Duration, warn func(error),
) *placed {
	t.Helper()
	p := &placed{}
	p.bytes.Store(bytes)
	var err error
	p.Placer, err = StartPlacer(PlacerOptions{
		Policy: policy, Share: true, Bytes: p.bytes.Load, CommCPU: func() int { return 0 },
		Apply: func(to helper.Placement) { p.at.Store(&to) },
		Warn:  warn, Root: m, Node: member, Allowed: []int{0, 1}, Interval: interval,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func (p *placed) on(want helper.Placement) func() bool {
	return func() bool { at := p.at.Load(); return at != nil && *at == want }
}

func TestPlacersAgreeThatTheBiggestProcessKeepsTheOnlyIdleCore(t *testing.T) {
	job, here := jobOf(t), helper.Placement{CPU: 1, Helpers: 1}
	parked := helper.Placement{CPU: helper.AnyCPU, Parked: true, Helpers: 1}
	m := newFakeMachine(t, "vm-2", 95, 2)
	small := place(t, Conservative, job, m, 10<<20)
	testwait.Until(t, "the first process gets the core", small.on(here))
	big := place(t, Conservative, job, newFakeMachine(t, "vm-2", 95, 2), 20<<20)
	testwait.Until(t, "the bigger process takes it", big.on(here))
	testwait.Until(t, "the smaller one parks", small.on(parked))
	small.bytes.Store(40 << 20)
	testwait.Until(t, "it grows and takes the core back", small.on(here))
	testwait.Until(t, "the other one parks", big.on(parked))
	small.Close()
	testwait.Until(t, "it ends and leaves the core", big.on(here))
}

func TestPlacerParksWhenTheCoreBecomesBusyAndResumes(t *testing.T) {
	m := newFakeMachine(t, "vm-2", 95, 2)
	p := place(t, Conservative, jobOf(t), m, 1<<20)
	testwait.Until(t, "placed", p.on(helper.Placement{CPU: 1, Helpers: 1}))
	m.setBusy(95, 90)
	testwait.Until(t, "parked", p.on(helper.Placement{CPU: helper.AnyCPU, Parked: true, Helpers: 1}))
	m.setBusy(95, 1)
	testwait.Until(t, "placed again", p.on(helper.Placement{CPU: 1, Helpers: 1}))
}

// Under auto, a helper without an idle core is not parked.
func TestAutoSharesTheCoreOfItsRank(t *testing.T) {
	job, shared := jobOf(t), helper.Placement{CPU: 0, Helpers: 1, Shared: true}
	m := newFakeMachine(t, "vm-2", 95, 95)
	small := place(t, Auto, job, m, 10<<20)
	testwait.Until(t, "no idle core: with the rank", small.on(shared))
	m.setBusy(95, 2)
	testwait.Until(t, "an idle core is better, without a limit", small.on(helper.Placement{CPU: 1, Helpers: 1}))
	big := place(t, Auto, job, newFakeMachine(t, "vm-2", 95, 2), 20<<20)
	testwait.Until(t, "the bigger process takes it", big.on(helper.Placement{CPU: 1, Helpers: 1}))
	testwait.Until(t, "the smaller one is with its rank again", small.on(shared))
	big.Close()
	testwait.Until(t, "the core is free", small.on(helper.Placement{CPU: 1, Helpers: 1}))
}

func TestHelperIsLimitedUntilTheLoadIsKnown(t *testing.T) {
	for _, c := range []struct {
		policy IdlePolicy
		share  bool
		want   []helper.Placement
	}{
		{Auto, true, []helper.Placement{{CPU: helper.AnyCPU, Helpers: 1, Shared: true}}},
		{Auto, false, nil},
		{Conservative, true, nil},
		{Aggressive, true, nil},
	} {
		var applied []helper.Placement
		p, err := StartPlacer(PlacerOptions{
			Policy: c.policy, Share: c.share, Bytes: func() int64 { return 1 }, CommCPU: func() int { return 0 },
			Apply: func(to helper.Placement) { applied = append(applied, to) },
			Root:  newFakeMachine(t, "vm-2", 95, 95), Allowed: []int{0, 1}, Interval: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		if !slices.Equal(applied, c.want) {
			t.Errorf("policy %d, share %t: placed %v at first, want %v", c.policy, c.share, applied, c.want)
		}
	}
}

func TestAutoWithoutShareParks(t *testing.T) {
	var at atomic.Pointer[helper.Placement]
	p, err := StartPlacer(PlacerOptions{
		Policy: Auto, Bytes: func() int64 { return 1 }, CommCPU: func() int { return 0 },
		Apply: func(to helper.Placement) { at.Store(&to) },
		Root:  newFakeMachine(t, "vm-2", 95, 95), Allowed: []int{0, 1}, Interval: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	testwait.Until(t, "parked", func() bool { return at.Load() != nil && at.Load().Parked })
}

func TestOneBusySecondParksNobody(t *testing.T) {
	m := newFakeMachine(t, "vm-2", 95, 2)
	var applied []helper.Placement
	p := &Placer{
		opt: PlacerOptions{
			Policy: Conservative, Bytes: func() int64 { return 1 }, CommCPU: func() int { return 0 }, Root: m, Allowed: []int{0, 1},
			Apply: func(to helper.Placement) { applied = append(applied, to) },
		},
		quota:   cgroup.NewCPUQuota(m),
		allowed: []int{0, 1},
	}
	p.opt.ensureDefaults()
	topology, err := ReadTopology(m)
	if err != nil {
		t.Fatal(err)
	}
	p.chooser = NewChooser(Conservative, topology, nil, Owner{})
	if p.times, err = readCPUTimes(m); err != nil {
		t.Fatal(err)
	}
	for _, busy := range []int{2, 95, 95, 2, 95, 95} {
		m.setBusy(95, busy)
		p.place()
	}
	if len(applied) != 1 {
		t.Errorf("placed %v within two busy seconds", applied)
	}
	m.setBusy(95, 95)
	p.place()
	want := []helper.Placement{{CPU: 1, Helpers: 1}, {CPU: helper.AnyCPU, Parked: true, Helpers: 1}}
	if !slices.Equal(applied, want) {
		t.Errorf("placed %v, want %v", applied, want)
	}
}

// A helper leaves a processor that is not in the cpuset any more, and one that is offline.
func TestPlacerFollowsTheCpuset(t *testing.T) {
	m := newFakeMachine(t, "intel-hybrid", 95, 2, 2, 2, 2, 2, 2, 2)
	m.setFiles(testtree.Parse(t, `
proc/self/cgroup: 0::/
proc/self/mountinfo: 746 745 0:29 / /sys/fs/cgroup ro - cgroup2 cgroup rw
sys/fs/cgroup/cpuset.cpus.effective: 0-1,4-5`))
	allowed, at := []int{0, 1, 4, 5}, helper.Placement{CPU: helper.AnyCPU}
	p, err := StartPlacer(PlacerOptions{
		Policy: Conservative, Bytes: func() int64 { return 1 }, CommCPU: func() int { return 0 },
		Apply: func(to helper.Placement) { at = to }, Warn: func(err error) { t.Error(err) },
		Root: m, Interval: time.Hour, allowedCPUs: func() ([]int, error) { return allowed, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Close() // the looks are those of the test
	expect := func(what string, want int) {
		t.Helper()
		for range cpusetLooks {
			p.place()
		}
		if at.CPU != want || at.Parked != (want == helper.AnyCPU) {
			t.Errorf("%s: %+v, want processor %d", what, at, want)
		}
	}
	expect("at first", 4)
	allowed = []int{0, 1} // the affinity of a thread, as an OpenMP runtime sets it
	expect("the same cpuset", 4)
	allowed = []int{0, 1, 5}
	m.setFiles(testtree.Parse(t, "sys/fs/cgroup/cpuset.cpus.effective: 0-1,5"))
	expect("4 left the cpuset", 5)
	m.setBusy(95, 2, 2, 2, 2)
	expect("5 is offline", helper.AnyCPU)
}

// The machine is idle but for the rank, and the rank uses what the quota gives.
func TestPlacerParksWhenTheQuotaIsUsedUp(t *testing.T) {
	var applied []helper.Placement
	m := newFakeMachine(t, "docker-v2", 95, 2, 2, 2)
	p, err := StartPlacer(PlacerOptions{
		Policy: Conservative, Bytes: func() int64 { return 1 }, CommCPU: func() int { return 0 },
		Apply: func(to helper.Placement) { applied = append(applied, to) }, Warn: func(err error) { t.Error(err) },
		Root: m, Allowed: []int{0, 1}, Interval: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Close() // the looks are those of the test
	for throttled := range 6 {
		m.setFiles(testtree.Parse(t, fmt.Sprintf("sys/fs/cgroup/cpu.stat: nr_throttled %d", 12+max(0, throttled-2))))
		p.place()
	}
	want := []helper.Placement{{CPU: 1, Helpers: 1}, {CPU: helper.AnyCPU, Parked: true, Helpers: 1, QuotaUsedUp: true}}
	if !slices.Equal(applied, want) {
		t.Errorf("placed %v, want %v", applied, want)
	}
}

func TestAggressivePlacersShareTheCore(t *testing.T) {
	job := jobOf(t)
	a := place(t, Aggressive, job, newFakeMachine(t, "vm-2", 95, 2), 1<<20)
	b := place(t, Aggressive, job, newFakeMachine(t, "vm-2", 95, 2), 9<<20)
	testwait.Until(t, "the first knows of two helpers", a.on(helper.Placement{CPU: 1, Helpers: 2}))
	testwait.Until(t, "the second too", b.on(helper.Placement{CPU: 1, Helpers: 2}))
	b.Close()
	testwait.Until(t, "one is left", a.on(helper.Placement{CPU: 1, Helpers: 1}))
}

func TestPlacerGetsTheCoreOfKilledProcess(t *testing.T) {
	job := jobOf(t)
	_, kill := startPeer(t, job) // 1 GiB, on processor 1
	p := place(t, Conservative, job, newFakeMachine(t, "vm-2", 95, 2), 1<<20)
	testwait.Until(t, "parked: the peer is bigger", p.on(helper.Placement{CPU: helper.AnyCPU, Parked: true, Helpers: 1}))
	kill()
	testwait.Until(t, "the core is free", p.on(helper.Placement{CPU: 1, Helpers: 1}))
}

func TestPlacerWhoseProcessHasLeftGoesByLoadAndWarnsOnce(t *testing.T) {
	left, err := node.Join(node.Options{Job: jobOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	left.Close()
	m := newFakeMachine(t, "vm-2", 95, 2)
	var warnings atomic.Int64
	p := placeMember(t, Conservative, left, m, 1, time.Millisecond, func(error) { warnings.Inc() })
	testwait.Until(t, "placed", func() bool { return p.at.Load() != nil && p.at.Load().CPU == 1 })
	m.setBusy(95, 95)
	testwait.Until(t, "parked", func() bool { return p.at.Load().Parked })
	p.Close()
	if n := warnings.Load(); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}

func TestPlacerWarnsOfAnotherErrorBesideASlowMember(t *testing.T) {
	var got error
	p := Placer{opt: PlacerOptions{Warn: func(err error) { got = err }}, busy: 1}
	if p.warn(node.ErrBusy); got != nil {
		t.Errorf("of the slow member: %v", got)
	}
	if p.warn(fs.ErrPermission); !errors.Is(got, fs.ErrPermission) {
		t.Errorf("%v", got)
	}
}

func TestPlacerWarnsOfAStoppedMemberButNotOfASlowOne(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	other, err := node.Join(node.Options{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	keep := func() (release func()) {
		kept, released, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			if err := other.UpdateClaims(func(all []node.Claim) []node.Claim {
				close(kept)
				<-released
				return all
			}); err != nil {
				t.Error(err)
			}
		}()
		<-kept
		return sync.OnceFunc(func() { close(released); <-done })
	}
	member, err := node.Join(node.Options{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { member.Close() }) // after the Placer
	release := keep()
	defer func() { release() }()
	m := newFakeMachine(t, "vm-2", 95, 2)
	var warnings atomic.Int64
	p := placeMember(t, Conservative, member, m, 1, time.Millisecond, func(error) { warnings.Inc() })
	testwait.Until(t, "placed by load alone", func() bool { return p.at.Load() != nil && p.at.Load().CPU == 1 })
	if n := warnings.Load(); n != 0 {
		t.Errorf("%d warnings of a member that was slow", n)
	}
	release()
	release = keep()
	testwait.Until(t, "a warning of a member that is stopped", func() bool { return warnings.Load() == 1 })
}
