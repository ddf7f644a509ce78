package node

import (
	"errors"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

func TestBoardShowsWhatAnotherMemberWroteThereAndHasOneWriter(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	var members [2]*Member
	for i := range members {
		m, err := Join(Options{Job: job, Rank: i})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		members[i] = m
	}
	err := members[0].UpdateBoard(0, func(words *[BoardWords]uint64) {
		if *words != [BoardWords]uint64{} {
			t.Errorf("a new board says %v", *words)
		}
		words[0], words[BoardWords-1] = 7, 8
		err := members[1].UpdateBoard(2*time.Millisecond, func(*[BoardWords]uint64) { t.Error("two write at once") })
		if !errors.Is(err, ErrBusy) {
			t.Errorf("a board that is kept: %v, want ErrBusy", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = members[1].UpdateBoard(0, func(words *[BoardWords]uint64) {
		if words[0] != 7 || words[BoardWords-1] != 8 {
			t.Errorf("the board says %v", *words)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := members[0].seg.check(); err != nil {
		t.Error("the board spoils the segment: ", err)
	}
	members[1].Close()
	if err := members[1].UpdateBoard(0, func(*[BoardWords]uint64) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}
