package vmmc

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tables of §6. Both ends are nodes of this process, so that cpu-ns/op is the processor time of both, for
// all that one message costs. Those who wait spin: in the columns of latency nobody sleeps but in sockets.

// cpuTime is the processor time of this process so far, with that of the kernel for it.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure reports the processor time of messages per call of do.
func measure(b *testing.B, messages int, do func()) {
	before := cpuTime(b)
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*messages), "cpu-ns/msg")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*messages), "ns/msg")
	b.ReportMetric(0, "ns/op")
}

// awaitWord waits until a word has changed from old, and returns it: it looks for 50 us, and then now and then.
// Goroutines that only look would keep Go from asking the kernel what came from the network.
func awaitWord(w *atomic.Uint64, old uint64) (now uint64) {
	var begin time.Time
	for k := 0; ; k++ {
		if now = w.Load(); now != old {
			return now
		}
		switch {
		case k%64 != 63:
		case begin.IsZero():
			begin = time.Now()
		case time.Since(begin) < 50*time.Microsecond:
			runtime.Gosched()
		default:
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// opposite is a pair of exports, one at each end.
type opposite struct {
	memory [2][]byte
	to     [2]*Import // to the memory of the other number
	nodes  [2]*Node
}

func bothWays(b *testing.B, tr transport) *opposite {
	var p opposite
	for k, name := range []string{"sender", "receiver"} {
		o := tr.options(b, name)
		o.Listen = []string{tr.listen(b)}
		p.nodes[k] = openNode(b, o)
		var err error
		if p.memory[k], err = p.nodes[k].Alloc(4096); err == nil {
			_, err = p.nodes[k].Export(1, p.memory[k], Permissions{Peers: []string{"sender", "receiver"}}, ExportOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for k := range p.to {
		var err error
		if p.to[k], err = p.nodes[1-k].Import(context.Background(), 1, p.nodes[k].Addresses()[0]); err != nil {
			b.Fatal(err)
		}
		tr.settle(b, p.to[k])
	}
	return &p
}

// deliberate sends words with Send.
func (p *opposite) deliberate(b *testing.B, to int) func(uint64) {
	src := make([]byte, 8)
	return func(word uint64) {
		wordAt(src, 0).Store(word)
		if err := p.to[to].Send(context.Background(), src, 0, SendOptions{}); err != nil {
			b.Error(err)
		}
	}
}

// automatic sends words with Publish, or by a plain store in shared memory.
func (p *opposite) automatic(b *testing.B, to int) func(uint64) {
	local, err := p.nodes[1-to].Alloc(4096)
	if err != nil {
		b.Fatal(err)
	}
	m, err := p.to[to].Map(0, local, MapOptions{Interval: -1})
	if err != nil {
		b.Fatal(err)
	}
	if m.update == nil {
		w := wordAt(local, 0)
		return func(word uint64) { w.Store(word) }
	}
	return func(word uint64) {
		if err := m.Publish(context.Background(), 0, word); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkLatency is a word to and fro: two messages. The receiver looks at its memory.
func BenchmarkLatency(b *testing.B) {
	for _, tr := range []transport{transports[0], transports[2], transports[4]} {
		name := strings.ReplaceAll(tr.name, " ", "-")
		b.Run("AU/"+name, func(b *testing.B) { wordThereAndBack(b, tr, (*opposite).automatic) })
		b.Run("DU/"+name, func(b *testing.B) { wordThereAndBack(b, tr, (*opposite).deliberate) })
	}
	for _, network := range []string{"unix", "tcp"} {
		b.Run("socket/"+network, func(b *testing.B) { socketThereAndBack(b, network) })
	}
}

func wordThereAndBack(b *testing.B, tr transport, way func(*opposite, *testing.B, int) func(uint64)) {
	p := bothWays(b, tr)
	there, back := way(p, b, 1), way(p, b, 0)
	const last = 1 << 63
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := wordAt(p.memory[1], 0)
		for seen := uint64(0); seen != last; {
			seen = awaitWord(w, seen)
			back(seen)
		}
	}()
	word, answer := uint64(0), wordAt(p.memory[0], 0)
	measure(b, 2, func() {
		word++
		there(word)
		awaitWord(answer, word-1)
	})
	there(last)
	<-done
}

func socketThereAndBack(b *testing.B, network string) {
	c, s := sockets(b, network)
	go func() { _, _ = io.Copy(s, onlyReader{s}); s.Close() }()
	word := make([]byte, 8)
	measure(b, 2, func() {
		if _, err := c.Write(word); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, word); err != nil {
			b.Fatal(err)
		}
	})
}

// onlyReader keeps io.Copy from splice(2): programs look at what they get.
type onlyReader struct{ io.Reader }

// sockets returns both ends of a connection.
func sockets(b *testing.B, network string) (c, s net.Conn) {
	address := "127.0.0.1:0"
	if network == "unix" {
		address = strings.TrimPrefix(socket(b), "unix:")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		s, _ := l.Accept()
		accepted <- s
	}()
	if c, err = net.Dial(network, l.Addr().String()); err != nil {
		b.Fatal(err)
	}
	s = <-accepted
	b.Cleanup(func() { c.Close(); s.Close() })
	return c, s
}

// BenchmarkBandwidth is a stream of messages, with all that their receiver must do: for vmmc, nothing.
func BenchmarkBandwidth(b *testing.B) {
	for _, size := range []int{8, 4096, 1 << 20} {
		for _, tr := range []transport{transports[0], transports[1], transports[2], transports[4]} {
			name := strings.ReplaceAll(tr.name, " ", "-") + "/" + sizeName(size)
			b.Run("DU/"+name, func(b *testing.B) { benchmarkSend(b, tr, size, SendOptions{}) })
			if size == 8 {
				b.Run("DU-notify/"+name, func(b *testing.B) { benchmarkSend(b, tr, size, SendOptions{Notify: true}) })
			}
		}
		for _, network := range []string{"unix", "tcp"} {
			b.Run("socket/"+network+"/"+sizeName(size), func(b *testing.B) { benchmarkSocket(b, network, size) })
		}
	}
}

func benchmarkSocket(b *testing.B, network string, size int) {
	c, s := sockets(b, network)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, size); ; {
			if _, err := io.ReadFull(s, buf); err != nil {
				return
			}
		}
	}()
	src := make([]byte, size)
	b.SetBytes(int64(size))
	measure(b, 1, func() {
		if _, err := c.Write(src); err != nil {
			b.Fatal(err)
		}
	})
	c.Close()
	<-done
}

// The claims of §6, on this machine over shared memory. It takes both processors for some seconds.
func TestClaimsOfTheSeed(t *testing.T) {
	if os.Getenv("PINWHEEL_VMMC_CLAIMS") != "y" {
		t.Skip("measures for some seconds with PINWHEEL_VMMC_CLAIMS=y, as make bench-vmmc does")
	}
	per := func(what string, f func(*testing.B)) float64 { return testing.Benchmark(f).Extra[what] }
	shared := transports[0]
	for _, c := range []struct {
		claim, what string
		least       float64
		ours, other func(*testing.B)
	}{
		{"latency of automatic update, below TCP's", "ns/msg", 3,
			func(b *testing.B) { wordThereAndBack(b, shared, (*opposite).automatic) },
			func(b *testing.B) { socketThereAndBack(b, "tcp") }},
		{"bandwidth of 4 KiB by deliberate update, above a Unix socket's", "ns/msg", 1.5,
			func(b *testing.B) { benchmarkSend(b, shared, 4096, SendOptions{}) },
			func(b *testing.B) { benchmarkSocket(b, "unix", 4096) }},
		{"processor time of a word by deliberate update, below a Unix socket's", "cpu-ns/msg", 4,
			func(b *testing.B) { benchmarkSend(b, shared, 8, SendOptions{}) },
			func(b *testing.B) { benchmarkSocket(b, "unix", 8) }},
	} {
		ours, other := per(c.what, c.ours), per(c.what, c.other)
		t.Logf("%s: %.0f and %.0f %s: %.1f times (claimed: %v)", c.claim, ours, other, c.what, other/ours, c.least)
		if !(other >= c.least*ours) || ours <= 0 {
			t.Errorf("%s: not %v times", c.claim, c.least)
		}
	}
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return "1MiB"
	case n >= 1<<10:
		return "4KiB"
	}
	return "8B"
}

func benchmarkSend(b *testing.B, tr transport, size int, o SendOptions) {
	w := tr.begin(b)
	_, e, i := w.pair(b, size, ExportOptions{Queue: 1024})
	if o.Notify {
		e.Handle(func(Notification) {})
	}
	src := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	measure(b, 1, func() {
		if err := i.Send(context.Background(), src, 0, o); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkFlush is a round of automatic update over a connection, with some pages of 16 MiB written to.
func BenchmarkFlush(b *testing.B) {
	const page = 4096
	for _, dirty := range []int{0, 1, 64, 4096} {
		b.Run(fmt.Sprint(dirty, "-pages"), func(b *testing.B) {
			a := newArea(b, transports[2], 4096, MapOptions{Interval: -1, Copy: true})
			a.flush(b)
			if !a.m.update.tracked {
				b.Skip("this kernel tracks no writes")
			}
			measure(b, 1, func() {
				for p := range dirty {
					a.local[p*page]++
				}
				if err := a.m.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
