package scale

import (
	"errors"
	"testing"

	"pinwheel/trace"
)

// FT was recorded in class B and in class C, on four ranks each. What the rule derives from B is what C has sent: as many
// bytes, by as many calls. C was recorded on a grid of ranks.
func TestDerivedClassSendsWhatTheRecordedOneSends(t *testing.T) {
	small, large := loadBase(t, "ft.B.4"), loadBase(t, "scaling/ft.C.4")
	same := strongJob(t, small, 4, Options{Layout: [2]int{2, 2}})
	grown := strongJob(t, small, 4, Options{Class: "C", Layout: [2]int{2, 2}})
	if grown.Program() != "ft.C.4" {
		t.Errorf("it is called %s", grown.Program())
	}
	for id := range 4 {
		alltoalls := func(all []trace.Record) (some []trace.Record) {
			for _, r := range all {
				if r.Op == trace.OpAlltoall {
					some = append(some, r)
				}
			}
			return some
		}
		got, want, had := alltoalls(records(t, grown, id)), alltoalls(records(t, strongJob(t, large, 4, Options{}), id)),
			alltoalls(records(t, same, id))
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("rank %d: %d alltoalls, recorded %d", id, len(got), len(want))
		}
		for i := range got {
			if got[i].Bytes != want[i].Bytes || got[i].Dir != want[i].Dir {
				t.Fatalf("rank %d: alltoall of %d bytes, recorded %d", id, got[i].Bytes, want[i].Bytes)
			}
			if got[i].Addr != 4*had[i].Addr { // or arrays might overlap that did not
				t.Fatalf("rank %d: at %#x, in class B at %#x", id, got[i].Addr, had[i].Addr)
			}
		}
	}
	for _, c := range []struct{ trace, class string }{{"ft.B.4", "A"}, {"ft.B.4", "X"}, {"is.C.4", "D"}} {
		if _, err := StrongJob(loadBase(t, c.trace), 4, Options{Class: c.class}); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s as class %s: %v", c.trace, c.class, err)
		}
	}
}
