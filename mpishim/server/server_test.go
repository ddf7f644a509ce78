//go:build cgo

package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"pinwheel/internal/clock"
	"pinwheel/internal/engine"
	"pinwheel/internal/settings"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// States of a mailbox and a question, as shared.h has them.
const (
	mailIdle, mailAsked, mailDone, mailAbandoned = 0, 1, 3, 4
	askAcquire, askRelease, askClean             = 1, 2, 4
	eventEarly                                   = 1 << 63
	modePlain, modeManaged, modeUnanswered       = 0, 1, 2
)

// during is a provider that lets something happen while it registers.
type during struct {
	*sim.Provider
	then, thenRelease func()
}

func (p *during) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	p.then()
	return p.Provider.Register(r, a)
}

func (p *during) Deregister(g verbs.Region) error {
	p.thenRelease()
	return p.Provider.Deregister(g)
}

// asked is a server without C: one domain over a simulated device. ask puts a
// question about 16 pages, or the reference of the answer before, into a thread's
// mailbox and lets the server look at it.
func asked(t *testing.T) (p *during, s *server, ask func(question uint32) (state uint32, errno syscall.Errno)) {
	t.Helper()
	p = &during{sim.New(sim.Options{}), func() {}, func() {}}
	s = &server{set: settings.Default(), group: regcache.NewGroup(mem.Unlimited)}
	s.set.Log = "off"
	s.engine = s.newEngine()
	allocate(&s.sh)
	s.sh.mode = modeManaged
	s.clock = clock.NewTicks(func() uint64 { return uint64(clock.NowNs()) }, clock.NowNs)
	cache, err := regcache.New(p, regcache.Options{Group: s.group, OnFault: s.faulted})
	if err != nil {
		t.Fatal(err)
	}
	local, err := cache.Thread()
	if err != nil {
		t.Fatal(err)
	}
	s.domains[0].Store(&domain{cache: cache, local: local})
	allocate(&s.sh.threads)
	thread := s.sh.threads
	return p, s, func(question uint32) (uint32, syscall.Errno) {
		set32(&thread.mail.ask, question)
		set(&thread.mail.addr, 1<<20)
		set(&thread.mail.bytes, 16*mem.PageSize)
		thread.mail.access = 1
		thread.mail.state = mailAsked
		s.serveMailbox(thread)
		return uint32(thread.mail.state), syscall.Errno(thread.mail.error)
	}
}

func set32[T ~uint32](p *T, v uint32) { *p = T(v) }

func TestAnsweredQuestionHoldsAReference(t *testing.T) {
	p, _, ask := asked(t)
	if state, errno := ask(askAcquire); state != mailDone || errno != 0 {
		t.Fatalf("state %d, %v", state, errno)
	}
	if ask(askClean); p.Stats().PinnedBytes == 0 {
		t.Error("released under the reference")
	}
	if state, errno := ask(askRelease); state != mailDone || errno != 0 {
		t.Fatalf("state %d, %v", state, errno)
	}
	if ask(askClean); p.Stats().PinnedBytes != 0 {
		t.Errorf("%d bytes are still pinned", p.Stats().PinnedBytes)
	}
}

func TestAbandonedQuestionLeavesNothingBehind(t *testing.T) {
	p, s, ask := asked(t)
	state := at32(&s.sh.threads.mail.state)
	p.then = func() { state.Store(mailAbandoned) } // as give_up of thread.c
	if state, _ := ask(askAcquire); state != mailIdle {
		t.Fatalf("state %d: the thread can't ask again", state)
	}
	p.then = func() {}
	if ask(askClean); p.Stats().PinnedBytes != 0 {
		t.Errorf("%d bytes are held for nobody", p.Stats().PinnedBytes)
	}
}

// The helper learns of uses past the cache, under the region that later stands for them.
func TestUsePastTheCacheIsOneOfItsRegion(t *testing.T) {
	p, s, ask := asked(t)
	const read = 1
	q := newQueued()
	q.push(eventEarly | 1<<domainShift | read) // of another domain
	q.push(eventEarly | read)
	q.takeEarly(s.domains.at(0))
	q.push(eventEarly | read) // too late
	q.push(7)
	var e schedule.Event
	if !q.Pop(&e) || !e.Early || p.Stats().PinnedBytes != 0 {
		t.Fatalf("%+v, %d bytes pinned", e, p.Stats().PinnedBytes)
	}
	d, id := s.domains.split(e.Region)
	if r, known := d.cache.Range(id); !known || !r.Contains(e.Range) {
		t.Errorf("region %d of %v, %v, for %v", id, r, known, e.Range)
	}
	if !q.Pop(&e) || e.Region != 7 || e.Early {
		t.Errorf("then %+v", e)
	}
	if state, errno := ask(askAcquire); state != mailDone || errno != 0 {
		t.Errorf("state %d, %v", state, errno)
	}
}

// The helper hears of no end of what is not cached, and the first domain's tag is not that of others.
func TestWhatIsNotCachedHasNoRegionInAnyDomain(t *testing.T) {
	_, s, _ := asked(t)
	first := s.domains.at(0)
	for index := range uint32(2) {
		d := &domain{index: index, generation: 3 * index, cache: first.cache, local: first.local}
		for name, acquire := range map[string]func(mem.Range, verbs.Access) (regcache.Ref, regcache.Outcome, error){
			"cached": d.local.Acquire, "not cached": d.local.Register,
		} {
			ref, _, err := acquire(mem.Range{Start: 1 << 20, End: 2 << 20}, 1)
			if err != nil {
				t.Fatal(err)
			}
			want := mem.RegionID(0)
			if name == "cached" {
				want = ref.ID() | d.tag()
			}
			if got := d.tagged(ref.ID()); got != want || (got != 0) != (name == "cached") {
				t.Errorf("domain %d, %s: region %#x, want %#x", index, name, got, want)
			}
			d.local.Release(ref)
		}
	}
}

func TestRefusedRegistrationTellsItsErrno(t *testing.T) {
	p, s, ask := asked(t)
	p.Provider = sim.New(sim.Options{Fail: func(sim.Op, mem.Range) error {
		return &verbs.Error{Op: "registration", Kind: verbs.ErrPinnedMemory, Errno: syscall.ENOMEM}
	}})
	if state, errno := ask(askAcquire); state != mailDone || errno != syscall.ENOMEM {
		t.Errorf("state %d, %v", state, errno)
	}
	if s.sh.mode != modeManaged {
		t.Error("one refusal ended all")
	}
}

func TestPanicIsAnsweredAndEndsManaging(t *testing.T) {
	p, s, ask := asked(t)
	p.then = func() { panic("a fault of ours") }
	if state, errno := ask(askAcquire); state != mailDone || errno != syscall.EIO {
		t.Errorf("state %d, %v", state, errno)
	}
	if s.sh.mode != modePlain {
		t.Error("it goes on as if nothing had happened")
	}
}

func TestPanicThatNoAnswerTellsOfEndsManagingToo(t *testing.T) {
	p, s, ask := asked(t)
	if state, errno := ask(askAcquire); state != mailDone || errno != 0 {
		t.Fatalf("state %d, %v", state, errno)
	}
	if err := s.domains.at(0).cache.Invalidate(mem.Range{Start: 1 << 20, End: 1<<20 + 1}); err != nil {
		t.Fatal(err)
	}
	p.thenRelease = func() { p.thenRelease = func() {}; panic("a fault of ours") }
	if state, errno := ask(askRelease); state != mailDone || errno != 0 {
		t.Errorf("state %d, %v: the release itself went well", state, errno)
	}
	if s.sh.mode != modePlain {
		t.Error("it goes on as if nothing had happened")
	}
	if ask(askClean); p.Stats().PinnedBytes != 0 {
		t.Errorf("%d bytes are still pinned", p.Stats().PinnedBytes)
	}
}

func TestServerThatAnswersAgainManagesAgain(t *testing.T) {
	_, s, _ := asked(t)
	for mode, want := range map[uint32]uint32{modeUnanswered: modeManaged, modePlain: modePlain} {
		at32(&s.sh.mode).Store(mode)
		if s.resume(); at32(&s.sh.mode).Load() != want {
			t.Errorf("mode %d becomes %d, want %d", mode, s.sh.mode, want)
		}
	}
}

// A thread may have asked for its first large message before another one calls MPI_Finalize.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	testwait.Bound(t)
	_, s, _ := asked(t)
	t.Cleanup(s.stopHelper)
	s.stop()
	if s.begin(); s.engine.Helped() || s.engine.Node() != nil {
		t.Error("a helper that nobody stops, or a member that does not leave")
	}
}

// What there was no room for is charged as far as there is some, so that others don't take that, too.
func TestWhatIsOwedIsChargedInPart(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ roomMiB, owedMiB, leastMiB int64 }{{150, 200, 149}, {300, 200, 200}, {0, 200, 0}} {
		_, s, _ := asked(t)
		s.group = regcache.NewGroup(max(c.roomMiB*mib, 1))
		at64(&s.sh.plain_bytes).Store(uint64(c.owedMiB * mib))
		at64(&s.sh.plain_room).Store(uint64(c.owedMiB * mib))
		s.settlePlain()
		if s.plain.charged < c.leastMiB*mib || s.plain.charged > c.roomMiB*mib || s.group.Bytes() != s.plain.charged {
			t.Errorf("%+v: charged %d MiB, the group has %d", c, s.plain.charged/mib, s.group.Bytes()/mib)
		}
	}
}

// The user reads which of two budgets it is that has no room.
func TestBudgetThatHasNoRoomIsNamed(t *testing.T) {
	for budget, want := range map[int64]string{1 << 20: "PINWHEEL_BUDGET ", mem.Unlimited: "PINWHEEL_NODE_BUDGET "} {
		_, s, _ := asked(t)
		var said []string
		s.engine = engine.New(func(m string) { said = append(said, m) }, nil)
		s.budgetBytes = budget
		at64(&s.sh.plain_bytes).Store(2 << 20)
		s.exceedForPlain()
		if len(said) != 1 || !strings.HasPrefix(said[0], want) {
			t.Errorf("budget %d: %q, want one that begins with %q", budget, said, want)
		}
	}
}

func TestErrorsBecomeErrnos(t *testing.T) {
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{nil, 0},
		{&verbs.Error{Op: "registration", Kind: verbs.ErrRegions, Errno: syscall.EAGAIN}, syscall.EAGAIN},
		{fmt.Errorf("budget: %w", verbs.ErrPinnedMemory), syscall.ENOMEM},
		{errors.New("whatever"), syscall.EIO},
	} {
		if got := syscall.Errno(errnoFor(c.err)); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestFilesAreNamedByTheRankInMPI(t *testing.T) {
	t.Setenv("OMPI_COMM_WORLD_RANK", "7") // of another job, around this one
	s := &server{}
	allocate(&s.sh)
	s.sh.rank = 3
	if got := s.expand("a.%r"); got != "a.3" {
		t.Errorf("rank 3: %q", got)
	}
	s.sh.rank = -1
	if got := s.expand("a.%r"); got != "a.7" {
		t.Errorf("without MPI: %q", got)
	}
}
