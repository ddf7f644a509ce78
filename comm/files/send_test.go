package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/comm/files/pipe"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// sending is memory of one node, and the import of another that sends there.
type sending struct {
	memory []byte
	dst    *vmmc.Import
}

func (w way) sending(t testing.TB, bytes uint64) sending {
	t.Helper()
	testwait.Bound(t)
	to, from := openNode(t, w.node(t, "client")), openNode(t, w.node(t, "server"))
	memory, err := to.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Export(1, memory, everybody, vmmc.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	dst, err := from.Import(testContext(t), 1, to.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	if w.name == ByRDMA && !dst.AwaitRDMA(testContext(t)) { // a transfer would not wait for it as long
		t.Fatal("RDMA does not come")
	}
	return sending{memory, dst}
}

func (w way) registrar(t testing.TB, s sending, o RegistrarOptions) *Registrar {
	t.Helper()
	r, err := NewRegistrar(s.dst.Node(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestEachStrategySendsTheSame(t *testing.T) {
	for _, w := range ways {
		if w.trusted {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			s := w.sending(t, 8<<20)
			for _, strategy := range pipe.Strategies() {
				for _, n := range sizes {
					f := fileOf(t, n)
					want, err := os.ReadFile(f.Name())
					if err != nil {
						t.Fatal(err)
					}
					clear(s.memory)
					from := min(n, 3)
					st, err := Send(testContext(t), s.dst, 7, f, int64(from), int64(n-from), SendOptions{Strategy: strategy})
					if err != nil || st.Bytes != int64(n-from) || n > from && st.Way != w.name {
						t.Errorf("%s, %d bytes: %+v, %v", strategy.Name, n, st, err)
					}
					same(t, fmt.Sprint(strategy.Name, n), s.memory[7:][:n-from], want[from:])
					if !bytes.Equal(s.memory[:7], make([]byte, 7)) || s.memory[7+n-from] != 0 {
						t.Errorf("%s, %d bytes: something was written elsewhere", strategy.Name, n)
					}
				}
			}
		})
	}
}

func TestSendOfWhatTheFileHasNot(t *testing.T) {
	s := ways[0].sending(t, 8<<20)
	f := fileOf(t, 1000)
	st, err := Send(testContext(t), s.dst, 0, f, 900, 200, SendOptions{})
	if !errors.Is(err, io.ErrUnexpectedEOF) || st.Bytes != 100 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := Send(testContext(t), s.dst, 0, f, -1, 2, SendOptions{}); err == nil {
		t.Error("from before the beginning")
	}
	if _, err := Send(testContext(t), s.dst, 8<<20-100, f, 0, 1000, SendOptions{}); !errors.Is(err, vmmc.ErrBounds) {
		t.Errorf("beyond the export: %v", err)
	}
}

func overRDMA(t testing.TB) way {
	for _, w := range ways {
		if w.name == ByRDMA {
			return w
		}
	}
	t.Fatal("there is none")
	return way{}
}

func TestRDMARegistersChunkByChunk(t *testing.T) {
	w := overRDMA(t)
	const size = 5<<20 + 4097
	s := w.sending(t, 8<<20)
	f := fileOf(t, size)
	for _, strategy := range []pipe.Strategy{pipe.Pipelined, pipe.Sendfile} {
		r := w.registrar(t, s, RegistrarOptions{Strategy: strategy})
		for range 2 {
			st, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
			if err != nil || st.Registrations != 6 || st.Hits != 0 || st.CopiedBytes != 0 || st.Shape != strategy.Shape {
				t.Errorf("%s: %+v, %v", strategy.Name, st, err)
			}
		}
		most := strategy.Shape.ChunkBytes * int64(strategy.Shape.Depth)
		if st := r.Stats(); st.PinnedBytes != 0 || st.PeakBytes > most || st.PeakBytes == 0 || st.MappingHits != 1 {
			t.Errorf("%s: %+v", strategy.Name, st)
		}
	}
}

func TestRDMAOfAHotFileRegistersNothing(t *testing.T) {
	w := overRDMA(t)
	const size = 3 << 20
	s := w.sending(t, 8<<20)
	strategy := pipe.Auto
	strategy.Policy = "leave-pinned" // what the helper thread releases is its own affair
	r := w.registrar(t, s, RegistrarOptions{Strategy: strategy})
	f := fileOf(t, size)
	first, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
	if err != nil || first.Registrations != 3 {
		t.Errorf("%+v, %v", first, err)
	}
	again, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
	if err != nil || again.Registrations != 0 || again.Hits != 3 {
		t.Errorf("%+v, %v", again, err)
	}
	// A small part of it is not copied, either.
	part, err := Send(testContext(t), s.dst, 0, f, 1<<20, 4096, SendOptions{Registrar: r})
	if err != nil || part.Registrations != 0 || part.CopiedBytes != 0 {
		t.Errorf("%+v, %v", part, err)
	}
	// Another content needs other registrations, also if the old pages are pinned still.
	if _, err := f.WriteAt([]byte("changed"), 5); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size - 1); err != nil {
		t.Fatal(err)
	}
	settle(t, f.Name())
	changed, err := Send(testContext(t), s.dst, 0, f, 0, size-1, SendOptions{Registrar: r})
	if err != nil || changed.Registrations != 3 {
		t.Errorf("%+v, %v", changed, err)
	}
	if string(s.memory[5:12]) != "changed" {
		t.Errorf("%q arrived", s.memory[5:12])
	}
}

// The chunks of a long transfer are larger, and serve a part of the file as well.
func TestRDMAOfALongTransferHasFewRegistrations(t *testing.T) {
	w := overRDMA(t)
	const size = 64 << 20
	s := w.sending(t, size)
	strategy := pipe.Auto
	strategy.Policy = "leave-pinned"
	r := w.registrar(t, s, RegistrarOptions{Strategy: strategy})
	f := fileOf(t, size)
	st, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
	if most := pipe.Auto.Shape.ChunkBytes * int64(pipe.Auto.Shape.Depth); err != nil || st.Registrations != 32 ||
		st.Shape.ChunkBytes*int64(st.Shape.Depth) > most {
		t.Errorf("%+v, %v", st, err)
	}
	for i := range int64(8) {
		part, err := Send(testContext(t), s.dst, 0, f, i*8<<20, 8<<20, SendOptions{Registrar: r})
		if err != nil || part.Registrations != 0 || part.Hits != 8 {
			t.Errorf("%+v, %v", part, err)
		}
	}
}

// Bytes that follow each other through a budget push each other out, and what is sent again finds nothing.
func TestRDMAOfAFileBeyondTheBudgetFindsItsBeginning(t *testing.T) {
	w := overRDMA(t)
	const size, budget = 24 << 20, 16 << 20
	s := w.sending(t, size)
	strategy := pipe.Auto
	strategy.Policy = "leave-pinned"
	r := w.registrar(t, s, RegistrarOptions{Strategy: strategy, BudgetBytes: budget})
	f := fileOf(t, size)
	want, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	kept := budget>>20 - int64(pipe.Auto.Shape.Depth) - 1 // chunks of 1 MiB, beside a transfer and its pages
	for again := range 3 {
		st, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
		if err != nil || again > 0 && (st.Hits != kept || st.Registrations != 24-kept) {
			t.Errorf("%d: %+v, %v", again, st, err)
		}
		if st := r.Stats(); st.PinnedBytes != kept<<20 || st.PeakBytes > budget {
			t.Errorf("%d: %+v", again, st)
		}
	}
	// A little of it is copied where it can't be registered still.
	for from, copied := range map[int64]int64{0: 0, size - 4096: 4096} {
		st, err := Send(testContext(t), s.dst, uint64(from), f, from, 4096, SendOptions{Registrar: r})
		if err != nil || st.CopiedBytes != copied {
			t.Errorf("4 KiB from %d: %+v, %v", from, st, err)
		}
	}
	same(t, "the file", s.memory[:size], want)
}

func TestRDMAOfSmallFilesIsCopied(t *testing.T) {
	w := overRDMA(t)
	s := w.sending(t, 8<<20)
	strategy := pipe.Auto
	strategy.Policy = "leave-pinned"
	r := w.registrar(t, s, RegistrarOptions{Strategy: strategy})
	for i := range 5 {
		f := fileOf(t, 100_000)
		st, err := Send(testContext(t), s.dst, 0, f, 0, 100_000, SendOptions{Registrar: r})
		if err != nil || st.CopiedBytes != 100_000 || i > 0 && st.Registrations != 0 {
			t.Errorf("%+v, %v", st, err)
		}
	}
}

// limited is a provider that pins no more than a limit, as RLIMIT_MEMLOCK has it.
type limited struct {
	verbs.Provider
	most int64
	now  atomic.Int64
}

func (l *limited) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	n := int64(r.PageAligned().Len())
	if l.now.Add(n) > l.most {
		l.now.Sub(n)
		return verbs.Region{}, &verbs.Error{Op: "register", Range: r, Kind: verbs.ErrPinnedMemory}
	}
	g, err := l.Provider.Register(r, a)
	if err != nil {
		l.now.Sub(n)
	}
	return g, err
}

func (l *limited) Deregister(g verbs.Region) error {
	l.now.Sub(int64(g.Range.Len()))
	return l.Provider.Deregister(g)
}

func TestRDMAWithLittleToPinIsNoError(t *testing.T) {
	w := overRDMA(t)
	const size = 3<<20 + 5
	for what, most := range map[string]int64{
		"one chunk": 1 << 20, "one slot of the ring": 64 << 10, "less than that": 16 << 10, "nothing": 0,
	} {
		for _, strategy := range []pipe.Strategy{pipe.Dynamic, pipe.Pipelined, pipe.Sendfile, pipe.Static} {
			s := w.sending(t, 8<<20)
			r := w.registrar(t, s, RegistrarOptions{Strategy: strategy})
			l := &limited{Provider: r.provider, most: most}
			r.provider = l
			f := fileOf(t, size)
			want, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			st, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
			if err != nil || st.Bytes != size {
				t.Errorf("%s, %s: %+v, %v", what, strategy.Name, st, err)
			}
			same(t, what, s.memory[:size], want)
		}
	}
}

func TestBudgetIsNeverExceeded(t *testing.T) {
	w := overRDMA(t)
	const budget, senders, size = 1 << 20, 6, 3<<20 + 1
	for _, strategy := range []pipe.Strategy{pipe.Auto, pipe.Sendfile, pipe.Static, pipe.Dynamic} {
		s := w.sending(t, senders*4<<20)
		r := w.registrar(t, s, RegistrarOptions{Strategy: strategy, BudgetBytes: budget})
		l := &limited{Provider: r.provider, most: budget} // so that one byte more would be Refused
		r.provider = l
		f := fileOf(t, size)
		want, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		for i := range senders {
			go func() {
				tr := &transfer{r: r, client: i, strategy: strategy, file: f, n: size, dst: s.dst, at: uint64(i) * 4 << 20}
				var err error
				if tr.stamp, err = stampOf(f); err == nil {
					err = tr.run(testContext(t))
				}
				if err == nil && tr.stats.Way != ByRDMA {
					err = fmt.Errorf("%s: %+v", strategy.Name, tr.stats)
				}
				ended <- err
			}()
		}
		for range senders {
			if err := testwait.Receive(t, "the end of a transfer", ended); err != nil {
				t.Error(err)
			}
		}
		for i := range senders {
			same(t, strategy.Name, s.memory[i*4<<20:][:size], want)
		}
		if st := r.Stats(); st.PeakBytes > budget || st.PeakBytes == 0 || st.BudgetBytes != budget {
			t.Errorf("%s: %+v", strategy.Name, st)
		}
	}
}

func TestBudgetOfLessThanAChunk(t *testing.T) {
	w := overRDMA(t)
	const size = 3<<20 + 5
	for _, budget := range []int64{1, 4096, 65_537, 1 << 20} {
		for _, strategy := range pipe.Strategies() {
			s := w.sending(t, 8<<20)
			r := w.registrar(t, s, RegistrarOptions{Strategy: strategy, BudgetBytes: budget})
			f := fileOf(t, size)
			want, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			st, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
			if err != nil || st.Bytes != size {
				t.Errorf("%d, %s: %+v, %v", budget, strategy.Name, st, err)
			}
			same(t, strategy.Name, s.memory[:size], want)
			if got := r.Stats(); got.PeakBytes > budget {
				t.Errorf("%d, %s: %+v", budget, strategy.Name, got)
			}
		}
	}
}

// The slots of a ring are used once in a transfer, and not for each chunk: each use is work for the helper thread.
func TestRDMAUsesARingOnce(t *testing.T) {
	w := overRDMA(t)
	const size = 8 << 20
	s := w.sending(t, size)
	f := fileOf(t, size)
	r := w.registrar(t, s, RegistrarOptions{Strategy: pipe.Static})
	for n := int64(1); n <= 3; n++ {
		st, err := Send(testContext(t), s.dst, 0, f, 0, size, SendOptions{Registrar: r})
		if err != nil || st.CopiedBytes != size {
			t.Errorf("%+v, %v", st, err)
		}
		if st, slots := r.Stats(), int64(pipe.Static.Shape.Depth); st.Registrations+st.Hits != n*slots {
			t.Errorf("%d transfers: %+v", n, st)
		}
	}
}
