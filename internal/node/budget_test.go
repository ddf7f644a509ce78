package node

import (
	"errors"
	"sync"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

const mib = 1 << 20

func sharing(job string, rank int, ranks int64) Options {
	return Options{Job: job, Rank: rank, BudgetBytes: 64 * mib, Ranks: ranks}
}

func TestRanksBringTheirEqualParts(t *testing.T) {
	job := jobOf(t)
	a := join(t, sharing(job, 0, 4))
	if got := a.Grow(17 * mib); got != 16*mib {
		t.Errorf("alone one of four has %d, want its part: the others may be where they can't join", got)
	}
	b := join(t, sharing(job, 1, 4))
	if got := b.Grow(0); got != 16*mib {
		t.Errorf("the second has %d", got)
	}
	b.Shrink(4 * mib)
	if got := a.Grow(28 * mib); got != 28*mib {
		t.Errorf("after the other has given 12 MiB back: %d", got)
	}
	if got := b.Grow(5 * mib); got != 4*mib {
		t.Errorf("none is left, and the other has %d", got)
	}
	b.Close()
	if got := a.Grow(32 * mib); got != 32*mib {
		t.Errorf("after the other has left: %d", got)
	}
	again := join(t, sharing(job, 1, 4))
	if got := again.Grow(0); got != 0 {
		t.Errorf("a rank that was here before brings %d", got)
	}
	if got := join(t, sharing(job, 2, 4)).Grow(0); got != 16*mib {
		t.Errorf("the third has %d", got)
	}
}

func TestNoMoreThanTheBudgetIsGranted(t *testing.T) {
	job := jobOf(t)
	var sum int64
	for rank := range 6 { // a world that was spawned is more than the launcher knows of
		sum += join(t, sharing(job, rank, 4)).Grow(16 * mib)
	}
	if sum != 64*mib {
		t.Errorf("%d granted", sum)
	}
}

func TestOtherBudgetIsRefused(t *testing.T) {
	job := jobOf(t)
	join(t, sharing(job, 0, 4))
	o := sharing(job, 1, 4)
	o.BudgetBytes++
	if _, err := Join(o); !errors.Is(err, ErrBudget) {
		t.Errorf("%v", err)
	}
	if o.Part() != 16*mib {
		t.Errorf("its part is %d", o.Part())
	}
	join(t, Options{Job: job, Rank: 2}) // without one
}

func TestShareOfAKilledMemberIsFree(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	a := join(t, sharing(job, 0, 4))
	_, kill := startPeer(t, "join", job, "1")
	if got := a.Grow(17 * mib); got != 16*mib {
		t.Errorf("%d while the other lives", got)
	}
	began := time.Now()
	kill()
	testwait.Until(t, "the share is free", func() bool { return a.Grow(32*mib) == 32*mib })
	if waited := time.Since(began); waited < time.Duration(lingerNs) {
		t.Errorf("free after %v: an io_uring may still hold it", waited)
	}
}

func TestUnusedShareIsFreeAfterSomeTime(t *testing.T) {
	job := jobOf(t)
	a, b := join(t, sharing(job, 0, 2)), join(t, sharing(job, 1, 2))
	for range remembered {
		_, keep := a.Settle(10 * mib)
		a.Shrink(keep)
	}
	if got := a.Grow(0); got != 32*mib {
		t.Errorf("%d too early", got)
	}
	for range remembered {
		_, keep := a.Settle(mib)
		a.Shrink(keep)
	}
	if got := a.Grow(0); got != 4*mib {
		t.Errorf("%d, want an eighth of the part", got)
	}
	if got := b.Grow(60 * mib); got != 60*mib {
		t.Errorf("the other has %d", got)
	}
}

// settle makes every member look as it does once a second. demandNs are their misses.
func settle(all []*Member, demandNs ...int64) {
	all[0].seg.mem.store(headerMovedNs, 0) // a second has passed
	for i, m := range all {
		pinned := m.Grow(0)
		m.Publish(State{PinnedBytes: pinned, DemandNs: demandNs[i]})
	}
	for _, m := range all {
		ceiling, _ := m.Settle(m.Grow(0))
		m.Shrink(ceiling)
	}
	for _, m := range all { // takes what is free
		m.Grow(m.Grow(0) + mib/4)
	}
}

func TestSharesMoveToWhereMissesCostMost(t *testing.T) {
	job := jobOf(t)
	all := []*Member{join(t, sharing(job, 0, 2)), join(t, sharing(job, 1, 2))}
	for range 200 {
		settle(all, 50e6, 2e6)
	}
	costly, cheap := all[0].Grow(0), all[1].Grow(0)
	if costly < 56*mib || cheap < 4*mib || costly+cheap > 64*mib {
		t.Errorf("shares of %d and %d", costly, cheap)
	}
	for range 400 {
		settle(all, 1e6, 60e6)
	}
	if got := all[1].Grow(0); got < 50*mib {
		t.Errorf("after the demand has changed sides: %d", got)
	}
}

func TestSharesStayWhereDemandIsAlike(t *testing.T) {
	job := jobOf(t)
	all := []*Member{join(t, sharing(job, 0, 2)), join(t, sharing(job, 1, 2))}
	for range 50 {
		settle(all, 50e6, 40e6)
		settle(all, 5e5, 0)
	}
	if a, b := all[0].Grow(0), all[1].Grow(0); a != 32*mib || b != 32*mib {
		t.Errorf("shares of %d and %d", a, b)
	}
}

func TestMemberThatCannotGoOnGetsItsShare(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	a := join(t, sharing(job, 0, 1)) // has all of it
	late := join(t, sharing(job, 1, 1))
	if late.Grow(mib) != 0 {
		t.Fatal("there was something left")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				ceiling, _ := a.Settle(a.Grow(0))
				a.Shrink(ceiling)
			}
		}
	})
	if !late.Await(8 * mib) {
		t.Errorf("it got %d", late.Grow(0))
	}
	close(stop)
	wg.Wait()
	if late.Await(65 * mib) {
		t.Error("it got more than there is")
	}
	if got := a.Grow(0) + late.Grow(0); got > 64*mib {
		t.Errorf("%d granted", got)
	}
}
