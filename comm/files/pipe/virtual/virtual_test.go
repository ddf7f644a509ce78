package virtual_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/pipe/virtual"
	"pinwheel/internal/testwait"
	"pinwheel/verbs"
)

// plain is a computer of round numbers: a byte is 1 ns on the wire, and nothing else takes time but what a test adds.
func plain() virtual.Computer {
	return virtual.Computer{
		Processors: 1, BusBytesPerSec: 1e12, WireBytesPerSec: 1e9, CopyBytesPerSec: 1e12, MemoryTouches: 3,
	}
}

func fixed(registerNs, deregisterNs float64) virtual.Registration {
	return virtual.Registration{Costs: verbs.Costs{
		Register: verbs.Cost{FixedNs: registerNs}, Deregister: verbs.Cost{FixedNs: deregisterNs},
	}}
}

func TestTimesOfWhatIsUnderWayTogether(t *testing.T) {
	testwait.Bound(t)
	sends := func(n int64, depth int, r virtual.Registration) virtual.Transfer {
		shape := pipe.Shape{Source: pipe.Map, ChunkBytes: 1000, Depth: depth}
		return virtual.Transfer{Bytes: n, Shape: shape, Registration: r}
	}
	slow, free := fixed(5000, 0), virtual.Registration{}
	keeps := func(t virtual.Transfer) virtual.Transfer { t.Kept = true; return t }
	copies := keeps(virtual.Transfer{Bytes: 1000, Shape: pipe.Shape{ChunkBytes: 1000, Depth: 1}})
	for _, c := range []struct {
		name      string
		computer  func(*virtual.Computer)
		transfers []virtual.Transfer
		wantNs    float64
	}{
		{"one by one", nil, []virtual.Transfer{sends(10_000, 1, fixed(500, 100))}, 10 * 1600},
		{"overlapping", nil, []virtual.Transfer{sends(10_000, 2, fixed(500, 100))}, 500 + 10*1000 + 100},
		{"the processor is slower", nil, []virtual.Transfer{sends(10_000, 2, fixed(1500, 500))}, 10*2000 + 1000 - 500},
		{"kept", nil, []virtual.Transfer{keeps(sends(10_000, 1, fixed(500, 100)))}, 10 * 1000},
		{"message and completion", func(c *virtual.Computer) { c.MessageNs, c.CompletionNs = 10, 20 },
			[]virtual.Transfer{sends(2000, 1, free)}, 2 * 1030},
		{"two share the wire", nil, []virtual.Transfer{sends(5000, 2, free), sends(5000, 2, free)}, 10_000},
		// The post of the first waits for the registration of the second.
		{"two share the processor", nil, []virtual.Transfer{sends(1000, 1, slow), sends(1000, 1, slow)}, 12_000},
		{"two processors", func(c *virtual.Computer) { c.Processors = 2 },
			[]virtual.Transfer{sends(1000, 1, slow), sends(1000, 1, slow)}, 7000},
		{"the bus limits the wire", func(c *virtual.Computer) { c.BusBytesPerSec = 0.5e9 },
			[]virtual.Transfer{sends(1000, 1, free)}, 2000},
		// 3000 bytes of the bus to copy, 1000 to send.
		{"copied", func(c *virtual.Computer) { c.BusBytesPerSec = 1e9 }, []virtual.Transfer{copies}, 4000},
		{"copied in the cache", func(c *virtual.Computer) {
			c.BusBytesPerSec, c.CopyCacheBytes, c.CopyBytesPerSec = 1e9, 2000, 2e9
		}, []virtual.Transfer{copies}, 1500},
		{"empty", nil, []virtual.Transfer{sends(0, 1, free)}, 0},
	} {
		computer := plain()
		if c.computer != nil {
			c.computer(&computer)
		}
		results, err := virtual.Run(computer, c.transfers)
		if err != nil {
			t.Fatal(err)
		}
		end := 0.0
		for _, r := range results {
			end = max(end, r.EndNs)
		}
		if math.Abs(end-c.wantNs) > 1 {
			t.Errorf("%s: %.0f ns, want %.0f", c.name, end, c.wantNs)
		}
	}
}

// Whatever the shapes are: all is sent, no faster than the wire, within the bounds of pinned memory, and a second run
// is the same.
func TestTransfersKeepTheBoundsOfTheirComputer(t *testing.T) {
	testwait.Bound(t)
	rapid.Check(t, func(t *rapid.T) {
		var transfers []virtual.Transfer
		total := 0.0
		for range rapid.IntRange(1, 4).Draw(t, "transfers") {
			s := pipe.Shape{
				Source:     pipe.Source(rapid.IntRange(0, 1).Draw(t, "source")),
				ChunkBytes: rapid.Int64Range(1<<10, 1<<20).Draw(t, "chunk"), Depth: rapid.IntRange(1, 6).Draw(t, "depth"),
			}
			s.Ahead = rapid.IntRange(0, s.Depth).Draw(t, "ahead")
			n := rapid.Int64Range(0, 1<<18).Draw(t, "bytes")
			transfers = append(transfers, virtual.Transfer{
				Bytes: n, Shape: s, Registration: virtual.HotI07User, Kept: rapid.Bool().Draw(t, "kept"),
			})
			total += float64(n)
		}
		c := virtual.HotI07
		results, err := virtual.Run(c, transfers)
		if err != nil {
			t.Fatal(err)
		}
		end, processors, wire := 0.0, 0.0, 0.0
		for i, r := range results {
			s := transfers[i].Shape
			chunks := (transfers[i].Bytes + s.ChunkBytes - 1) / s.ChunkBytes
			most := s.ChunkBytes * int64(s.Depth)
			if r.SentBytes != transfers[i].Bytes || r.Registrations != chunks || r.PeakPinnedBytes > most {
				t.Fatalf("%+v: %+v", transfers[i], r)
			}
			end, processors, wire = max(end, r.EndNs), processors+r.ProcessorNs, wire+r.WireNs
		}
		least, most := total/c.WireBytesPerSec*1e9*0.999, end*1.001
		if wire < least || wire > most || processors > most*float64(c.Processors) {
			t.Fatalf("%.0f ns for %.0f bytes, %.0f of processors, %.0f of the wire", end, total, processors, wire)
		}
		again, err := virtual.Run(c, transfers)
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			if results[i] != again[i] {
				t.Fatalf("%+v, and then %+v", results[i], again[i])
			}
		}
	})
}

func TestAShapeThatMakesNoSenseIsAnError(t *testing.T) {
	if _, err := virtual.Run(plain(), []virtual.Transfer{{Bytes: 1}}); err == nil {
		t.Error("a transfer without depth ran")
	}
}
