package monitor

import (
	"context"
	"slices"
	"sync"
	"time"
)

// processes asks others about themselves beside the looks: those must not wait for one that hangs. Safe for concurrent
// use.
type processes[P any] struct {
	list func(context.Context) ([]P, error)

	mu       sync.Mutex // protects all below; nobody asks with it
	last     []P
	answered bool          // at least once
	asking   chan struct{} // closed when the question under way is answered; nil: there is none
}

const (
	// answerTimeout is longer than a broker waits for processes that don't answer.
	answerTimeout = 3 * time.Second
	// lookPatience is how long a look waits, once there was an answer.
	lookPatience = 100 * time.Millisecond
)

// look returns what they say. If that takes long, it is what they have said last.
func (p *processes[P]) look() []P {
	p.mu.Lock()
	if p.asking == nil {
		p.asking = make(chan struct{})
		go p.ask(p.asking)
	}
	done, patience := p.asking, answerTimeout
	if p.answered {
		patience = lookPatience
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

func (p *processes[P]) ask(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	// Without a broker, say, there is nothing of it to see: pinwheel node exports says why.
	last, _ := p.list(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.answered, p.asking = last, true, nil
}
