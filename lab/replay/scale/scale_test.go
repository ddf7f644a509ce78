package scale

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/lab/replay"
	"pinwheel/trace"
)

func loadBase(t testing.TB, name string) *Base {
	t.Helper()
	f, err := trace.Open(filepath.Join("..", "..", "..", "results", "traces", name+".pwt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func strongJob(t testing.TB, b *Base, ranks int, o Options) replay.Job {
	t.Helper()
	j, err := StrongJob(b, ranks, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func records(t testing.TB, j replay.Job, id int) (all []trace.Record) {
	t.Helper()
	s, err := j.Rank(id)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var r trace.Record
		if err := s.Next(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// On as many ranks as were recorded, every rule gives what was recorded: the same calls, peers and
// buffers, and the same compute phases.
func TestRulesReproduceTheRecordedRun(t *testing.T) {
	for _, name := range []string{"ft.B.4", "ft.C.16", "is.C.4", "cg.C.4", "sp.B.4", "sp.D.4", "bt.B.4", "bt.C.4"} {
		b := loadBase(t, name)
		j := strongJob(t, b, b.Ranks(), Options{})
		for id := range b.ranks {
			got := records(t, j, id)
			var prevCPU int64
			i := 0
			for _, c := range b.ranks[id].calls {
				for k, want := range c.records {
					if i == len(got) {
						t.Fatalf("%s, rank %d: %d records, want more", name, id, i)
					}
					g := got[i]
					what := fmt.Sprintf("%s, rank %d, record %d", name, id, i)
					if g.Op != want.Op || g.Dir != want.Dir || g.Addr != want.Addr || g.Bytes != want.Bytes || g.Tag != want.Tag ||
						g.Peer != want.Peer || g.Req != want.Req || g.Stack != want.Stack {
						t.Fatalf("%s: %+v\nwant %+v", what, g, want)
					}
					if d := g.StartCPUNs - prevCPU - c.computeNs; k == 0 && (d < -2 || d > 2) {
						t.Fatalf("%s: computed for %d ns before it, want %d", what, g.StartCPUNs-prevCPU, c.computeNs)
					}
					i++
				}
				prevCPU = got[i-1].EndCPUNs
			}
			if i != len(got) {
				t.Errorf("%s, rank %d: %d records more than recorded", name, id, len(got)-i)
			}
		}
	}
}

// Every message has a sender and a receiver that agree about its size and its tag.
func TestDerivedMessagesMatch(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks []int
		o     Options
	}{
		{"is.C.4", []int{8, 64}, Options{}}, {"cg.C.4", []int{8, 16, 32, 128}, Options{Iterations: 2}},
		{"sp.D.4", []int{9, 36, 100}, Options{Iterations: 2}}, {"sp.B.4", []int{16, 25}, Options{Iterations: 2}},
		{"bt.B.4", []int{9, 16, 100}, Options{Iterations: 2}}, {"bt.B.4", []int{64}, Options{Iterations: 2, Grown: true}},
		{"sp.B.4", []int{9, 64}, Options{Iterations: 2, Grown: true}},
	} {
		b := loadBase(t, tc.name)
		for _, ranks := range tc.ranks {
			j := strongJob(t, b, ranks, tc.o)
			type channel struct{ src, dst, tag int32 }
			sent, received := map[channel][]uint64{}, map[channel][]uint64{}
			for id := range int32(ranks) {
				for _, r := range records(t, j, int(id)) {
					switch r.Op {
					case trace.OpSend, trace.OpIsend:
						c := channel{id, r.Peer, r.Tag}
						sent[c] = append(sent[c], r.Bytes)
					case trace.OpIrecv:
						c := channel{r.Peer, id, r.Tag}
						received[c] = append(received[c], r.Bytes)
					}
				}
			}
			if len(sent) == 0 || len(sent) != len(received) {
				t.Errorf("%s on %d ranks: %d channels are sent on, %d received on", tc.name, ranks, len(sent), len(received))
			}
			for c, bytes := range sent {
				if !slices.Equal(bytes, received[c]) {
					t.Fatalf("%s on %d ranks, %+v: sent %v\nreceived %v", tc.name, ranks, c, bytes[:min(len(bytes), 20)], received[c][:min(len(received[c]), 20)])
				}
			}
		}
	}
}

// The problem stays the same: what all ranks send together in an alltoall is as much as before.
func TestStrongScalingDividesTheProblem(t *testing.T) {
	b := loadBase(t, "ft.B.4")
	for _, tc := range []struct {
		ranks int
		o     Options
		comms []int // sizes of the communicators of alltoalls
	}{
		{16, Options{}, []int{16}}, {16, Options{Layout: [2]int{2, 8}}, []int{2, 8}}, {256, Options{}, []int{256}}, {512, Options{}, []int{2, 256}},
	} {
		j := strongJob(t, b, tc.ranks, tc.o)
		s, err := j.Rank(tc.ranks - 1)
		if err != nil {
			t.Fatal(err)
		}
		sizes := map[int]bool{}
		for _, r := range records(t, j, tc.ranks-1) {
			if r.Op != trace.OpAlltoall {
				continue
			}
			if want := uint64(512<<20) / uint64(tc.ranks); r.Bytes != want {
				t.Fatalf("%d ranks: an alltoall of %d bytes, want %d", tc.ranks, r.Bytes, want)
			}
			if members := s.Comm(r.Comm); !slices.Contains(members, int32(tc.ranks-1)) {
				t.Fatalf("%d ranks: the last is not in its communicator %v", tc.ranks, members)
			} else {
				sizes[len(members)] = true
			}
		}
		for _, n := range tc.comms {
			if !sizes[n] || len(sizes) != len(tc.comms) {
				t.Errorf("%d ranks %v: alltoalls over %v ranks, want %v", tc.ranks, tc.o.Layout, sizes, tc.comms)
			}
		}
	}
}

// Weakly scaled, each rank has as many points of FT's grid as before, but of what it transposes it keeps a smaller part for
// itself: an alltoall of 16 ranks sends as many bytes as one of four. FT.B is 512 x 256 x 256; four times as large, it is class C.
func TestWeakScalingKeepsTheShareOfEachRank(t *testing.T) {
	b := loadBase(t, "ft.B.4")
	grown := records(t, strongJob(t, b, 16, Options{Grown: true}), 5)
	for i, want := range records(t, strongJob(t, b, 16, Options{Class: "C"}), 5) {
		if g := grown[i]; g.Op != want.Op || g.Bytes != want.Bytes || g.Addr != want.Addr || g.StartCPUNs != want.StartCPUNs {
			t.Fatalf("record %d: %+v, in class C %+v", i, g, want)
		}
	}
	var bytes [2]uint64
	for i, all := range [][]trace.Record{records(t, strongJob(t, b, 4, Options{}), 1), grown} {
		for _, r := range all {
			if r.Op == trace.OpAlltoall {
				bytes[i] += r.Bytes
			}
		}
	}
	if bytes[0] != bytes[1] || bytes[0] == 0 {
		t.Errorf("a rank of 4 sends and receives %d bytes, one of 16 %d", bytes[0], bytes[1])
	}
	for _, tc := range []struct {
		name  string
		ranks int
	}{{"ft.B.4", 12}, {"ft.B.4", 6}, {"is.C.4", 16}, {"lu.B.4", 16}} {
		if _, err := StrongJob(loadBase(t, tc.name), tc.ranks, Options{Grown: true}); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s on %d ranks: %v", tc.name, tc.ranks, err)
		}
	}
}

func TestWhatCannotBeScaledIsSaidInOneLine(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks int
		o     Options
		says  string
	}{
		{"lu.B.4", 16, Options{}, "no rule"},
		{"mg.C.4", 16, Options{}, "no rule"},
		{"sp.B.4", 32, Options{}, "SP runs on square numbers"},
		{"bt.B.4", 32, Options{}, "BT runs on square numbers"},
		{"bt.B.4", 16, Options{Class: "C"}, "classes of ft"},
		{"is.C.4", 16, Options{Grown: true}, "larger problems of bt, ft, sp"},
		{"sp.B.4", 64 * 64, Options{}, "three points"},
		{"cg.C.4", 36, Options{}, "powers of two"},
		{"is.C.4", 12, Options{}, "powers of two"},
		{"ft.B.4", 2, Options{}, "fewer"},
		{"ft.B.4", 12, Options{}, "divided"},
		{"ft.B.4", 16, Options{Layout: [2]int{3, 5}}, "layout"},
	} {
		_, err := StrongJob(loadBase(t, tc.name), tc.ranks, tc.o)
		if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s on %d: %v, want a line that says %q", tc.name, tc.ranks, err, tc.says)
		}
	}
	if _, err := Compare(t.Context(), loadBase(t, "ft.B.4"), Copies, 6, 1, replay.Options{}, Options{}); !errors.Is(err, ErrUnfit) {
		t.Errorf("6 ranks of tiles of 4: %v", err)
	}
}
