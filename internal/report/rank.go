package report

import (
	"cmp"
	"fmt"

	"pinwheel/schedule"
)

// Rank is the report of one process. Names are those of nasreplay's JSON where it has them.
type Rank struct {
	// World is not empty for processes that MPI_Comm_spawn has started; see settings.World.
	World   string `json:"world,omitempty"`
	Rank    int    `json:"rank"` // -1 if MPI_Init was not reached
	Size    int    `json:"size"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Library string `json:"mpi_library"`
	Policy  string `json:"policy"`
	// Profile says whether the process began with what its last run has learned: "used", "none" if there was
	// nothing, "refused" if that was of another job or damaged. It is empty without PINWHEEL_PROFILE or large messages.
	Profile string `json:"profile,omitempty"`
	// Provider is what registers memory in a Go transport; under the preload library, the transport does.
	Provider string `json:"provider,omitempty"`
	Mapping  string `json:"watch"`  // how changes of mappings were noticed; empty if the cache registered nothing
	Helper   string `json:"helper"` // where it runs, by the settings
	// Seconds is from MPI_Init to MPI_Finalize.
	Seconds float64 `json:"run_s"`

	PeakPinnedBytes    int64 `json:"peak_pinned_bytes"`
	AveragePinnedBytes int64 `json:"avg_pinned_bytes"`
	// VerbsUsed says whether the transport called libibverbs at all.
	VerbsUsed bool `json:"verbs_used"`
	// Uses is how many registrations the transport asked us for, and Plain how
	// many went past the cache: its own buffers, small or unusual ones, and Early of them
	// before changes of mappings were noticed.
	Uses  uint64 `json:"uses"`
	Plain uint64 `json:"plain_regs"`
	Early uint64 `json:"early_regs,omitempty"`
	// Passed is how many of Plain were as large as messages and ended before MPI_Finalize, so that they weren't
	// pools of the transport, and PassedBytes is how many bytes they had in all. No policy had a say in them.
	Passed       uint64 `json:"passed_regs,omitempty"`
	PassedBytes  uint64 `json:"passed_bytes,omitempty"`
	Hits         uint64 `json:"hits"`
	Waited       uint64 `json:"waited"`
	First        uint64 `json:"first_regs"`
	Late         uint64 `json:"late_regs"`
	HelperRegs   uint64 `json:"helper_regs"`
	HelperDeregs uint64 `json:"helper_deregs"`
	// Failed is how many uses got an error, and Faulted how many were registered past
	// the cache after a fault of ours.
	Failed      uint64 `json:"failed,omitempty"`
	Faulted     int64  `json:"faulted,omitempty"`
	Evicted     uint64 `json:"evicted,omitempty"`
	Invalidated uint64 `json:"invalidated,omitempty"`
	// LateWhy says why uses were late that the helper has heard of, most of LateUses.
	LateWhy schedule.LateUses `json:"late_why,omitzero"`
	// Repeated is how many uses repeated one of the same call, and were not
	// told to the helper; Lost is how many the helper was too late for.
	Repeated uint64 `json:"repeated_uses"`
	Lost     uint64 `json:"lost_uses"`
	StallNs  uint64 `json:"stall_ns"` // waiting for what was no hit
	// PathNs is the cost of a large message on its path where registration is a
	// hit: noting its buffer, taking the registration and giving it back. PathSamples
	// is how many of those were measured, one in 61. Reading the counter around
	// a part keeps it from overlapping with the rest, so this is an upper estimate.
	PathNs      float64 `json:"path_ns"`
	PathSamples uint64  `json:"path_samples"`
	HelperCPUNs int64   `json:"helper_cpu_ns"`
	// HelperWakeups is how often the helper slept, and so looked what there is to do.
	HelperWakeups int64 `json:"helper_wakeups,omitempty"`
	// HelperActionNs is how much of that registrations and deregistrations took; without a share, as one in eight says.
	HelperActionNs int64 `json:"helper_action_ns,omitempty"`
	// CPUNs is the processor time of the program's own threads, and ServerCPUNs that of the
	// threads that serve misses under the preload library. OpeningCPUNs is how much of that it took to open
	// each protection domain, mostly after the first large message: what the start puts off. RegisterNs is the time spent in
	// registrations and deregistrations; HelperRegisterNs is that of the helper's, with the
	// cache around them, and FirstUsesNs that of those which threads of the program have made
	// without the server.
	CPUNs            int64 `json:"cpu_ns"`
	ServerCPUNs      int64 `json:"server_cpu_ns,omitempty"`
	OpeningCPUNs     int64 `json:"opening_cpu_ns,omitempty"`
	RegisterNs       int64 `json:"register_ns"`
	HelperRegisterNs int64 `json:"helper_register_ns"`
	FirstUsesNs      int64 `json:"first_uses_ns"`
	// HelperFaulted says that the helper stopped at a fault of ours. Parks is how often it found
	// no idle core and was parked, ParkedNs for how long in all, and FirstParkNs when at first.
	HelperFaulted bool  `json:"helper_faulted,omitempty"`
	Parks         int64 `json:"parks"`
	ParkedNs      int64 `json:"parked_ns"`
	FirstParkNs   int64 `json:"first_park_ns,omitempty"`
	// QuotaUsedUpNs is how long the helper was parked, or shared the core of its rank, because the CPU quota
	// of the control groups left no time for another core.
	QuotaUsedUpNs int64 `json:"quota_used_up_ns,omitempty"`
	// Starts says how far from its plan each registration began.
	Starts schedule.Histogram `json:"starts,omitzero"`
	// SharedNs is how long the helper shared the core of its rank, and SharedCPUNs the processor time that it used there.
	SharedNs    int64 `json:"shared_ns,omitempty"`
	SharedCPUNs int64 `json:"shared_cpu_ns,omitempty"`
	// Demand is what was registered on demand; part of Uses, of RegisterNs and of the pinned memory. The time of
	// looks is part of ServerCPUNs.
	Demand Demand `json:"on_demand,omitzero"`
	Cost   Cost   `json:"cost,omitzero"`
	// Calls is how many MPI calls of the program were wrapped, whatever they did.
	Calls uint64 `json:"mpi_calls,omitempty"`
	// Large is how many buffers of at least ThresholdBytes the program passed to MPI.
	ThresholdBytes int64  `json:"threshold_bytes"`
	Large          uint64 `json:"large_buffers"`
	// Transport is the file that registers memory under the preload library. Kept is how many
	// registrations of those buffers it had not given back when MPI_Finalize began, and
	// TransportSettings is what the environment says about its own cache.
	Transport         string   `json:"transport,omitempty"`
	Kept              uint64   `json:"kept_regs"`
	TransportSettings []string `json:"transport_settings,omitempty"`
	Accuracy
	Sites       []Site   `json:"sites"`
	Environment []string `json:"environment"` // PINWHEEL_* as given
	History     *History `json:"history,omitempty"`
}

// LateUses is how many uses were late: they had to register again what had been registered before, or to wait for a
// registration under way. replay.Counts counts them so, too.
func (r *Rank) LateUses() uint64 { return r.Late + r.Waited }

// History is what a process measured over time, from the start of Pinwheel on.
type History struct {
	Pinned      Series  `json:"pinned_bytes"` // means
	PinnedPeaks []int64 `json:"pinned_peak_bytes"`
	Parked      Series  `json:"helper_parked"`   // share of the time
	Stalled     Series  `json:"stalled_threads"` // that waited for a registration, on average
	Late        Series  `json:"late_uses"`       // in each interval
}

// Series are values of successive intervals. Those after the last one are zero.
type Series struct {
	WidthNs int64     `json:"width_ns"`
	Values  []float64 `json:"values"`
}

// Site is one call site, as the symbols of the program name it.
type Site struct {
	Name  string `json:"name"`
	Op    string `json:"op"`
	Uses  int64  `json:"uses"`
	Bytes int64  `json:"bytes"`
	// Late is how many uses were late (Rank.LateUses), and StallNs the time that all
	// misses took.
	Late    int64 `json:"late_uses"`
	StallNs int64 `json:"stall_ns"`
	Accuracy
}

// Accuracy says how close predictions came to the needs that followed. The error of a prediction is
// its distance from the need, as a share of the interval between the region's previous need and this one.
type Accuracy struct {
	Predictions int64   `json:"predictions"`
	Err05       float64 `json:"err_0_5"` // share with less than 0.5 % error
	Err5        float64 `json:"err_5"`   // share with less than 5 % error
}

// add takes in the predictions of another rank.
func (a *Accuracy) add(b Accuracy) {
	n := a.Predictions + b.Predictions
	if n == 0 {
		return
	}
	mean := func(x, y float64) float64 { return (x*float64(a.Predictions) + y*float64(b.Predictions)) / float64(n) }
	*a = Accuracy{n, mean(a.Err05, b.Err05), mean(a.Err5, b.Err5)}
}

// TopSites is how many call sites are listed.
const TopSites = 10

// Name tells a rank from all others of its job.
func Name(world string, rank int) string {
	if world == "" {
		return fmt.Sprint(rank)
	}
	return fmt.Sprintf("%s-%d", world, rank)
}

// compare orders ranks; those that the launcher has started come first.
func compare(a, b Rank) int {
	return cmp.Or(cmp.Compare(len(a.World), len(b.World)), cmp.Compare(a.World, b.World), cmp.Compare(a.Rank, b.Rank))
}
