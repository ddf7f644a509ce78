package files

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// fairEnv makes the full form of the test below run, for so long: "1m".
const fairEnv = "PINWHEEL_FILES_FAIR"

// crowd are clients that all want as much as they can get, each of a file of its own: together these are eight times
// the budget.
type crowd struct {
	clients int
	budget  int64
	during  time.Duration // 0: until all have got enough
	unfair  float64       // most to least bytes of a client
	random  float64       // the same where hardly anybody waits for a turn: schedulers say who is next
}

const crowdFile = 8 << 20 // 8 MiB

func TestManyClientsUnderOneBudget(t *testing.T) {
	c := crowd{clients: 8, budget: 8 << 20, unfair: 4, random: math.Inf(1)}
	if s := os.Getenv(fairEnv); s != "" {
		during, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		c = crowd{clients: 64, budget: 64 << 20, during: during, unfair: 1.1, random: 1.25}
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			testwait.BoundAt(t, testwait.Limit+c.during)
			c.run(t, w)
		})
	}
}

func (c *crowd) run(t *testing.T, w way) {
	s := w.serve(t, ServerOptions{BudgetBytes: c.budget, MaxClients: c.clients})
	var opened []*File
	for i := range c.clients {
		name := fmt.Sprint(i)
		s.write(name, bytes.Repeat([]byte{byte(i + 1)}, crowdFile))
		client := s.client(func(o *ClientOptions) { o.WindowBytes = 4 << 20 })
		opened = append(opened, open(t, client, name))
	}
	copied := make([]atomic.Int64, c.clients) // before it was over
	var over atomic.Bool
	if c.during > 0 {
		defer time.AfterFunc(c.during, func() { over.Store(true) }).Stop()
	}
	var all sync.WaitGroup
	for i, f := range opened {
		all.Go(func() {
			for !over.Load() {
				n, err := f.CopyRange(testContext(t), c.counts(i, &copied[i], &over), 0, crowdFile)
				if err != nil || n != crowdFile {
					t.Errorf("client %d: %d bytes, %v", i, n, err)
					over.Store(true)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { defer close(ended); all.Wait() }()
	for looking := time.NewTicker(time.Millisecond); ; {
		select {
		case <-looking.C:
			if now := s.server.Stats().PinnedBytes; now > c.budget {
				t.Errorf("%d bytes are registered", now)
			}
			if c.during == 0 && c.enough(copied) {
				over.Store(true)
			}
			continue
		case <-ended:
		}
		looking.Stop()
		break
	}
	c.judge(t, w, s.server.Stats(), copied)
}

// enough tells whether all have got a file, and six on average, so that it hardly counts who was the first: the machine
// may stop for a while, so a run of some time could be of any length.
func (c *crowd) enough(copied []atomic.Int64) bool {
	var sum int64
	for i := range copied {
		n := copied[i].Load()
		if n < crowdFile {
			return false
		}
		sum += n
	}
	return sum >= 6*crowdFile*int64(c.clients)
}

// counts counts what a client gets until it is over, and fails with what is another's.
func (c *crowd) counts(i int, copied *atomic.Int64, over *atomic.Bool) io.Writer {
	return writer(func(p []byte) error {
		if want := byte(i + 1); p[0] != want || p[len(p)-1] != want {
			return fmt.Errorf("client %d gets %d and %d", i, p[0], p[len(p)-1])
		}
		if !over.Load() {
			copied.Add(int64(len(p)))
		}
		return nil
	})
}

func (c *crowd) judge(t *testing.T, w way, st Stats, copied []atomic.Int64) {
	least, most := copied[0].Load(), copied[0].Load()
	for i := range copied {
		least, most = min(least, copied[i].Load()), max(most, copied[i].Load())
	}
	unfair := float64(most) / float64(max(least, 1))
	t.Logf("%d clients, %.1f to %.1f MiB each (%.3f), registered %.1f of %d MiB at most, waits %d, refused %d",
		c.clients, float64(least)/(1<<20), float64(most)/(1<<20), unfair, float64(st.PeakBytes)/(1<<20), c.budget>>20,
		st.Waits, st.Refused)
	bound := c.unfair
	// What goes through a connection takes no turns, as a slow network must hold up nobody else, and so many transfers
	// over shared memory go on at a time that few wait for theirs: schedulers say who is next. None registers anything.
	if w.name != ByRDMA {
		bound = c.random
	}
	if unfair > bound {
		t.Errorf("one client got %d bytes, another one %d", least, most)
	}
	if st.Errors != 0 || st.PeakBytes > c.budget || sentBy(st, w) != st.BytesSent {
		t.Errorf("%+v", st)
	}
	if w.name == ByRDMA && (st.PeakBytes < c.budget*9/10 || st.Waits == 0) {
		t.Errorf("the budget was no limit: %+v", st)
	}
}

func withWarn(o vmmc.Options) vmmc.Options {
	o.Warn = func(string) {} // a client that ends in the middle of a read may end its connection
	return o
}
