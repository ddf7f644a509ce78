package pinwheel

import (
	"pinwheel/helper"
	"pinwheel/regcache"
)

// Stats are counters since New, and what is pinned now. The metric names
// are in brackets.
type Stats struct {
	Policy   Policy
	Provider string
	// Cache counts registrations by who did them: First [first_regs] and Late
	// [late_regs] by the communication path, HelperRegisters [helper_regs] and
	// HelperDeregisters [helper_deregs] by the helper. PeakPinnedBytes
	// [peak_pinned_bytes] is as the kernel counts.
	Cache regcache.Stats
	// AvgPinnedBytes [avg_pinned_bytes] is the mean over the time since New.
	AvgPinnedBytes int64
	// Helper counts what the helper thread did; CPUNs is [helper_cpu_ns].
	Helper helper.ThreadStats
	// StallNs [stall_ns] is the time spent in Acquire where it was no hit.
	StallNs int64
	// LostUses is how many uses the helper did not hear of: DQ overran.
	LostUses uint64
	// Faulted is how many uses were registered past the cache after a fault.
	Faulted int64
}

// Stats returns the counters at this moment.
func (m *Manager) Stats() Stats {
	s := Stats{Policy: m.opt.Policy, Provider: m.provider.Name(), Cache: m.cache.Stats()}
	_, s.AvgPinnedBytes = m.provider.pinned.Read()
	if m.helper != nil {
		s.Helper = m.helper.Stats()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.StallNs, s.Faulted, s.LostUses = m.past.stallNs.Load(), m.past.faulted.Load(), m.past.lostUses
	for t := range m.threads {
		s.StallNs += t.stats.stallNs.Load()
		s.Faulted += t.stats.faulted.Load()
		s.LostUses += t.lost()
	}
	return s
}
