package files

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/vmmc"
)

// fairEnv makes the full form of the test below run, for so long: "1m".
const fairEnv = "PINWHEEL_FILES_FAIR"

// Clients that all want as much as they can get share one budget.
func TestManyClientsUnderOneBudget(t *testing.T) {
	clients, budget, during := 8, int64(8<<20), time.Duration(0)
	if s := os.Getenv(fairEnv); s != "" {
		var err error
		if during, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		clients, budget = 64, 64<<20
	}
	for _, w := range ways {
		if w.trusted { // what sendfile(2) sends pins nothing, and the kernel divides the network
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			testwait.BoundAt(t, testwait.Limit+during)
			const size = 8 << 20
			s := w.serve(t, ServerOptions{BudgetBytes: budget, MaxClients: clients})
			s.sparse("f", size)
			var opened []*File
			for range clients {
				c := s.clientOf(openNode(t, withWarn(w.node(t, "client"))), func(o *ClientOptions) { o.WindowBytes = 4 << 20 })
				opened = append(opened, open(t, c, "f"))
			}
			ctx, cancel := context.WithTimeout(context.Background(), max(during, testwait.Limit/4))
			defer cancel()
			copied := make([]atomic.Int64, clients)
			var all sync.WaitGroup
			for i, f := range opened {
				all.Go(func() {
					for copied[i].Load() < 2*size || during > 0 {
						n, err := f.CopyRange(ctx, writer(func(p []byte) error {
							copied[i].Add(int64(len(p)))
							return nil
						}), 0, size)
						if ctx.Err() != nil {
							break
						}
						if err != nil || n != size {
							t.Errorf("client %d: %d bytes, %v", i, n, err)
							break
						}
					}
				})
			}
			all.Wait()
			least, most := copied[0].Load(), copied[0].Load()
			for i := range copied {
				least, most = min(least, copied[i].Load()), max(most, copied[i].Load())
			}
			if during > 0 && float64(most) > 1.1*float64(least) {
				t.Errorf("one client got %d bytes, another one %d", least, most)
			}
			st := s.server.Stats()
			if st.PeakBytes > budget || st.Errors > int64(clients) { // those that ctx has ended
				t.Errorf("%+v", st)
			}
			t.Logf("by RDMA %d bytes, in TLS %d, in shared memory %d", st.BytesRDMA, st.BytesTLS, st.BytesShared)
			t.Logf("%d clients: from %d to %d bytes each, at most %d of %d pinned", clients, least, most, st.PeakBytes, budget)
		})
	}
}

func withWarn(o vmmc.Options) vmmc.Options {
	o.Warn = func(string) {} // a client that ends in the middle of a read may end its connection
	return o
}
