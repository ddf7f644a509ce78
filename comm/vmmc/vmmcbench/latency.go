package vmmcbench

import (
	"encoding/binary"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"pinwheel/comm/vmmc"
)

// Names of what carries messages.
const (
	automatic  = "automatic update"
	deliberate = "deliberate update"
	notified   = "deliberate update, notified"
	socket     = "socket"
)

// looks is how often awaitWord looks in a row: for about a microsecond.
const looks = 2048

// awaitWord waits until a word has changed from old, and returns it: it looks for 50 us, and then now and then.
// Goroutines that only look would keep Go from asking the kernel what came from the network.
func awaitWord(s *stage, w *atomic.Uint64, old uint64) (now uint64, err error) {
	var begin time.Time
	for {
		for range looks {
			if now = w.Load(); now != old {
				return now, nil
			}
		}
		switch {
		case begin.IsZero():
			begin = time.Now()
		case time.Since(begin) < 50*time.Microsecond:
			runtime.Gosched()
		default:
			time.Sleep(10 * time.Microsecond)
			if err := s.ctx.Err(); err != nil {
				return 0, err
			}
		}
	}
}

// sendWord returns what sends words with Send to an end.
func (p *opposite) sendWord(s *stage, to int) (func(uint64) error, error) {
	src := make([]byte, 8)
	return func(word uint64) error {
		binary.NativeEndian.PutUint64(src, word)
		return p.to[to].Send(s.ctx, src, 0, vmmc.SendOptions{})
	}, nil
}

// storeWord returns what sends words with Publish, or by a plain store in shared memory.
func (p *opposite) storeWord(s *stage, to int) (func(uint64) error, error) {
	local, err := p.nodes[1-to].Alloc(4096)
	if err != nil {
		return nil, err
	}
	m, err := p.to[to].Map(0, local, vmmc.MapOptions{Interval: -1})
	if err != nil {
		return nil, err
	}
	if p.to[to].Shared() {
		w := wordOf(local)
		return func(word uint64) error { w.Store(word); return nil }, nil
	}
	return func(word uint64) error { return m.Publish(s.ctx, 0, word) }, nil
}

// wordThereAndBack is two messages.
func wordThereAndBack(over string, way func(*opposite, *stage, int) (func(uint64) error, error)) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		p, err := s.opposite(over)
		if err != nil {
			return nil, err
		}
		there, err := way(p, s, 1)
		if err != nil {
			return nil, err
		}
		back, err := way(p, s, 0)
		if err != nil {
			return nil, err
		}
		const last = 1 << 63
		done := make(chan error, 1)
		go func() {
			for w, seen := wordOf(p.memory[1]), uint64(0); ; {
				var err error
				if seen, err = awaitWord(s, w, seen); err == nil && seen != last {
					err = back(seen)
				}
				if err != nil || seen == last {
					done <- err
					return
				}
			}
		}()
		s.later(func() {
			if there(last) == nil { // else the other end fails as well
				<-done
			}
		})
		word, answer := uint64(0), wordOf(p.memory[0])
		return func() error {
			word++
			if err := there(word); err != nil {
				return err
			}
			_, err := awaitWord(s, answer, word-1)
			return err
		}, nil
	}
}

// socketThereAndBack is two messages.
func socketThereAndBack(over string) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		c, server, err := s.sockets(over)
		if err != nil {
			return nil, err
		}
		go func() { _, _ = io.Copy(server, onlyReader{server}); server.Close() }()
		word := make([]byte, 8)
		return func() error {
			if _, err := c.Write(word); err != nil {
				return err
			}
			_, err := io.ReadFull(c, word)
			return err
		}, nil
	}
}
