package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"pinwheel/comm/vmmc"
)

// Ends that share memory don't notify each other as long as both look by themselves: then no message makes a
// system call. Each end says in the inbox of the other whether it looks. It looks while a call spins, and also
// while no call waits: the next one will look before it sleeps. An end that sleeps says so first, and then looks
// once more. An end that has sent something looks whether its peer sleeps afterwards. Send takes and
// releases a lock, which orders its stores before the loads that follow, so one of both sees the other.
const (
	always = 0 // the peer can't say in time whether it looks: it wants every notification
	asleep = 1 // it wants one notification
	awake  = 2 // it looks
)

// The words that say so.
var (
	asleepWord = binary.NativeEndian.AppendUint64(nil, asleep)
	awakeWord  = binary.NativeEndian.AppendUint64(nil, awake)
)

// look tells the peer that this end looks by itself, if words for the peer arrive at once.
func (c *Conn) look() error {
	if !c.to.Shared() {
		return nil
	}
	return c.to.Send(context.Background(), awakeWord, looksAt, vmmc.SendOptions{})
}

// publish stores a word in the inbox of the peer, after all that was sent before, and wakes the peer if that
// sleeps. Whoever calls it owns the scratch bytes.
func (c *Conn) publish(at, v uint64, scratch *[8]byte) error {
	if !c.to.Shared() {
		_, err := c.tell(at, v)
		return err
	}
	binary.NativeEndian.PutUint64(scratch[:], v)
	if err := c.to.Send(context.Background(), scratch[:], at, vmmc.SendOptions{}); err != nil {
		return err
	}
	looks := c.in.looks.Load()
	if looks == awake || looks == asleep && !c.in.looks.CompareAndSwap(asleep, awake) {
		return nil // in the second case another call wakes it
	}
	_, err := c.to.SendAsync(nil, at, vmmc.SendOptions{Notify: true})
	if !errors.Is(err, vmmc.ErrTooManyOps) {
		return nil // an import that has ended wakes its peer by that, and the word has arrived
	}
	if looks == asleep {
		c.in.looks.CompareAndSwap(awake, asleep) // the next try must wake it
	}
	return err
}

// view is what a call found, and where.
type view struct {
	word      *atomic.Uint64
	seen      uint64
	state     *atomic.Uint64
	seenState uint64
}

func (v *view) changed() bool { return v.word.Load() != v.seen || v.state.Load() != v.seenState }

// maxSpin is how long a call spins before it sleeps.
const maxSpin = 50 * time.Microsecond

// spinner decides whether it is worth the processor time to spin. A spin that just missed the end of its wait is
// repeated: two ends that sleep are slow because of that alone. Where it misses again and again, or by far, the next
// waits sleep at once. So an end that gets little, or whose peer gets no processor, spins rarely.
type spinner struct {
	inVain uint // spins in a row
	pause  uint // waits that sleep at once
}

const (
	tries    = 3           // spins in a row
	rest     = 32          // waits
	nearMiss = 4 * maxSpin // of the whole wait
)

// spin looks until there is a change, and tells whether there was one in time.
func (s *spinner) spin(begin time.Time, v *view) bool {
	for took := time.Duration(0); took < maxSpin; took = time.Since(begin) {
		if took > maxSpin/10 {
			// A peer in this process may have to be woken: this makes another thread look for it. It is a system
			// call, which quick peers are spared.
			runtime.Gosched()
		}
		for range 64 {
			if v.changed() {
				s.inVain = 0
				return true
			}
		}
	}
	return false
}

// slept hears how long a wait took whose spin was in vain.
func (s *spinner) slept(d time.Duration) {
	if s.inVain++; s.inVain >= tries || d > nearMiss {
		*s = spinner{pause: rest}
	}
}

// await waits until there may be news.
func (c *Conn) await(news <-chan struct{}, d *deadline, s *spinner, v view) {
	if !c.to.Shared() {
		wait(c, news, d)
		return
	}
	if s.pause > 0 {
		s.pause--
		c.sleep(news, d, &v)
		return
	}
	begin := time.Now()
	if !s.spin(begin, &v) {
		c.sleep(news, d, &v)
		s.slept(time.Since(begin))
	}
}

// sleep waits for a notification.
func (c *Conn) sleep(news <-chan struct{}, d *deadline, v *view) {
	// If it fails the import has ended, which ends the wait.
	err := c.to.Send(context.Background(), asleepWord, looksAt, vmmc.SendOptions{})
	if err != nil || !v.changed() {
		wait(c, news, d)
	}
}

// Room returns how many bytes a Write takes at the moment without waiting for the peer.
func (c *Conn) Room() int {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.usable(&c.writeDeadline) != nil {
		return 0
	}
	ring, full := c.to.Bytes()-ringAt, c.put-c.in.head.Load()
	return int(ring - min(full, ring))
}
