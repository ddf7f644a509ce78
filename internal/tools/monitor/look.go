package monitor

import (
	"cmp"
	"slices"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/console"
	"pinwheel/internal/report"
)

// Look is what is known of the jobs of this node at one moment.
type Look struct {
	Time time.Time `json:"time"`
	Host string    `json:"host"`
	Jobs []Job     `json:"jobs"` // sorted by ID
	// Unreadable are the jobs whose shared memory is there and makes no sense.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
	// VMMC are the processes that have a name at the broker of this node (pinwheel node).
	VMMC []broker.Process `json:"vmmc,omitempty"`
	// Files are the servers of files of this user.
	Files []files.ServerInfo `json:"files,omitempty"`
}

// Job is what the processes of one job share on this node.
type Job struct {
	ID string `json:"job"`
	// BudgetBytes is PINWHEEL_NODE_BUDGET of the job; nil if there is none.
	BudgetBytes *int64 `json:"node_budget_bytes"`
	PinnedBytes int64  `json:"pinned_bytes"` // of all ranks
	Ranks       []Rank `json:"ranks"`        // sorted by rank, then by PID
}

// Unreadable is a job that can't be shown, and why.
type Unreadable struct {
	ID    string `json:"job"`
	Error string `json:"error"`
}

// Rank is what one process has published last. Counters count from its start.
type Rank struct {
	Rank    int    `json:"rank"` // -1: none
	PID     int    `json:"pid"`
	Program string `json:"program"`
	startNs int64  // as the rank says, after boot: exact, unlike StartSeconds
	// Manager tells Managers of one process apart, each of which has caches and a helper of its own; from 1.
	Manager int `json:"manager"`
	// StartSeconds is when the process started, in Unix time. RunSeconds is how long it had
	// run when it published this, and AgeSeconds how long ago that was.
	StartSeconds float64 `json:"start_time_s"`
	RunSeconds   float64 `json:"run_s"`
	AgeSeconds   float64 `json:"age_s"`

	PinnedBytes     int64 `json:"pinned_bytes"`
	PeakPinnedBytes int64 `json:"peak_pinned_bytes"`
	// ShareBytes is the rank's share of the node's budget; nil if there is none.
	ShareBytes *int64 `json:"share_bytes"`

	Hits         int64 `json:"hits"`
	FirstRegs    int64 `json:"first_regs"`
	LateUses     int64 `json:"late_uses"`
	HelperRegs   int64 `json:"helper_regs"`
	HelperDeregs int64 `json:"helper_deregs"`
	StallNs      int64 `json:"stall_ns"` // communication waited for what was no hit

	Cost   report.Cost `json:"cost"`
	Helper Helper      `json:"helper"`

	report.Accuracy
	// These are the counts behind Accuracy: predictions with less than 0.5 % error, and with less than 5 %.
	Within05 int64 `json:"predictions_within_0_5"`
	Within5  int64 `json:"predictions_within_5"`
}

// Helper is the helper thread of a rank.
type Helper struct {
	Running bool `json:"running"` // there is one, which may be parked
	Parked  bool `json:"parked"`
	// CPU is the processor that it was put on: one of its own, or, if Shared, one that a rank uses as well.
	// -1: the kernel puts it anywhere.
	CPU    int  `json:"processor"`
	Shared bool `json:"shared"`
	// ShareLimit is the largest share of its rank's time that Pinwheel may cost without an idle processor. nil: there is
	// one.
	ShareLimit *float64 `json:"share_limit"`
	CPUNs      int64    `json:"helper_cpu_ns"`
	RegisterNs int64    `json:"helper_register_ns"` // of it in registrations and deregistrations
	Wakeups    int64    `json:"wakeups"`
}

// Empty reports whether there is nothing to see.
func (l *Look) Empty() bool { return len(l.Jobs)+len(l.Unreadable)+len(l.VMMC)+len(l.Files) == 0 }

// Ranks returns how many ranks all jobs have, and their pinned bytes.
func (l *Look) Ranks() (n int, pinnedBytes int64) {
	for i := range l.Jobs {
		n += len(l.Jobs[i].Ranks)
		pinnedBytes += l.Jobs[i].PinnedBytes
	}
	return n, pinnedBytes
}

// tidy sorts jobs and ranks, computes sums and shares, and takes from texts what a terminal would obey.
func (l *Look) tidy() {
	l.Host = console.Printable(l.Host)
	slices.SortFunc(l.Jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	for i := range l.Jobs {
		j := &l.Jobs[i]
		j.ID, j.PinnedBytes = console.Printable(j.ID), 0
		for k := range j.Ranks {
			r := &j.Ranks[k]
			r.Program = console.Printable(r.Program)
			j.PinnedBytes += r.PinnedBytes
			n := float64(max(r.Predictions, 1))
			r.Err05, r.Err5 = float64(r.Within05)/n, float64(r.Within5)/n
		}
		slices.SortFunc(j.Ranks, func(a, b Rank) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Manager, b.Manager))
		})
	}
	for i := range l.Unreadable {
		l.Unreadable[i].ID = console.Printable(l.Unreadable[i].ID)
	}
}
