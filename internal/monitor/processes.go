package monitor

import (
	"context"
	"slices"
	"sync"
	"time"

	"pinwheel/vmmc/broker"
)

// processes asks the broker beside the looks: those must not wait for one that hangs. Safe for concurrent use.
type processes struct {
	list func(context.Context) ([]broker.Process, error)

	mu       sync.Mutex // protects all below; nobody asks with it
	last     []broker.Process
	answered bool          // at least once
	asking   chan struct{} // closed when the question under way is answered; nil: there is none
}

const (
	// brokerTimeout is longer than a broker waits for processes that don't answer.
	brokerTimeout = 3 * time.Second
	// brokerPatience is how long a look waits, once there was an answer.
	brokerPatience = 100 * time.Millisecond
)

// look returns what the broker says. If that takes long, it is what it has said last.
func (p *processes) look() []broker.Process {
	p.mu.Lock()
	if p.asking == nil {
		p.asking = make(chan struct{})
		go p.ask(p.asking)
	}
	done, patience := p.asking, brokerTimeout
	if p.answered {
		patience = brokerPatience
	}
	p.mu.Unlock()
	select {
	case <-done:
	case <-time.After(patience):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.last)
}

func (p *processes) ask(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), brokerTimeout)
	defer cancel()
	// Without a broker, or if it says no, there is nothing of it to see: pinwheel node exports says why.
	last, _ := p.list(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.answered, p.asking = last, true, nil
}
