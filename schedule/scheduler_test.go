package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// TestScheduler runs the programs of testdata/scheduler and draws what was
// registered when, one row for each region:
//
//	#  in use        =  registered and idle     .  not registered
//	L  in use, and the communication path had to register it (first or late)
func TestScheduler(t *testing.T) {
	datadriven.Walk(t, "testdata/scheduler", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			policy, columnMs := "pinwheel", 5
			d.MaybeScanArgs(t, "policy", &policy)
			d.MaybeScanArgs(t, "column-ms", &columnMs)
			s := newSimulation(policy)
			s.script(t, strings.Split(d.Input, "\n"))
			return s.chart(int64(columnMs) * ms)
		})
	})
}

const (
	ms = int64(1_000_000)
	us = int64(1_000)
)

// testCosts make a region of 100 pages cost 100 us to register and 50 us to release.
var testCosts = verbs.Costs{
	Register:   verbs.Cost{PerPageNs: 900, FixedNs: 10_000},
	Deregister: verbs.Cost{PerPageNs: 400, FixedNs: 10_000},
}

// simulation drives a Scheduler in virtual time: the program computes and
// uses regions, the helper follows on a core of its own.
type simulation struct {
	s       *Scheduler
	nowNs   int64 // of the program
	freeNs  int64 // of the helper
	events  []Event
	inUse   map[mem.RegionID]bool
	on      map[mem.RegionID]bool
	known   map[mem.RegionID]bool
	marks   map[mem.RegionID][]mark
	first   int
	late    int
	needs   int
	actions int
	fail    func(Action) error
	slowNs  int64 // what the next registration takes beyond its cost
	pages   map[mem.RegionID]uint64
	spentNs int64 // of the helper
}

// mark says what a region is from atNs on.
type mark struct {
	atNs int64
	what byte
}

// otherPages is what else is registered beside the regions of a simulation, 64 GiB: so much that their memory is not worth a late
// use within a second.
const otherPages = 64 << 18

func newSimulation(policy string) *simulation {
	po := predictor.Options{Window: 2}
	p, opt, ok := NewPaper(policy, po, testCosts)
	if !ok {
		p, opt = predictor.NewPinwheel(po), SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true}
	}
	s := NewScheduler(p, opt)
	s.cost.pages = otherPages
	return &simulation{s: s, inUse: map[mem.RegionID]bool{}, on: map[mem.RegionID]bool{},
		known: map[mem.RegionID]bool{}, marks: map[mem.RegionID][]mark{},
		pages: map[mem.RegionID]uint64{}}
}

// pagesOf returns the size of a region: 100 pages unless the test says otherwise.
func (v *simulation) pagesOf(id mem.RegionID) uint64 { return cmp.Or(v.pages[id], 100) }

func (v *simulation) mark(id mem.RegionID, atNs int64, what byte) {
	v.marks[id] = append(v.marks[id], mark{atNs, what})
}

// helper lets the helper work until the program's time.
func (v *simulation) helper() {
	for steps := 0; v.freeNs <= v.nowNs; steps++ {
		if steps > 100000 {
			panic("the scheduler spins")
		}
		restNs := v.s.Rest(v.freeNs)
		if len(v.events) > 0 && restNs <= v.freeNs {
			v.freeNs = max(v.freeNs, v.events[0].EndNs)
			if v.freeNs > v.nowNs {
				return
			}
			v.s.Observe(v.events[0], v.freeNs)
			v.events = v.events[1:]
			v.spend(us)
		}
		a := v.s.Next(v.freeNs)
		if restNs > v.freeNs && a.Kind < Register {
			if a.Kind == Wait {
				restNs = min(restNs, max(a.UntilNs, v.freeNs+1))
			}
			if v.freeNs = min(restNs, v.nowNs); v.freeNs == v.nowNs {
				return
			}
			continue
		}
		switch a.Kind {
		case Idle:
			if len(v.events) == 0 {
				v.freeNs = v.nowNs
				return
			}
		case Wait:
			if len(v.events) == 0 {
				v.freeNs = max(v.freeNs, min(a.UntilNs, v.nowNs))
				if a.UntilNs > v.nowNs {
					return
				}
			}
		default:
			v.carryOut(a)
		}
	}
}

func (v *simulation) carryOut(a Action) {
	v.actions++
	startNs := v.freeNs
	var err error
	if v.fail != nil {
		err = v.fail(a)
	}
	switch {
	case err != nil:
	case a.Kind == Register && !v.on[a.Region]:
		v.freeNs += testCosts.Register.Ns(v.pagesOf(a.Region)) + v.slowNs
		v.slowNs = 0
		v.on[a.Region] = true
		v.mark(a.Region, startNs, '=')
	case a.Kind == Deregister && v.inUse[a.Region]:
		err = errors.New("in use")
	case a.Kind == Deregister && v.on[a.Region]:
		v.freeNs += testCosts.Deregister.Ns(v.pagesOf(a.Region))
		v.on[a.Region] = false
		v.mark(a.Region, v.freeNs, '.')
	}
	v.freeNs += us
	v.spend(v.freeNs - startNs)
	v.s.Done(a, startNs, v.freeNs, err)
}

// spend tells of processor time of the helper.
func (v *simulation) spend(ns int64) {
	v.spentNs += ns
	v.s.Spend(ns, v.freeNs)
}

// use is one call: some regions are used at the same time.
func (v *simulation) use(ids []mem.RegionID, site uint64, durationNs int64) {
	v.helper()
	startNs := v.nowNs
	for _, id := range ids {
		what := byte('#')
		if v.known[id] {
			v.needs++
		}
		if !v.on[id] {
			what = 'L'
			if v.known[id] {
				v.late++
			} else {
				v.first++
			}
		}
		v.on[id], v.inUse[id], v.known[id] = true, true, true
		v.mark(id, startNs, what)
	}
	v.nowNs += durationNs
	v.helper()
	for _, id := range ids {
		v.inUse[id] = false
		v.mark(id, v.nowNs, '=')
		v.events = append(v.events, Event{Pages: v.pagesOf(id), Use: predictor.Use{
			Region: id, Range: mem.Range{Start: mem.Addr(id) << 30, End: mem.Addr(id)<<30 + mem.Addr(v.pagesOf(id)*mem.PageSize)},
			StartNs: startNs, EndNs: v.nowNs, Op: 1, Frames: [predictor.MaxFrames]uint64{site, 7},
		}})
	}
	v.events = v.events[max(0, len(v.events)-1024):] // DQ overruns
	v.helper()
}

// script runs lines of "compute MS", "use ID[,ID...] site=N MS" and "loop N" ... "end".
func (v *simulation) script(t *testing.T, lines []string) {
	for i := 0; i < len(lines); i++ {
		f := strings.Fields(lines[i])
		number := func(s string) int64 {
			n, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatalf("line %q: %v", lines[i], err)
			}
			return int64(n * float64(ms))
		}
		switch f[0] {
		case "compute":
			v.nowNs += number(f[1])
			v.helper()
		case "use":
			var ids []mem.RegionID
			for _, s := range strings.Split(f[1], ",") {
				ids = append(ids, mem.RegionID(number(s)/ms))
			}
			v.use(ids, uint64(number(strings.TrimPrefix(f[2], "site="))/ms), number(f[3]))
		case "loop":
			depth, end := 1, i
			for depth > 0 {
				end++
				switch strings.Fields(lines[end])[0] {
				case "loop":
					depth++
				case "end":
					depth--
				}
			}
			for range number(f[1]) / ms {
				v.script(t, lines[i+1:end])
			}
			i = end
		default:
			t.Fatalf("unknown line %q", lines[i])
		}
	}
}

func (v *simulation) chart(columnNs int64) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(v.marks)) {
		fmt.Fprintf(&b, "%d ", id)
		marks, what := v.marks[id], byte('.')
		for at := int64(0); at < v.nowNs; at += columnNs {
			show := what
			for len(marks) > 0 && marks[0].atNs < at+columnNs {
				what = marks[0].what
				if show != 'L' && (show != '#' || what == 'L') {
					show = what
				}
				marks = marks[1:]
			}
			b.WriteByte(show)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "first %d, late %d of %d later needs, %d actions\n", v.first, v.late, v.needs, v.actions)
	return b.String()
}

func TestFailedRegistrationIsLeftToTheCommunicationPath(t *testing.T) {
	v := newSimulation("pinwheel")
	v.fail = func(a Action) error {
		if a.Kind == Register {
			return verbs.ErrPinnedMemory
		}
		return nil
	}
	for range 10 {
		v.nowNs += 50 * ms
		v.use([]mem.RegionID{1}, 10, ms)
	}
	if v.late == 0 || v.actions > 40 {
		t.Errorf("%d late registrations and %d actions: a failure must neither be hidden nor repeated without end", v.late, v.actions)
	}
}

// Nothing registers memory that the cache has never had, though its uses past the cache predict the next.
func TestHelperActsOnARegionOnceItWentThroughTheCache(t *testing.T) {
	s := NewScheduler(predictor.NewPinwheel(predictor.Options{}), SchedulerOptions{Costs: testCosts, KeepUnknown: true})
	s.cost.pages = otherPages
	observe := func(atMs int64, early bool) {
		s.Observe(Event{Use: predictor.Use{Region: 1, StartNs: atMs * ms, EndNs: (atMs + 1) * ms, Early: early}, Pages: 100},
			(atMs+1)*ms)
	}
	kinds := func(fromMs, untilMs int64) (kinds []ActionKind) {
		for now := fromMs * ms; now < untilMs*ms; now += ms {
			if a := s.Next(now); a.Kind == Register || a.Kind == Deregister {
				kinds = append(kinds, a.Kind)
				s.Done(a, now, now, nil)
			}
		}
		return kinds
	}
	observe(0, true)
	observe(100, true)
	if got := kinds(101, 10_000); len(got) != 0 {
		t.Errorf("%v for a region that was never registered", got)
	}
	observe(10_000, false)
	observe(10_100, false)
	if got := kinds(10_101, 10_200); !slices.Equal(got, []ActionKind{Deregister, Register}) {
		t.Errorf("%v once it was", got)
	}
}

func TestForgottenRegionIsNeverActedUpon(t *testing.T) {
	v := newSimulation("pinwheel")
	for range 6 {
		v.nowNs += 50 * ms
		v.use([]mem.RegionID{1}, 10, ms)
		v.nowNs += 10 * ms
		v.use([]mem.RegionID{2}, 20, ms)
	}
	v.s.Forget(1)
	delete(v.marks, 1)
	v.fail = func(a Action) error {
		if a.Region == 1 {
			t.Errorf("%+v on a forgotten region", a)
		}
		return nil
	}
	for range 6 {
		v.nowNs += 60 * ms
		v.use([]mem.RegionID{2}, 20, ms)
	}
}

// The same calls give the same actions, whatever the program does, and the
// scheduler never asks for what makes no sense: an action on an unknown
// region, a registration of what is registered, a wait for the past.
func TestSchedulerIsDeterministicAndConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]string{"pinwheel", Paper, PaperStrict}).Draw(t, "policy")
		a, b := newSimulation(policy), newSimulation(policy)
		var log [2][]Action
		for i, v := range []*simulation{a, b} {
			v.fail = func(act Action) error {
				log[i] = append(log[i], act)
				if !v.known[act.Region] {
					t.Fatalf("%+v on a region that was never used", act)
				}
				if act.Kind == Deregister && !v.on[act.Region] {
					t.Fatalf("%+v of a region that is not registered", act)
				}
				if uint64(act.Region)%7 == 6 { // never can be registered again
					return verbs.ErrPinnedMemory
				}
				return nil
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			ids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 8), 1, 3, rapid.ID).Draw(t, "regions")
			site := rapid.Uint64Range(1, 3).Draw(t, "site")
			computeNs := rapid.SampledFrom([]int64{0, 30 * us, ms, 20 * ms, 2000 * ms}).Draw(t, "compute")
			for _, v := range []*simulation{a, b} {
				v.nowNs += computeNs
				regions := make([]mem.RegionID, len(ids))
				for i, id := range ids {
					regions[i] = mem.RegionID(id)
				}
				v.use(regions, site, ms)
			}
		}
		if !slices.Equal(log[0], log[1]) {
			t.Fatalf("two runs differ:\n%v\n%v", log[0], log[1])
		}
	})
}

func BenchmarkSchedulerEvent(b *testing.B) {
	v := newSimulation("pinwheel")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		v.nowNs += 5 * ms
		v.events = append(v.events[:0], Event{Pages: 100, Use: predictor.Use{
			Region: mem.RegionID(1 + i%16), StartNs: v.nowNs - ms, EndNs: v.nowNs, Frames: [predictor.MaxFrames]uint64{uint64(i % 16)},
		}})
		v.helper()
		clear(v.marks)
	}
}

// use returns the event of a use that took no time.
func use(id mem.RegionID, startNs int64) *Event {
	e := &Event{Pages: 1}
	e.Region, e.StartNs, e.EndNs = id, startNs, startNs
	return e
}
