package queue

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

// model is Deadlines as a plain sorted slice.
type model []deadline

func (m *model) remove(id mem.RegionID) bool {
	n := len(*m)
	*m = slices.DeleteFunc(*m, func(d deadline) bool { return d.id == id })
	return len(*m) < n
}

func (m *model) put(id mem.RegionID, ns int64) {
	m.remove(id)
	*m = append(*m, deadline{id, ns})
	slices.SortFunc(*m, func(a, b deadline) int {
		return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.id, b.id))
	})
}

func (m model) index(id mem.RegionID) int {
	return slices.IndexFunc(m, func(d deadline) bool { return d.id == id })
}

func (m model) at(i int) (deadline, bool) {
	if i < 0 || i >= len(m) {
		return deadline{}, false
	}
	return m[i], true
}

func TestDeadlinesBehaveAsSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, m := NewDeadlines(), model{}
		// Few identities and times: moves and ties must be frequent.
		ids := rapid.Map(rapid.Uint64Range(1, 80), func(v uint64) mem.RegionID { return mem.RegionID(v) })
		times := rapid.Int64Range(-3, 40)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id, ns := ids.Draw(t, "id"), times.Draw(t, "ns")
				q.Put(id, ns)
				m.put(id, ns)
			},
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if got, want := q.Remove(id), m.remove(id); got != want {
					t.Fatalf("Remove(%d) = %v, want %v", id, got, want)
				}
			},
			"": func(t *rapid.T) { checkDeadlines(t, q, m, ids.Draw(t, "probe")) },
		})
	})
}

func checkDeadlines(t *rapid.T, q *Deadlines, m model, probe mem.RegionID) {
	var up model
	for id, ns := range q.From(math.MinInt64) {
		up = append(up, deadline{id, ns})
	}
	if !slices.Equal(up, m) || q.Len() != len(m) {
		t.Fatalf("queue %v, Len %d, want %v", up, q.Len(), m)
	}
	fromNs := int64(probe) / 2
	var later model
	for id, ns := range q.From(fromNs) {
		later = append(later, deadline{id, ns})
	}
	want := slices.DeleteFunc(slices.Clone(m), func(d deadline) bool { return d.ns < fromNs })
	if !slices.Equal(later, want) {
		t.Fatalf("from %d: %v, want %v", fromNs, later, want)
	}
	first, ok := m.at(0)
	if id, ns, gotOK := q.First(); (deadline{id, ns}) != first || gotOK != ok {
		t.Fatalf("First() = %d, %d, %v, want %v, %v", id, ns, gotOK, first, ok)
	}
	i := m.index(probe)
	if ns, ok := q.Get(probe); ok != (i >= 0) || ok && ns != m[i].ns {
		t.Fatalf("Get(%d) = %d, %v in %v", probe, ns, ok, m)
	}
}

func TestDeadlinesIterationStopsWhenAsked(t *testing.T) {
	q := NewDeadlines()
	for id := range mem.RegionID(100) {
		q.Put(id+1, int64(id))
	}
	seen := 0
	for range q.From(10) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("saw %d entries after break, want 3", seen)
	}
}

func TestDeadlinesSteadyStateDoesNotAllocate(t *testing.T) {
	q := NewDeadlines()
	for id := range mem.RegionID(1000) {
		q.Put(id+1, int64(id))
	}
	ns := int64(1000)
	allocs := testing.AllocsPerRun(2000, func() {
		id, _, _ := q.First()
		ns += 7
		q.Put(id, ns)
	})
	if allocs > 0 {
		t.Errorf("a move allocates %v times", allocs)
	}
}

// BenchmarkDeadlinesMove is the helper's usual step: the earliest region gets
// a later deadline.
func BenchmarkDeadlinesMove(b *testing.B) {
	q := NewDeadlines()
	for id := range mem.RegionID(4096) {
		q.Put(id+1, int64(id)*1000)
	}
	ns := int64(4096 * 1000)
	for b.Loop() {
		id, _, _ := q.First()
		ns += 1000
		q.Put(id, ns)
	}
}
