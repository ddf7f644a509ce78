package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"syscall"
	"unsafe"

	"pinwheel/internal/clock"
	"pinwheel/internal/engine"
	"pinwheel/internal/fault"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// server answers the questions of the C threads, one at a time, on a thread of
// its own. No answer waits for the program, so each question gets one.
type server struct {
	sh       *C.struct_pw_shared
	set      settings.Settings
	clock    *clock.Ticks
	engine   *engine.Engine
	group    *regcache.Group
	domains  domains
	attached map[*C.struct_pw_thread]bool // threads whose DQ the helper reads
	record   *recorder
	joined   bool // join was called
	begun    bool // begin was called
	stopped  bool
	ended    bool

	opening   *opening // a watcher that is being opened; nil: none
	asksWatch bool     // one was ever asked for
	openingNs int64    // processor time that opening domains has taken
	openerNs  int64    // that of threads beside the server

	budgetBytes int64          // of the process, as the settings have it
	demand      *demand        // nil without a helper, and for a transport that links us
	plain       plain          // what is registered past the caches
	dropped     regcache.Stats // sums over the domains that were dropped
	mapping     string         // how changes of mappings are noticed, once there was a domain
}

func newServer(sh *C.struct_pw_shared, set settings.Settings) *server {
	s := &server{sh: sh, set: set}
	s.engine = s.newEngine()
	s.clock = newTicks(sh)
	return s
}

// newEngine returns an engine that says what PINWHEEL_LOG asks for.
func (s *server) newEngine() *engine.Engine {
	var debug func(string)
	if s.set.Log == "debug" {
		debug = s.warn
	}
	return engine.New(s.warn, debug)
}

// manages reports whether registrations are cached at all.
func (s *server) manages() bool { return !s.set.Disable && s.set.Policy != "on-demand" }

// start prepares what every rank needs. The rest waits for the first large message: see begin.
func (s *server) start() {
	defer s.contain()
	s.sh.threshold = C.uint64_t(max(s.set.ThresholdBytes, 1))
	at64(&s.sh.notice).Store(uint64(s.sh.threshold))
	if s.manages() {
		s.startManaging()
	}
	s.startRecording()
}

func (s *server) startManaging() {
	s.budgetBytes = bounded(s.set.BudgetBytes)
	s.group = processGroup(s.budgetBytes)
	if bounded(s.set.NodeBudgetBytes) != mem.Unlimited { // what the transport registers by itself counts from now on
		s.begin()
	}
	if s.sh.linked == 0 {
		at64(&s.sh.notice).Store(uint64(s.sh.threshold) / nearShare)
	}
	at32(&s.sh.mode).Store(C.PW_MANAGED)
}

// begin joins the processes of the job on this node and starts the helper, once. A rank whose messages are all small,
// which would have nothing to say to the others, does not pay for it. After stop nothing would end them again: a thread
// may have asked beside MPI_Finalize.
func (s *server) begin() {
	if s.begun || s.stopped || !s.manages() {
		return
	}
	s.begun = true
	s.join()
	s.startPlain()
	s.startHelper()
	s.engine.FollowNode()
}

// join joins the processes of the job on this node, once.
func (s *server) join() {
	if s.joined {
		return
	}
	s.joined = true
	s.engine.JoinNode(engine.NodeOptions{
		Job: settings.Job(), Rank: s.rank(), BudgetBytes: bounded(s.set.NodeBudgetBytes),
		Ranks: settings.LocalRanks(), Group: s.group,
		Settle: s.settlePlain,
	})
}

// nearShare is the part of the threshold from which on a message says that large ones may follow. Programs that double
// their messages pass a quarter twice, and few whose messages reach it stay below the threshold.
const nearShare = 4

// prepare begins once a message has come near the threshold, and has the watch of mappings opened. Until that is open,
// each use of a large message is registered, so a watch that is open by the first one is worth more than one that no
// message needs costs.
func (s *server) prepare() {
	if s.asksWatch || s.stopped || at32(&s.sh.near).Load() == 0 {
		return
	}
	defer s.contain()
	if s.begin(); s.begun {
		s.asksWatch, s.opening = true, s.newOpening()
	}
}

// bounded returns a budget of the settings as a bound: what the kernel permits is none.
func bounded(bytes int64) int64 {
	if bytes == settings.Auto {
		return mem.Unlimited
	}
	return max(bytes, 1)
}

// rank returns the rank of this process, as MPI has it or else its launcher.
func (s *server) rank() int {
	if s.sh.rank >= 0 {
		return int(s.sh.rank)
	}
	return settings.Rank()
}

// loop serves the threads until the server ends.
func (s *server) loop() {
	for {
		doorbell := at32(&s.sh.doorbell).Load()
		s.publish()
		s.prepare()
		s.opened()
		for t := s.threads(); t != nil; t = t.next {
			if s.serveMailbox(t); s.ended {
				return // the next server answers later questions
			}
		}
		s.resume()
		if at32(&s.sh.doorbell).Load() == doorbell {
			C.pw_futex_wait(&s.sh.doorbell, C.uint32_t(doorbell))
		}
	}
}

// resume ends a time in which a thread got no answer and the others did not ask. Nobody else has ended managing
// meanwhile.
func (s *server) resume() {
	if at32(&s.sh.mode).CompareAndSwap(C.PW_UNANSWERED, C.PW_MANAGED) {
		s.engine.Warn("resume", "the helper library answers again")
	}
}

// threads returns the list of all threads that ever asked.
func (s *server) threads() *C.struct_pw_thread {
	return (*C.struct_pw_thread)(pointerAt(unsafe.Pointer(&s.sh.threads)).Load())
}

// serveMailbox serves one thread, if it asks.
func (s *server) serveMailbox(t *C.struct_pw_thread) {
	state := at32(&t.mail.state)
	if !state.CompareAndSwap(C.PW_MAIL_ASKED, C.PW_MAIL_SERVING) {
		return
	}
	t.mail.error = C.int32_t(syscall.EIO) // should it panic
	i := uint32(t.mail.domain)            // a thread that abandons a question may write another
	ref, acquired := s.serve(t)
	if state.CompareAndSwap(C.PW_MAIL_SERVING, C.PW_MAIL_DONE) {
		C.pw_futex_wake(&t.mail.state)
		return
	}
	if acquired { // for a thread that no longer waits
		s.releaseAbandoned(i, ref)
	}
	state.Store(C.PW_MAIL_IDLE)
	C.pw_futex_wake(&t.mail.state) // pw_await_abandoned
}

func (s *server) releaseAbandoned(domain uint32, ref regcache.Ref) {
	defer s.contain()
	s.domains.at(domain).local.Release(ref)
}

// serve answers one question.
func (s *server) serve(t *C.struct_pw_thread) (ref regcache.Ref, acquired bool) {
	defer s.contain()
	s.publishRegistered() // what this thread has registered before it asked
	m := &t.mail
	var err error
	switch m.ask {
	case C.PW_ASK_ACQUIRE:
		ref, err = s.acquire(t)
		acquired = err == nil
	case C.PW_ASK_RELEASE:
		d := s.domains.at(uint32(m.domain))
		d.local.Release(refOf(&m.ref))
		_ = s.attach(t, d) // from now on the thread releases by itself, or else it asks again
	case C.PW_ASK_SWEEP:
		s.domains.at(uint32(m.domain)).local.Dropped(refOf(&m.ref))
	case C.PW_ASK_CLEAN:
		_, err = s.group.Clean()
	case C.PW_ASK_ROOM:
		if err = s.roomForPlain(); err != nil && s.sh.linked == 0 {
			s.exceedForPlain()
			err = nil
		}
	case C.PW_ASK_CLOSE:
		err = s.domains.close(uint32(m.domain))
	case C.PW_ASK_DROP:
		err = s.drop(uint32(m.domain))
	case C.PW_ASK_STOP:
		s.stop()
	case C.PW_ASK_SAVE:
		s.stopHelper()
		s.engine.SaveProfile()
	default:
		ref, acquired, err = s.serveLinked(t)
	}
	if f := fault.In(err); f != nil {
		s.faulted(f)
	}
	m.error = errnoFor(err)
	return ref, acquired
}

func (s *server) publish() {
	defer s.contain()
	s.publishRegistered()
}

// publishRegistered publishes what threads have registered by themselves. They need not ring for that any more.
func (s *server) publishRegistered() {
	at32(&s.sh.unpublished).Store(0)
	s.domains.publish()
}

// published counts a first use in a domain that a C thread has registered by itself. Any thread may call it.
func (s *server) published(d *domain, a regcache.Published) {
	tookNs := int64(a.Note[C.PW_NOTE_END] - a.Note[C.PW_NOTE_START])
	startNs := clock.FromMonotonic(int64(a.Note[C.PW_NOTE_START]))
	site := *(**C.struct_pw_site)(unsafe.Pointer(&a.Note[C.PW_NOTE_SITE])) // which is never freed
	s.engine.Registered(int64(a.Range.Len()), tookNs)
	s.engine.Missed(a.Outcome, d.tagged(a.ID), callSite(C.uint32_t(a.Note[C.PW_NOTE_OP]), site), startNs, startNs+tookNs)
}

func (s *server) acquire(t *C.struct_pw_thread) (regcache.Ref, error) {
	startNs := clock.FromMonotonic(int64(t.mail.asked_ns)) // the thread has waited for this one since
	d, r, err := s.request(t)
	if err != nil {
		return regcache.Ref{}, err
	}
	ref, outcome, err := d.local.AcquireMissed(r, verbs.Access(t.mail.access))
	var id mem.RegionID
	if err == nil {
		*(*regcache.Ref)(unsafe.Pointer(&t.mail.ref)) = ref
		id = d.tagged(ref.ID())
	}
	s.engine.Missed(outcome, id, callSite(C.uint32_t(t.mail.call.op), t.mail.call.site), startNs, clock.NowNs())
	return ref, err
}

// request reads a question about memory in a domain, to which the thread is attached.
func (s *server) request(t *C.struct_pw_thread) (*domain, mem.Range, error) {
	m := &t.mail
	if s.stopped { // the thread asked beside MPI_Finalize
		return nil, mem.Range{}, errStopped
	}
	d, err := s.domain(uint32(m.domain), s.waitsForWatch())
	if err != nil {
		return nil, mem.Range{}, err
	}
	if err := s.attach(t, d); err != nil {
		return nil, mem.Range{}, err
	}
	r, err := mem.NewRange(mem.Addr(m.addr), uint64(m.bytes))
	return d, r, err
}

var errStopped = errors.New("nothing is managed any more")

// waitsForWatch reports whether the first use of a domain waits until changes of mappings are noticed. With a budget it
// does: what is registered for each use may need more memory than what is shared.
func (s *server) waitsForWatch() bool {
	return s.set.WatchWait || s.sh.linked != 0 || bounded(s.set.BudgetBytes) != mem.Unlimited ||
		bounded(s.set.NodeBudgetBytes) != mem.Unlimited
}

// refOf is a reference as Go sees it; the layouts are the same (table.h).
func refOf(ref *C.struct_pwt_ref) regcache.Ref { return *(*regcache.Ref)(unsafe.Pointer(ref)) }

// localOf is where a thread finds its Local of a domain.
func localOf(t *C.struct_pw_thread, domain uint32) *pointer {
	return pointerAt(unsafe.Pointer(&t.local[domain]))
}

// attach gives a thread its Local of a domain.
func (s *server) attach(t *C.struct_pw_thread, d *domain) error {
	if localOf(t, d.index).Load() == nil {
		local, err := d.cache.Thread()
		if err != nil {
			return err
		}
		d.locals = append(d.locals, local)
		localOf(t, d.index).Store(local.Memory())
	}
	s.hearOf(t, d)
	return nil
}

// hearOf gives the DQ of a thread to the helper, with what is in it of a domain that has just been made.
func (s *server) hearOf(t *C.struct_pw_thread, d *domain) {
	if !s.engine.Helped() || s.attached[t] {
		return
	}
	from := newSource(&t.ring, s.clock)
	from.takeEarly(d)
	s.engine.Attach(from)
	if s.attached == nil {
		s.attached = map[*C.struct_pw_thread]bool{}
	}
	s.attached[t] = true
}

// stop ends recording and the helper, writes the report and releases idle
// registrations. Those in use end with their protection domain.
func (s *server) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.endOpening()
	s.record.finish()
	s.checkTransport()
	if s.set.Stats != "n" {
		s.writeReport() // while idle registrations are still counted
	}
	s.stopHelper()
	if _, err := s.clean(C.PW_ALL); err != nil {
		s.engine.Warn("clean", err.Error())
	}
	if s.group != nil {
		s.engine.LeaveNode(s.group.Bytes())
	}
	s.engine.SaveProfile()
}

// contain turns a panic into plain registration.
func (s *server) contain() {
	if p := recover(); p != nil {
		s.faulted(fault.Of(p))
	}
}

// faulted makes every use a plain registration from now on. Any thread may call it.
func (s *server) faulted(f *fault.Fault) {
	at32(&s.sh.mode).Store(C.PW_PLAIN)
	s.engine.Fault(f, "going on with plain registration")
}
