package protocol

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/testwait"
)

// Every notification is taken once, in order, or comes back at once, or is dropped: none is lost.
func TestQueueKeepsWhatSomebodyWants(t *testing.T) {
	testwait.Bound(t)
	rapid.Check(t, func(t *rapid.T) {
		q := &Queue{Coalesce: rapid.Bool().Draw(t, "coalesce")}
		var blocked, discard, handler bool
		var waiters, put, taken, dropped int
		drop := func(all []Notification) {
			for _, n := range all {
				dropped += n.Count
			}
			if len(all) > 0 && !discard && (blocked || handler || waiters > 0) {
				t.Fatalf("dropped %v, which somebody wants", all)
			}
		}
		last := map[uint16]uint64{} // of each tag, the latest that was taken
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				put++
				n := Notification{Tag: rapid.Uint16Range(0, 2).Draw(t, "tag"), Offset: uint64(put), Count: 1}
				before := q.Len()
				if kept := q.Put(n); kept != (q.Len() == before+1) {
					t.Fatalf("kept: %v, of %d", kept, q.Len())
				} else if !kept && (discard || !blocked && !handler && waiters == 0) {
					dropped++
				} else if !kept && !q.Coalesce {
					t.Fatal("lost")
				}
			},
			"take": func(t *rapid.T) {
				if n, ok := q.Take(); ok {
					taken += n.Count
					if n.Offset <= last[n.Tag] {
						t.Fatalf("%v after %d", n, last[n.Tag])
					}
					last[n.Tag] = n.Offset
				}
			},
			"block":   func(t *rapid.T) { blocked = !blocked; drop(q.Block(blocked)) },
			"discard": func(t *rapid.T) { discard = !discard; drop(q.Discard(discard)) },
			"handle":  func(t *rapid.T) { handler = !handler; drop(q.Handle(handler)) },
			"wait":    func(t *rapid.T) { waiters++; drop(q.Wait(1)) },
			"stop waiting": func(t *rapid.T) {
				if waiters > 0 {
					waiters--
					drop(q.Wait(-1))
				}
			},
			"": func(t *rapid.T) {
				queued := 0
				for _, n := range q.items {
					queued += n.Count
				}
				if taken+dropped+queued != put {
					t.Fatalf("%d taken, %d dropped, %d queued of %d", taken, dropped, queued, put)
				}
				if q.Deliverable() != (handler && !blocked && q.Len() > 0) {
					t.Fatal("deliverable or not")
				}
			},
		})
	})
}
