package node

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
)

// pair joins two members of a job with a budget, of which one counts its warnings.
func pair(t *testing.T) (m, other *Member, warnings *atomic.Int64) {
	t.Helper()
	job := jobOf(t)
	warnings = new(atomic.Int64)
	warn := func(error) { warnings.Inc() }
	o := sharing(job, 0, 2)
	o.Warn = warn
	m = join(t, o)
	o = sharing(job, 1, 2)
	o.Warn = func(error) {}
	return m, join(t, o), warnings
}

// use does everything that a member can do.
func use(t testing.TB, m *Member) {
	m.Publish(State{PinnedBytes: 1})
	for _, s := range m.seg.members() {
		if s.PID < 0 || s.ShareBytes < 0 || s.Helper.CPU < -1 || s.PinnedBytes < 0 {
			t.Errorf("published %+v", s)
		}
	}
	_ = m.UpdateClaims(func(all []Claim) []Claim { return append(all, Claim{Owner: m.self, CPU: 2}) })
	if got := m.Grow(m.opt.BudgetBytes); got < 0 || got > m.opt.BudgetBytes {
		t.Errorf("a share of %d", got)
	}
	if ceiling, keep := m.Settle(1); ceiling < 0 || keep < 0 || keep > ceiling {
		t.Errorf("a ceiling of %d, of which it keeps %d", ceiling, keep)
	}
	if got := m.Shrink(m.opt.Part() / 2); got < 0 || got > m.opt.BudgetBytes {
		t.Errorf("a share of %d", got)
	}
}

func TestNonsenseIsNotBelieved(t *testing.T) {
	for name, corrupt := range map[string]func(m *Member, other memory){
		"magic":            func(m *Member, other memory) { m.seg.mem.store(headerMagic, 1) },
		"version":          func(m *Member, other memory) { m.seg.mem.store(headerLayout, layout<<32|slots-1) },
		"no slots":         func(m *Member, other memory) { m.seg.mem.store(headerHigh, 0) },
		"number of slots":  func(m *Member, other memory) { m.seg.mem.store(headerHigh, math.MaxUint64) },
		"another has seen": func(m *Member, other memory) { m.seg.mem.store(headerBroken, 1) },
		"negative budget":  func(m *Member, other memory) { m.seg.mem.store(headerBudget, 1<<63) },
		"small budget":     func(m *Member, other memory) { m.seg.mem.store(headerBudget, mib) },
		"a large budget":   func(m *Member, other memory) { m.seg.mem.store(headerBudget, 1<<40) },
		"other ranks":      func(m *Member, other memory) { m.seg.mem.store(headerRanks, 1) },
		"no ranks":         func(m *Member, other memory) { m.seg.mem.store(headerRanks, 0) },
		"nobody joined":    func(m *Member, other memory) { m.seg.mem.store(headerJoined, 0) },
		"own share":        func(m *Member, other memory) { m.slot.store(slotGranted, 1) },
		"own process":      func(m *Member, other memory) { m.slot.store(slotPID, 1) },
		"own slot":         func(m *Member, other memory) { m.slot.store(slotState, slotFree) },
		"a large share":    func(m *Member, other memory) { other.store(slotGranted, 33*mib) },
		"a huge share":     func(m *Member, other memory) { other.store(slotGranted, math.MaxUint64) },
		"state of a slot":  func(m *Member, other memory) { other.store(slotState, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			m, other, warnings := pair(t)
			corrupt(m, other.slot)
			for range 3 {
				use(t, m)
			}
			if err := m.UpdateClaims(nil); !errors.Is(err, ErrCorrupt) || warnings.Load() != 1 {
				t.Errorf("%v, %d warnings, want one", err, warnings.Load())
			}
			if got := m.Grow(64 * mib); got != 32*mib {
				t.Errorf("a share of %d, want the equal part", got)
			}
			if _, err := Join(sharing(m.opt.Job, 0, 2)); err == nil {
				t.Error("somebody joins")
			}
		})
	}
}

// What can't be checked does no harm.
func TestNonsenseThatIsPossibleDoesNoHarm(t *testing.T) {
	m, other, warnings := pair(t)
	for w := slotCeiling; w < slotWords; w++ {
		for _, v := range []uint64{math.MaxUint64, 1 << 63, math.MaxInt64, 1, 0x5555555555555555} {
			other.slot.store(w, v)
			use(t, m)
		}
	}
	for _, w := range []int{headerMovedNs} {
		m.seg.mem.store(w, math.MaxUint64)
		use(t, m)
	}
	if n := warnings.Load(); n != 0 {
		t.Errorf("%d warnings", n)
	}
}

// FuzzSegment overwrites words of a segment with what the fuzzer likes.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{headerHigh, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte{0, 2, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte{slotGranted, 2, 0, 0, 0, 4, 0, 0, 0, 0, slotCeiling, 2, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, changes []byte) {
		testwait.Bound(t)
		m, other, warnings := pair(t)
		for ; len(changes) >= 10; changes = changes[10:] {
			word := int(binary.LittleEndian.Uint16(changes)) % words
			m.seg.mem.store(word, binary.LittleEndian.Uint64(changes[2:]))
			use(t, m)
			if v, err := Open(m.opt.Job); err == nil {
				v.Members()
				v.Claims()
				if budget, granted := v.BudgetBytes(); budget < 0 || granted < 0 || granted > budget {
					t.Errorf("granted %d of %d", granted, budget)
				}
				v.Close()
			}
		}
		use(t, other)
		if warnings.Load() > 1 {
			t.Errorf("%d warnings", warnings.Load())
		}
	})
}
