package files

import (
	"testing"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/turns"
	"pinwheel/comm/files/pipe"
	"pinwheel/mem"
)

// chooser asks how parts of a file would go.
type chooser struct {
	*testing.T
	transfer
}

func newChooser(t *testing.T, budget int64, size int, s pipe.Strategy) *chooser {
	t.Helper()
	r, err := newRegistrar(nil, RegistrarOptions{Strategy: s, BudgetBytes: budget}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	f := fileOf(t, size)
	return &chooser{t, transfer{r: r, strategy: s, file: f, stamp: stampNow(t, f)}}
}

// choose returns the strategy and whether the file is mapped for it.
func (c *chooser) choose(from, n int64) (s pipe.Strategy, mapped bool) {
	c.from = from
	made := c.transfer.choose(n)
	if made.mapping != nil {
		c.r.mappings.put(made.mapping)
	}
	return made.strategy, made.mapping != nil
}

// Little is copied when it is sent for the first time, and registered from the second time on, unless to copy it is as
// fast; much is registered at once. What is copied so has the file unmapped, and what is mapped stays so.
func TestAutoGoesBySizeAndByWhatIsHot(t *testing.T) {
	at := pipe.Auto.CopyBelow
	for n, mapped := range map[int64][2]bool{
		1: {false, false}, leastKept - 1: {false, false}, leastKept: {false, true}, at - 1: {false, true}, at: {true, true},
		8 << 20: {true, true},
	} {
		c := newChooser(t, 1<<30, 8<<20, pipe.Auto)
		for turn, want := range mapped {
			s, is := c.choose(0, n)
			shape := s.For(n, mem.Unlimited)
			if is != want || (shape.Source == pipe.Map) != want {
				t.Errorf("%d bytes, turn %d: mapped %v, %+v", n, turn, is, shape)
			}
			if like := pipe.Auto.For(max(n, at), mem.Unlimited); want && shape.ChunkBytes != like.ChunkBytes {
				t.Errorf("%d bytes, turn %d: chunks of %d bytes, not %d", n, turn, shape.ChunkBytes, like.ChunkBytes)
			}
		}
	}
}

// A file that is mapped is most likely registered: little of it is not copied, if it was sent before or not.
func TestLittleOfAMappedFileIsNotCopied(t *testing.T) {
	for _, s := range []pipe.Strategy{pipe.Auto, {Name: "fixed", Shape: pipe.Auto.Shape, CopyBelow: pipe.Auto.CopyBelow}} {
		c := newChooser(t, 1<<30, 8<<20, s)
		if _, mapped := c.choose(0, 1); mapped {
			t.Errorf("%s: one byte had the file mapped", s.Name)
		}
		c.choose(0, 8<<20)
		if got, mapped := c.choose(1<<20, 1); !mapped || got.For(1, mem.Unlimited).Source != pipe.Map {
			t.Errorf("%s: one byte of a mapped file is copied", s.Name)
		}
	}
}

// Of a file of which nothing can stay registered, little is copied however often it is sent.
func TestWhatCannotStayIsCopiedEachTime(t *testing.T) {
	c := newChooser(t, 1<<20, 64<<20, pipe.Auto)
	for turn := range 3 {
		if s, mapped := c.choose(63<<20, leastKept); mapped || s.Shape.Source != pipe.Copy {
			t.Errorf("turn %d: %+v", turn, s)
		}
	}
}

// What stays registered of a file larger than the budget leaves room for any transfer.
func TestAClientMayHaveWhatAnyTransferRegisters(t *testing.T) {
	for _, budget := range []int64{1 << 20, 64 << 20, 4 << 30} {
		r, err := newRegistrar(nil, RegistrarOptions{Strategy: pipe.Auto, BudgetBytes: budget}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []pipe.Strategy{pipe.Static, pipe.Auto, {Name: "single", Shape: single}} {
			for n := int64(1); n <= 1<<30; n *= 2 {
				if use := r.use(s.For(n, budget)); use > r.clientBytes {
					t.Errorf("%s of %d bytes may register %d, not %d", s.Name, n, use, r.clientBytes)
				}
			}
		}
	}
}

// Several long reads of a client fill the time that a pipe would: each is one chunk, where the budget has room for all.
func TestLongReadsAtATimeAreOneChunkEach(t *testing.T) {
	for budget, abreast := range map[int64]bool{64 << 20: true, 16 << 20: false} {
		c := newChooser(t, budget, 2*longRead, pipe.Auto)
		var next int64 // nothing is sent again
		is := func(what, client string, n int64, one bool) {
			t.Helper()
			next++
			c.client = client
			if s, _ := c.choose(next, n); (s.Shape == single) != one {
				t.Errorf("%d bytes of budget, %s: %+v", budget, what, s.Shape)
			}
		}
		is("alone", "one", longRead, false)
		turn, err := c.r.await(testContext(t), "one", turns.Ask{Cost: longRead})
		if err != nil {
			t.Fatal(err)
		}
		is("with another", "one", longRead, abreast)
		is("with one of another client", "another", longRead, false)
		is("less", "one", longRead/2, false)
		c.several = new(atomic.Bool)
		is("of a reader, with another", "one", longRead, abreast)
		c.r.over(turn)
		is("of a reader, between others", "one", longRead, abreast)
		c.several = nil
		is("alone again", "one", longRead, false)
		c.strategy.Adapts = false
		c.several = atomic.NewBool(true)
		is("by a strategy that does not adapt", "one", longRead, false)
	}
}

func TestNotMoreRangesAreKnownThanThereIsRoomFor(t *testing.T) {
	var ms mappings
	for i := range int64(2*maxSent + 1) {
		ms.again(sentRange{from: i << 20})
		if len(ms.sent) > maxSent {
			t.Fatalf("%d ranges are known", len(ms.sent))
		}
	}
	if !ms.again(sentRange{from: 2 * maxSent << 20}) {
		t.Error("the latest range is not known")
	}
}
