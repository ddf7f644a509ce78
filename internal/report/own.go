package report

import (
	"fmt"
	"strings"
)

// Own is the processor time that Pinwheel takes for itself beside registrations, in nanoseconds, as it counts it.
type Own struct {
	Helper  float64 // looks what there is to do, and decides
	Server  float64 // registers what the helper has not, beside those registrations, and beside Opening
	Path    float64 // of each use
	Opening float64 // once: the watch of mappings, the helper
}

// Own returns what the process takes.
func (r *Rank) Own() Own {
	served := r.RegisterNs - r.HelperRegisterNs - r.FirstUsesNs - r.Demand.RegisterNs
	return Own{
		Helper:  float64(max(r.HelperCPUNs-r.HelperRegisterNs, 0)),
		Server:  float64(max(r.ServerCPUNs-r.OpeningCPUNs-served, 0)),
		Path:    r.PathNs * float64(r.Uses),
		Opening: float64(r.OpeningCPUNs),
	}
}

// Running is what Pinwheel takes once it is at work.
func (o Own) Running() float64 { return o.Helper + o.Server + o.Path }

// goalShare is the most of the program's processor time that Pinwheel is to take for itself.
const goalShare = 0.002

// OwnLine says what Pinwheel takes for itself, "" if that is no more than it should be.
func (r *Rank) OwnLine() string {
	o, cpu := r.Own(), float64(r.CPUNs)
	if r.Uses == 0 || cpu <= 0 || o.Running() <= goalShare*cpu {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		ns   float64
		says string
	}{
		{o.Helper, fmt.Sprintf("by %s of the helper", count(uint64(r.HelperWakeups), "look"))},
		{o.Server, "by the server"},
		{o.Path, fmt.Sprintf("on the path of %s", count(r.Uses, "use"))},
	} {
		if p.ns > 0 {
			parts = append(parts, fmt.Sprintf("%.2f %% %s", 100*p.ns/cpu, p.says))
		}
	}
	return fmt.Sprintf("Beside registrations, Pinwheel itself took %.1f ms, %.2f %% of the program's processor time"+
		" (%.1f %% is the goal): %s; and once, to begin, %.2f %%",
		o.Running()/1e6, 100*o.Running()/cpu, 100*goalShare, strings.Join(parts, ", "), 100*o.Opening/cpu)
}
