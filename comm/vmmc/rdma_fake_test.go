package vmmc

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"pinwheel/internal/clock"
	"pinwheel/internal/testwait"
)

// The tests of these files need no device.

// posted returns how many writes of an import's connection have not completed, and how many messages wait.
func posted(i *Import) (writes, waiting int) {
	o := i.link
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rdma != nil {
		writes = int(o.rdma.next - o.rdma.first)
	}
	return writes, len(o.queue)
}

// failPair ends RDMA for now.
func failPair(i *Import) {
	o := i.link
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rdma.qp.Fail()
}

func wordOf(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

func sendWord(t *testing.T, i *Import, v, off uint64) {
	t.Helper()
	if err := i.Send(testContext(t), wordOf(v), off, SendOptions{}); err != nil {
		t.Error(err)
	}
}

// What is on its way keeps its lease: the exporter could deregister the memory before it arrives.
func TestLeaseLastsUntilShortMessagesHaveArrived(t *testing.T) {
	for _, how := range []string{"idle", "recalled"} {
		t.Run(how, func(t *testing.T) {
			w := overFake(t).begin(t)
			memory, _, i := w.pair(t, 100, ExportOptions{})
			d := fakeOf(w.importer)
			d.hold(0, 0)
			giveBack := keepLease(t, i)
			for k := range uint64(3) {
				sendWord(t, i, k+1, k*8)
			}
			giveBack()
			o := i.link
			o.mu.Lock()
			later := clock.NowNs() + 10*leaseIdle.Nanoseconds()
			if o.rdma.holder.Next(later); how == "recalled" {
				o.rdma.recalled(i.number)
			}
			if !i.rdma() || i.shorts != 3 {
				t.Errorf("RDMA %v with %d short messages on their way", i.rdma(), i.shorts)
			}
			o.mu.Unlock()
			if how == "recalled" {
				// It goes through the connection, after those before.
				if _, err := i.SendAsync(wordOf(7), 40, SendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			d.letGo()
			for k := range uint64(3) {
				testwait.Until(t, "a word", func() bool { return wordAt(memory, int(k*8)).Load() == k+1 })
			}
			if how == "recalled" {
				testwait.Until(t, "the lease is given back", func() bool { return !i.RDMA() })
				testwait.Until(t, "the word after them", func() bool { return wordAt(memory, 40).Load() == 7 })
			}
			if err := i.Err(); err != nil || d.access > 0 {
				t.Errorf("%d messages were refused: %v", d.access, err)
			}
			if got := w.importer.Stats().Total.Sent.Sends; got < 3 {
				t.Errorf("%d messages were counted", got)
			}
		})
	}
}

// Two messages to the same place are never on their way at the same time.
func TestMessageWaitsForTheOneBeforeAtItsPlace(t *testing.T) {
	w := overFake(t).begin(t)
	memory, _, i := w.pair(t, 1<<16, ExportOptions{})
	d := fakeOf(w.importer)
	keepLease(t, i)
	d.hold(1000, 0)
	for k := range uint64(8) {
		sendWord(t, i, 1, k*8)
	}
	if writes, waiting := posted(i); writes != 8 || waiting > 0 {
		t.Errorf("%d writes, %d messages wait", writes, waiting)
	}
	op, err := i.SendAsync(wordOf(2), 8, SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if writes, waiting := posted(i); writes != 8 || waiting != 1 || wordAt(memory, 8).Load() != 1 {
		t.Errorf("%d writes, %d messages wait", writes, waiting)
	}
	d.letGo()
	if err := op.Wait(testContext(t)); err != nil || wordAt(memory, 8).Load() != 2 {
		t.Error(err)
	}
	d.hold(1000, 0)
	first, err := i.SendAsync(outside(t, 4096), 0, SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { sendWord(t, i, 3, 4088) })
	testwait.Until(t, "the word waits", func() bool { _, waiting := posted(i); return waiting == 1 })
	d.letGo()
	done.Wait()
	if err := first.Wait(testContext(t)); err != nil || wordAt(memory, 4088).Load() != 3 {
		t.Error(err)
	}
}

// Whatever has landed when RDMA fails, no byte goes back to what was there before.
func TestNothingGoesBackWhenRDMAFails(t *testing.T) {
	w := overFake(t).begin(t)
	w.importer.opt.Warn = quiet
	const places = 1024
	memory, _, i := w.pair(t, places*8, ExportOptions{})
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		var seen [places]uint64
		for {
			for k := range seen {
				now := wordAt(memory, k*8).Load()
				if now < seen[k] {
					t.Errorf("place %d went from %d to %d", k, seen[k], now)
					return
				}
				seen[k] = now
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	rng := rand.New(rand.NewPCG(1, 2))
	d := fakeOf(w.importer)
	var want [places]uint64
	value := uint64(0) // of one byte: what is half written is no other number
	var ops []*Op
	for range 3 {
		keepLease(t, i)
		d.hold(20+rng.IntN(40), rng.IntN(20))
		var senders sync.WaitGroup
		senders.Go(func() {
			for range 80 {
				value++
				at, n := rng.IntN(16), 1
				if rng.IntN(4) == 0 {
					n = 1 + rng.IntN(places-at-1)
				}
				var src []byte
				for k := range n {
					want[at+k] = value
					src = append(src, wordOf(value)...)
				}
				if rng.IntN(2) == 0 && n == 1 {
					sendWord(t, i, value, uint64(at*8))
					continue
				}
				op, err := i.SendAsync(src, uint64(at*8), SendOptions{Notify: rng.IntN(3) == 0})
				if err != nil {
					t.Error(err)
					return
				}
				ops = append(ops, op)
			}
		})
		testwait.Until(t, "something waits", func() bool { _, waiting := posted(i); return waiting > 0 })
		failPair(i)
		d.letGo()
		senders.Wait()
	}
	for k, op := range ops {
		if err := op.Wait(testContext(t)); err != nil {
			t.Fatalf("message %d: %v", k, err)
		}
	}
	for k := range want {
		testwait.Until(t, "the last messages", func() bool { return wordAt(memory, k*8).Load() == want[k] })
	}
	close(stop)
	watcher.Wait()
}

// While somebody waits, somebody looks for completions: also for messages that are posted when nobody polls any more.
func TestEveryMessageIsLookedAfter(t *testing.T) {
	w := overFake(t).begin(t, func(o *Options) { o.MaxPeerPinned = 1 << 16 })
	_, _, a := w.pair(t, 1<<16, ExportOptions{})
	w.export(t, 2, w.memory(t, 1<<17), sender, ExportOptions{}) // too large for a lease
	b, err := w.importer.Import(testContext(t), 2, w.address)
	if err != nil {
		t.Fatal(err)
	}
	d := fakeOf(w.importer)
	keepLease(t, a)
	d.hold(1000, 0)
	var senders sync.WaitGroup
	src := outside(t, 2048)
	waits := func(n int) {
		testwait.Until(t, "the message waits, and nobody looks for it", func() bool {
			o := a.link
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, op := range o.queue {
				if op.polled && op.direct {
					return false
				}
			}
			return len(o.queue) == n
		})
	}
	for k := range uint64(3) {
		senders.Go(func() {
			if err := a.Send(testContext(t), src, k*2048, SendOptions{}); err != nil {
				t.Error(err)
			}
		})
		if k == 0 {
			testwait.Until(t, "the first is posted", func() bool { writes, _ := posted(a); return writes == 1 })
		} else {
			waits(int(2 * k))
		}
		if k < 2 {
			if _, err := b.SendAsync(src, 0, SendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.letGo()
	senders.Wait()
}
