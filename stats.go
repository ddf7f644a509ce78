package pinwheel

import (
	"fmt"
	"strings"

	"pinwheel/helper"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
)

// Stats are counters since New, and the bytes that are pinned now. The names of
// the metrics are in brackets.
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
	// StallNs [stall_ns] is the time spent in calls of Acquire that were no hits.
	StallNs int64
	// LostUses is how many uses the helper did not hear of, because DQ overran.
	LostUses uint64
	// Faulted is how many uses were registered past the cache after a fault.
	Faulted int64
}

// Stats returns the counters at this moment.
func (m *Manager) Stats() Stats {
	s := Stats{Policy: m.opt.Policy, Provider: m.provider.Name(), Cache: m.cache.Stats(), Helper: m.engine.HelperStats()}
	_, s.AvgPinnedBytes = m.engine.Pinned()
	m.mu.Lock()
	defer m.mu.Unlock()
	past := &m.closedThreads
	s.StallNs, s.Faulted, s.LostUses = past.stallNs.Load(), past.faulted.Load(), past.lostUses
	for t := range m.threads {
		s.StallNs += t.stats.stallNs.Load()
		s.Faulted += t.stats.faulted.Load()
		s.LostUses += t.lost()
	}
	return s
}

// Predictions returns how well the helper's predictions matched the uses that
// followed. It is empty before Close, and without a helper.
func (m *Manager) Predictions() predictor.Accuracy {
	if !m.closed.Load() {
		return predictor.Accuracy{}
	}
	_ = m.engine.Close() // waits for a Close under way; it does not fail
	return m.engine.Accuracy()
}

// inform says in one line what New chose.
func (m *Manager) inform() {
	if m.opt.Inform == nil {
		return
	}
	o, l := &m.opt, m.provider.Limits()
	line := fmt.Sprintf("policy %s, provider %s (pinned bytes limited to %s by %s), watch %s", o.Policy, m.provider.Name(),
		limit(l.MaxPinnedBytes), l.PinnedSource, m.watchName())
	switch {
	case o.Disable:
		line += ", disabled: every use is registered on its own"
	case !m.engine.Helped():
		line += ", no helper thread"
	}
	o.Inform(line)
}

func (m *Manager) watchName() string {
	switch {
	case m.watcher != nil:
		return fmt.Sprint(m.watcher.Mechanism())
	case m.opt.Watcher != nil:
		return "by the program"
	}
	return "off: the program tells"
}

func limit(bytes int64) string {
	if bytes == mem.Unlimited {
		return "inf"
	}
	return mem.FormatBytes(uint64(bytes))
}

// report writes the report that the options ask for. If it can't, it warns: that
// is no reason to fail the program's last call.
func (m *Manager) report() {
	if m.opt.Report == "" {
		return
	}
	s := m.Stats()
	r := m.engine.Report(s.Cache, siteName)
	r.Policy, r.Provider, r.Mapping = string(s.Policy), s.Provider, m.watchName()
	if m.opt.Disable {
		r.Policy = "disabled"
	}
	r.VerbsUsed, r.ThresholdBytes = true, int64(m.opt.ThresholdBytes)
	r.Uses = r.Hits + r.Waited + r.First + r.Late + uint64(s.Faulted)
	r.Faulted, r.Lost, r.StallNs = s.Faulted, s.LostUses, uint64(s.StallNs)
	if err := r.Save(settings.Expand(m.opt.Report)); err != nil {
		m.engine.Warn("report", fmt.Sprintf("report: %v", err))
	}
}

// siteName names a call site by its return addresses or what NewSite made of a name.
func siteName(c predictor.CallSite) (site, op string) {
	var frames []string
	for _, f := range c.Frames {
		if f != 0 {
			frames = append(frames, fmt.Sprintf("%#x", f))
		}
	}
	return strings.Join(frames, " < "), fmt.Sprint(c.Op)
}
