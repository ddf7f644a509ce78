package vmmc

import (
	"context"
	"time"
)

// Progress lets a goroutine take the completions of what it sends through an import by RDMA itself, as manual progress
// of libfabric does (fi_domain(3), FI_PROGRESS_MANUAL). Without one, a goroutine of the node takes them: to wake that,
// and then the one that sends, costs as much as to send 64 KiB. SendOptions.Progress has it.
//
// One goroutine at a time may call Sleep. While it does something else, nobody looks for these completions. So it has
// to come back to Sleep, until all its messages are Acked.
type Progress struct {
	link *outbound
	// Poll lets Sleep look for completions for up to 50 us before it sleeps, while several messages are on their way and
	// that has been worth it. It is for a processor that would be idle. Only the goroutine of Sleep may set it.
	Poll bool

	vain, pause int // times that Sleep has looked in vain, and that it does not look
	batch       [completionBatch]completion

	// link.mu protects what follows.
	woken   bool // Sleep has a reason to return
	asleep  bool // in the Wait of the queue pair
	left    bool // run waits for completions, as this goroutine waits for something else
	unacked int  // messages
}

// Progress returns a Progress for messages through this import.
func (i *Import) Progress() *Progress { return &Progress{link: i.link} }

// Sleep takes completions, and sleeps until there is one. It returns once a message with this Progress is Acked, or
// Wake was called, since it has last returned, and also now and then without a reason. It returns false at once if it
// isn't needed, as another goroutine takes all completions: then SendOptions.Done says what it would.
func (p *Progress) Sleep() bool {
	o := p.link
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.woken {
		p.woken = false
		return true
	}
	s := o.rdma
	if s == nil || !s.up || s.ended || s.sleeper != nil || s.running {
		p.leaveToRun()
		return false
	}
	s.sleeper, p.left = p, false
	p.poll(s)
	var err error
	if !p.woken {
		var n int
		p.asleep = true // so the attempt is not over before this one wakes
		o.mu.Unlock()
		n, err = s.qp.Wait(context.Background(), p.batch[:])
		o.mu.Lock()
		p.asleep = false
		s.take(p.batch[:n])
	}
	s.sleeper, p.woken = nil, false
	if err != nil {
		p.leaveToRun() // it hears of the error, too
		return false
	}
	if !s.idle() {
		s.stir() // run has left to this one what it has to do
	}
	return true
}

// mostVain is how many times in vain count: after that many, Sleep looks once in 2^mostVain times.
const mostVain = 6

// poll looks for completions as long as that is likely to be shorter than to sleep. link.mu is held.
func (p *Progress) poll(s *rdmaSender) {
	if !p.Poll || p.unacked < 2 {
		return
	}
	if p.pause > 0 {
		p.pause--
		return
	}
	for begin := time.Now(); !p.woken && s.up && time.Since(begin) < pollTime; {
		p.link.mu.Unlock()
		n, _ := s.qp.Poll(p.batch[:]) // Wait hears of an error
		p.link.mu.Lock()
		s.take(p.batch[:n])
	}
	if p.woken {
		p.vain = 0
	} else {
		p.vain = min(p.vain+1, mostVain)
		p.pause = 1<<p.vain - 1
	}
}

// Wake has Sleep return. All goroutines may call it.
func (p *Progress) Wake() {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	p.wake()
}

// wake is Wake; link.mu is held.
func (p *Progress) wake() {
	p.woken, p.left = true, false
	if p.asleep {
		p.link.rdma.qp.Interrupt()
	}
}

// leaveToRun has run wait for completions until this goroutine is woken. link.mu is held.
func (p *Progress) leaveToRun() {
	p.left = true
	if s := p.link.rdma; s != nil {
		s.stir()
	}
}

// idle tells whether run has nothing to wait for, or has to leave it to another goroutine. link.mu is held.
func (s *rdmaSender) idle() bool {
	return s.sleeper != nil || s.err == nil && !s.ended && !s.wanted()
}

// wanted tells whether somebody waits for a completion that he doesn't look for himself. link.mu is held.
func (s *rdmaSender) wanted() bool {
	for id := s.first; id < s.next; id++ {
		if op := s.posted[id%sendDepth].op; op == nil || !op.lookedFor() {
			return true
		}
	}
	return s.first < s.next && len(s.link.queue) > 0
}

// take takes completions, and posts what waited for them. link.mu is held.
func (s *rdmaSender) take(batch []completion) {
	for _, c := range batch {
		s.completed(c)
	}
	if len(batch) > 0 {
		s.link.post()
	}
}
