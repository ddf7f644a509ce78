package files

import (
	"testing"
	"time"

	"pinwheel/files/pipe"
)

// On each of these machines another shape is the fastest; auto finds it, and stays with it.
func TestAutoFindsTheFastestShape(t *testing.T) {
	for fastest := range candidates {
		for _, n := range []int64{leastChoice, 100_000, 1 << 20, 8 << 20, 1 << 30} {
			var c choices
			var total time.Duration
			const transfers = 1000
			for i := range int64(transfers) {
				k, learns := c.choose(sentRange{from: i}, n, pipe.Auto.CopyBelow)
				if !learns {
					t.Fatalf("transfer %d is not learned from", i)
				}
				took := 1500 * time.Microsecond
				if k == fastest {
					took = time.Millisecond
				}
				if i%7 == 0 {
					took += time.Millisecond // the machine does something else
				}
				c.note(k, n, took)
				total += took - time.Millisecond
			}
			// What it lost beside noise.
			noise := (transfers + 6) / 7 * time.Millisecond
			if lost := total - noise; lost > transfers*time.Millisecond/20 {
				t.Errorf("%s, %d bytes: %v lost of %v", candidates[fastest].Name, n, lost, transfers*time.Millisecond)
			}
		}
	}
}

func TestTheFirstTransfersAreWhatThePaperSuggests(t *testing.T) {
	var c choices
	for i := range int64(firstChoices) {
		for n, want := range map[int64]int{100: byCopy, 100_000: byCopy, 1 << 20: bySendfile, 1 << 30: bySendfile} {
			if k, _ := c.choose(sentRange{from: i<<40 + n}, n, pipe.Auto.CopyBelow); k != want {
				t.Errorf("%d bytes: %s", n, candidates[k].Name)
			}
		}
	}
	for range 1000 {
		if k, learns := c.choose(sentRange{}, leastChoice-1, pipe.Auto.CopyBelow); k != byCopy || learns {
			t.Error("a small file is tried in another way")
		}
	}
}

// What was sent once is sent in the same way, so that registrations are found; what was copied is registered then.
func TestRangesAreSentAgainInTheSameWay(t *testing.T) {
	const n = 1 << 20
	var c choices
	first := map[int64]int{}
	for i := range int64(200) {
		k, _ := c.choose(sentRange{from: i}, n, pipe.Auto.CopyBelow)
		first[i] = k
		c.note(k, n, time.Duration(1+k)*time.Millisecond) // copies are the fastest
	}
	for i, was := range first {
		want := was
		if was == byCopy {
			want = bySendfile
		}
		for range 2 {
			if k, learns := c.choose(sentRange{from: i}, n, pipe.Auto.CopyBelow); k != want || learns {
				t.Errorf("%s, and then %s", candidates[was].Name, candidates[k].Name)
			}
		}
	}
	for i := range int64(2 * maxSent) {
		c.choose(sentRange{from: i << 20}, n, pipe.Auto.CopyBelow)
	}
	if len(c.sent) > maxSent {
		t.Errorf("%d ranges are known", len(c.sent))
	}
}
