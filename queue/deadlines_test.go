package queue

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

// model is Deadlines as a plain sorted slice.
type model []Deadline

func (m *model) remove(id mem.RegionID) bool {
	n := len(*m)
	*m = slices.DeleteFunc(*m, func(d Deadline) bool { return d.ID == id })
	return len(*m) < n
}

func (m *model) put(id mem.RegionID, ns int64) {
	m.remove(id)
	*m = append(*m, Deadline{id, ns})
	slices.SortFunc(*m, func(a, b Deadline) int {
		return cmp.Or(cmp.Compare(a.Ns, b.Ns), cmp.Compare(a.ID, b.ID))
	})
}

func (m model) index(id mem.RegionID) int {
	return slices.IndexFunc(m, func(d Deadline) bool { return d.ID == id })
}

func (m model) at(i int) (Deadline, bool) {
	if i < 0 || i >= len(m) {
		return Deadline{}, false
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
	var up, down model
	for id, ns := range q.Ascend() {
		up = append(up, Deadline{id, ns})
	}
	for id, ns := range q.Descend() {
		down = append(down, Deadline{id, ns})
	}
	slices.Reverse(down)
	if !slices.Equal(up, m) || !slices.Equal(down, m) || q.Len() != len(m) {
		t.Fatalf("queue %v, descending %v, Len %d, want %v", up, down, q.Len(), m)
	}
	first, ok := m.at(0)
	if id, ns, gotOK := q.First(); (Deadline{id, ns}) != first || gotOK != ok {
		t.Fatalf("First() = %d, %d, %v, want %v, %v", id, ns, gotOK, first, ok)
	}
	i := m.index(probe)
	if ns, ok := q.Get(probe); ok != (i >= 0) || ok && ns != m[i].Ns {
		t.Fatalf("Get(%d) = %d, %v in %v", probe, ns, ok, m)
	}
	var prev, next Deadline
	var hasPrev, hasNext bool
	if i >= 0 {
		prev, hasPrev = m.at(i - 1)
		next, hasNext = m.at(i + 1)
	}
	if d, ok := q.Before(probe); d != prev || ok != hasPrev {
		t.Fatalf("Before(%d) = %v, %v, want %v, %v", probe, d, ok, prev, hasPrev)
	}
	if d, ok := q.After(probe); d != next || ok != hasNext {
		t.Fatalf("After(%d) = %v, %v, want %v, %v", probe, d, ok, next, hasNext)
	}
}

func TestDeadlinesIterationStopsWhenAsked(t *testing.T) {
	q := NewDeadlines()
	for id := range mem.RegionID(100) {
		q.Put(id+1, int64(id))
	}
	seen := 0
	for range q.Ascend() {
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
		q.Before(id)
		q.After(id)
	})
	if allocs > 0 {
		t.Errorf("move and neighbour lookups allocate %v times", allocs)
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

func BenchmarkDeadlinesNeighbours(b *testing.B) {
	q := NewDeadlines()
	for id := range mem.RegionID(4096) {
		q.Put(id+1, int64(id)*1000)
	}
	id := mem.RegionID(1)
	for b.Loop() {
		q.Before(id)
		q.After(id)
		id = id%4096 + 1
	}
}
