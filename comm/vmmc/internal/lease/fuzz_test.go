package lease

import (
	"testing"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// granting notes what a Lessor grants.
type granting struct {
	asked, granted map[protocol.Grant]uint64 // bytes
}

func (d *granting) Grant(g protocol.Grant)  { d.granted[g] = wholePages(d.asked[g]) }
func (d *granting) Recall(g protocol.Grant) {}

// Whatever importers ask, and in whatever order, the limits hold, and nothing is left of connections that have ended.
func FuzzLessor(f *testing.F) {
	f.Add([]byte{0, 1, 255, 0, 2, 255, 0, 4, 255, 1, 1, 0, 0, 1, 3, 2, 2, 0, 3, 1, 0})
	f.Add([]byte{0, 0, 200, 0, 3, 200, 0, 6, 200, 0, 9, 200, 1, 3, 0, 1, 3, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		const links = 3
		limits := Limits{Bytes: 6 * mem.PageSize, PeerBytes: 4 * mem.PageSize}
		d := &granting{map[protocol.Grant]uint64{}, map[protocol.Grant]uint64{}}
		r := NewLessor(d, limits)
		for ; len(b) >= 3; b = b[3:] {
			g := protocol.Grant{Link: protocol.Link(b[1]%links + 1), Number: uint64(b[1] / links % 5)}
			switch b[0] % 4 {
			case 0:
				bytes := 1 + uint64(b[2])*mem.PageSize/50
				if r.Check(bytes) != nil {
					continue
				}
				_, had := d.asked[g]
				if !had {
					d.asked[g] = bytes
				}
				if err := r.Renew(g, bytes); (err == nil) == had {
					t.Fatalf("a request for %+v, which was there: %v: %v", g, had, err)
				}
			case 1, 2:
				_, had := d.asked[g]
				delete(d.asked, g)
				delete(d.granted, g)
				if b[0]%4 == 2 {
					r.Drop(g)
				} else if err := r.Yielded(g); (err == nil) != had {
					t.Fatalf("the end of %+v, which was there: %v: %v", g, had, err)
				}
			case 3:
				for o := range d.asked {
					if o.Link == g.Link {
						delete(d.asked, o)
						delete(d.granted, o)
					}
				}
				r.LinkDown(g.Link)
			}
			peers, all := map[protocol.Link]uint64{}, uint64(0)
			for o, bytes := range d.granted {
				all += bytes
				if peers[o.Link] += bytes; peers[o.Link] > limits.PeerBytes {
					t.Fatalf("%d bytes of one peer", peers[o.Link])
				}
			}
			if all > limits.Bytes || all != r.RegisteredBytes() {
				t.Fatalf("%d bytes are registered, and it says %d", all, r.RegisteredBytes())
			}
		}
		for l := range protocol.Link(links) {
			r.LinkDown(l + 1)
		}
		if r.RegisteredBytes() != 0 || len(r.queue)+len(r.leases)+len(r.peers) > 0 {
			t.Errorf("left: %d bytes, %v, %v, %v", r.RegisteredBytes(), r.queue, r.leases, r.peers)
		}
	})
}

// exporterOf notes what a Holder asks for, and what it has.
type exporterOf struct {
	t           *testing.T
	asked, held map[uint64]bool
}

func (d *exporterOf) Renew(number uint64) {
	if d.asked[number] || d.held[number] {
		d.t.Errorf("it asks for lease %d, which it has or has asked for", number)
	}
	d.asked[number] = true
}

func (d *exporterOf) Yield(number uint64) {
	if !d.asked[number] && !d.held[number] {
		d.t.Errorf("it yields lease %d, which it has not", number)
	}
	delete(d.asked, number)
	delete(d.held, number)
}

// Whatever an exporter says, an importer uses no lease that it has not, and yields none that is in use.
func FuzzHolder(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 0, 0, 0, 0, 9, 5, 0, 20, 1, 0, 0, 3, 0, 0, 5, 0, 255, 4, 0, 0})
	f.Add([]byte{0, 0, 0, 2, 0, 0, 0, 0, 1, 3, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 2, 1, 7})
	f.Add([]byte{0, 0, 0, 3, 0, 0}) // recalled before it is granted
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &exporterOf{t, map[uint64]bool{}, map[uint64]bool{}}
		h := NewHolder(d, HolderOptions{IdleNs: 1000 * ms, Costs: verbs.DefaultCosts})
		using, removed, nowNs := map[uint64]int{}, map[uint64]bool{}, int64(0)
		const imports = 4
		for n := range uint64(imports) {
			h.Add(n+1, 1<<16)
		}
		complete := func(n uint64) {
			using[n]--
			u := predictor.Use{StartNs: nowNs - 10, EndNs: nowNs, Op: 1, Frames: [predictor.MaxFrames]uint64{n}}
			h.Complete(n, true, u, nowNs)
		}
		granted := func(n uint64) {
			if err := h.Granted(n, nowNs); err == nil && d.asked[n] { // else it was recalled meanwhile, and is yielded
				delete(d.asked, n)
				d.held[n] = true
			}
		}
		for ; len(b) >= 3; b = b[3:] {
			n := uint64(b[1]%imports) + 1
			switch b[0] % 6 {
			case 0:
				if removed[n] {
					continue
				}
				if h.Use(n, nowNs) {
					if using[n]++; !d.held[n] {
						t.Fatalf("it uses lease %d, which it has not", n)
					}
				}
			case 1:
				if using[n] > 0 {
					complete(n)
				}
			case 2: // as an answer, or by itself
				granted(n)
			case 3:
				h.Recalled(n, nowNs)
			case 4:
				if using[n] == 0 && !removed[n] {
					h.Remove(n)
					removed[n] = true
				}
			case 5:
				nowNs += int64(b[2]) * int64(b[2]) * 10 * us
			}
			if next := h.Next(nowNs); next <= nowNs {
				t.Fatalf("at %d it has something to do at %d", nowNs, next)
			}
			for n, uses := range using {
				if uses > 0 && !d.held[n] {
					t.Fatalf("lease %d was given back in use", n)
				}
			}
		}
		for n := range using {
			for using[n] > 0 {
				complete(n)
			}
		}
		for n := range uint64(imports) {
			if d.asked[n+1] {
				granted(n + 1)
			}
		}
		for range 100 {
			nowNs += 1000 * ms
			h.Next(nowNs)
		}
		if len(d.held) > 0 {
			t.Errorf("idle leases stay: %v", d.held)
		}
	})
}
