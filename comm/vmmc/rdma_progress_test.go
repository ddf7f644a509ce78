package vmmc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// taker sends with a Progress, as transfers of package files do: where Sleep has nothing to do, it waits to hear from
// Done.
type taker struct {
	progress *Progress
	done     chan error // of each message; it has room for all
	woken    chan struct{}
}

// mostMessages is how many a taker sends at most.
const mostMessages = 40

func newTaker(i *Import) *taker {
	return &taker{i.Progress(), make(chan error, mostMessages), make(chan struct{}, 1)}
}

func (w *taker) options() SendOptions {
	return SendOptions{Progress: w.progress, Done: func(err error) {
		w.done <- err
		w.stir()
	}}
}

func (w *taker) stir() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *taker) wait() {
	if !w.progress.Sleep() {
		<-w.woken
	}
}

// wake has wait return, from any goroutine.
func (w *taker) wake() {
	w.stir()
	w.progress.Wake()
}

// sends sends messages of random sizes with some under way, does something else now and then, and may give up.
func (w *taker) sends(i *Import, src []byte, low, bytes int, random *rand.Rand) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if random.IntN(4) == 0 {
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel)
	}
	defer context.AfterFunc(ctx, w.wake)()
	w.progress.Poll = random.IntN(2) == 0
	var under []*Op
	depth := 1 + random.IntN(6)
	for left := 1 + random.IntN(mostMessages); left > 0 || len(under) > 0; {
		for ; left > 0 && len(under) < depth; left-- {
			n := 1 + random.IntN(3000)
			if random.IntN(5) == 0 {
				n = 1 + random.IntN(bytes)
			}
			o := w.options()
			o.NoRDMA = random.IntN(20) == 0
			op, err := i.SendAsync(src[:n], uint64(low+random.IntN(bytes-n+1)), o)
			if err != nil {
				return err
			}
			under = append(under, op)
			if random.IntN(10) == 0 { // as if it registered something
				time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
			}
		}
		w.wait()
		for len(w.done) > 0 {
			<-w.done
		}
		if ctx.Err() != nil {
			left = 0
			for _, op := range under {
				op.Cancel(ctx.Err())
			}
		}
		under = slices.DeleteFunc(under, func(op *Op) bool {
			select {
			case <-op.Acked():
				return true
			default:
				return false
			}
		})
	}
	w.progress.link.mu.Lock()
	defer w.progress.link.mu.Unlock()
	if n := w.progress.unacked; n != 0 {
		return fmt.Errorf("%d messages are under way, says the Progress", n)
	}
	return nil
}

// Several take completions of one connection, others leave that to the node, some give up, and RDMA fails now and then:
// nobody waits for ever. PINWHEEL_SOAK has it go on for as long.
func TestRDMANobodyWaitsForWhoTakesCompletions(t *testing.T) {
	lasts := time.Second
	if d, err := time.ParseDuration(os.Getenv("PINWHEEL_SOAK")); err == nil {
		lasts = d
	}
	for _, tr := range []transport{overFake(t), transportOf(t, "rdma")} {
		t.Run(tr.name, func(t *testing.T) {
			const size, takers = 4 << 20, 4
			w := tr.begin(t, func(o *Options) { o.Warn = quiet })
			w.importer.opt.Warn = quiet
			_, _, i := w.pair(t, size, ExportOptions{})
			src := outside(t, size)
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			end := time.Now().Add(lasts)
			var all sync.WaitGroup
			part := size / (takers + 1)
			for k := range takers {
				all.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(k)))
					for time.Now().Before(end) {
						if err := newTaker(i).sends(i, src, k*part, part, random); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Go(func() { // leaves completions to the node
				for time.Now().Before(end) {
					if err := i.Send(testContext(t), src[:5000], takers*uint64(part), SendOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
			all.Go(func() {
				for time.Now().Before(end) {
					<-time.After(200 * time.Millisecond) // RDMA comes up again after a second
					i.link.mu.Lock()
					if s := i.link.rdma; s != nil {
						s.qp.Fail()
					}
					i.link.mu.Unlock()
				}
			})
			all.Wait()
		})
	}
}

// Who takes completions may be busy for long: what others wait for comes to them meanwhile.
func TestRDMACompletionsComeToOthersWhileTheirTakerIsBusy(t *testing.T) {
	w := overFake(t).begin(t)
	_, _, i := w.pair(t, 1<<20, ExportOptions{})
	src := outside(t, 1<<20)
	keepLease(t, i)
	busy := newTaker(i)
	if _, err := i.SendAsync(src[:5000], 0, busy.options()); err != nil {
		t.Fatal(err)
	}
	op, err := i.SendAsync(src[:5000], 8192, SendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(testContext(t)); err != nil {
		t.Error(err)
	}
	busy.wait()
	if err := <-busy.done; err != nil {
		t.Error(err)
	}
}

// Wake ends Sleep, also one that begins after it, and one that waits for a completion which does not come.
func TestRDMAWakeEndsSleep(t *testing.T) {
	w := overFake(t).begin(t)
	_, _, i := w.pair(t, 1<<20, ExportOptions{})
	d := fakeOf(w.importer)
	keepLease(t, i)
	d.hold(0, 0)
	taker := newTaker(i)
	op, err := i.SendAsync(outside(t, 5000), 0, taker.options())
	if err != nil {
		t.Fatal(err)
	}
	taker.wake()
	taker.wait()
	returned := make(chan struct{})
	go func() {
		taker.wait()
		close(returned)
	}()
	testwait.Until(t, "the taker sleeps", func() bool {
		i.link.mu.Lock()
		defer i.link.mu.Unlock()
		return taker.progress.asleep || taker.progress.left
	})
	taker.wake()
	<-returned
	d.letGo()
	if err := op.Wait(testContext(t)); err != nil && !errors.Is(err, ErrNoRDMA) {
		t.Error(err)
	}
}
