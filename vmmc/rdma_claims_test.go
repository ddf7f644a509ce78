//go:build linux && cgo

package vmmc

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma"

	"sync/atomic"
)

// perftest runs a program of perftest at both ends and returns a column of the result of its client, the first
// being 0.
func perftest(t *testing.T, column int, program string, args ...string) float64 {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%v: install perftest", err)
	}
	devices, err := rdma.Devices()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // for a port that is free
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	args = append([]string{"-d", devices[0].Name, "-i", strconv.Itoa(int(devices[0].Port)), "-p", port, "-F"}, args...)
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	defer cancel()
	server := exec.CommandContext(ctx, program, args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = server.Wait() }()
	var out []byte
	for { // until the server listens
		var stderr bytes.Buffer
		client := exec.CommandContext(ctx, program, append(args, "127.0.0.1")...)
		client.Stderr = &stderr
		if out, err = client.Output(); err == nil {
			break
		}
		if !strings.Contains(stderr.String()+string(out), "connect") || ctx.Err() != nil {
			t.Fatalf("%v: %s%s", err, out, stderr.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	size := args[len(args)-1]
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > column && f[0] == size {
			v, err := strconv.ParseFloat(f[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("%s printed no line for %s bytes: %s", program, size, out)
	return 0
}

// Send beside perftest, which has all its memory registered before it begins. It takes both processors for some
// seconds.
func TestRDMAClaims(t *testing.T) {
	if os.Getenv("PINWHEEL_VMMC_CLAIMS") != "y" {
		t.Skip("measures for some seconds with PINWHEEL_VMMC_CLAIMS=y, as make bench-vmmc-rdma does")
	}
	tr := overRDMA(t)
	tr.options(t, "sender") // skips without a device
	theirs := perftest(t, 4, "ib_write_lat", "-n", "20000", "-s", "8") * 1e3
	ours := testing.Benchmark(func(b *testing.B) { wordThereAndBack(b, tr) }).Extra["ns/msg"]
	t.Logf("a word: %.0f ns, ib_write_lat %.0f ns (typical): %.2f times", ours, theirs, ours/theirs)
	if !(ours <= 1.3*theirs) || ours <= 0 {
		t.Error("more than 1.3 times")
	}
	const size = 1 << 20
	theirs = perftest(t, 3, "ib_write_bw", "-n", "2000", "-s", strconv.Itoa(size)) * (1 << 20) / 1e6
	ours = size * 1e3 / testing.Benchmark(func(b *testing.B) { sendOver(b, tr, size) }).Extra["ns/msg"]
	t.Logf("1 MiB: %.0f MB/s, ib_write_bw %.0f MB/s (mean): %.2f times", ours, theirs, ours/theirs)
	if !(ours >= 0.9*theirs) || theirs <= 0 {
		t.Error("less than 0.9 times")
	}
}

// perMessage reports how long each message takes of a call of do.
func perMessage(b *testing.B, messages int, do func()) {
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*messages), "ns/msg")
}

func sendOver(b *testing.B, tr transport, size int) {
	_, _, i := tr.begin(b).pair(b, size, ExportOptions{Queue: 1024})
	src := make([]byte, size)
	perMessage(b, 1, func() {
		if err := i.Send(context.Background(), src, 0, SendOptions{}); err != nil {
			b.Fatal(err)
		}
	})
}

// wordThereAndBack sends a word to and fro: two messages. The receivers look at their memory.
func wordThereAndBack(b *testing.B, tr transport) {
	var memory [2][]byte
	var nodes [2]*Node
	for k, name := range []string{"sender", "receiver"} {
		o := tr.options(b, name)
		o.Listen = []string{tr.listen(b)}
		nodes[k] = openNode(b, o)
		var err error
		if memory[k], err = nodes[k].Alloc(4096); err == nil {
			_, err = nodes[k].Export(1, memory[k], Permissions{Peers: []string{"sender", "receiver"}}, ExportOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	var to [2]func(word uint64) // to the memory of the same number
	for k := range to {
		i, err := nodes[1-k].Import(context.Background(), 1, nodes[k].Addresses()[0])
		if err != nil {
			b.Fatal(err)
		}
		tr.settle(b, i)
		src := make([]byte, 8)
		to[k] = func(word uint64) {
			wordAt(src, 0).Store(word)
			if err := i.Send(context.Background(), src, 0, SendOptions{}); err != nil {
				b.Error(err)
			}
		}
	}
	const last = 1 << 63
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seen := uint64(0); seen != last; {
			seen = awaitWord(wordAt(memory[1], 0), seen)
			to[0](seen)
		}
	}()
	word, answer := uint64(0), wordAt(memory[0], 0)
	perMessage(b, 2, func() {
		word++
		to[1](word)
		awaitWord(answer, word-1)
	})
	to[1](last)
	<-done
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
