package pinwheel

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"pinwheel/helper"
	"pinwheel/internal/engine"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/predictor"
	"pinwheel/queue"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
)

// Policy says when memory is registered and released.
type Policy string

const (
	Pinwheel    Policy = "pinwheel"     // predict the next need at any site; the default
	Paper       Policy = "paper"        // the helper thread of Li et al., CF'11
	PaperStrict Policy = "paper-strict" // the same, with its deadlines as printed: predictor.Paper
	LeavePinned Policy = "leave-pinned" // register at first use, release for room only
	LRU         Policy = "lru"          // LeavePinned within Options.BudgetBytes
	OnDemand    Policy = "on-demand"    // register and release around every use
)

// IdleIgnore is a value of Options.IdlePolicy beside those of the setting: the
// helper runs wherever the kernel puts it, idle core or not.
const IdleIgnore = engine.IdlePolicyIgnore

// Options configure a Manager. The zero value is useful.
type Options struct {
	// Disable makes every use a plain registration of its own.
	Disable bool
	// Policy is Pinwheel if empty.
	Policy Policy
	// ThresholdBytes is the smallest use that the helper hears of; registrations of
	// smaller ones stay. 0 stands for 16 KiB.
	ThresholdBytes int64
	// BudgetBytes bounds the pinned memory. 0 stands for the provider's
	// limit, mem.Unlimited for none.
	BudgetBytes int64
	// NodeBudgetBytes bounds what all processes of the job on this node pin together. They must ask for
	// the same. The job is what the launcher or the batch system says, or else the session (setsid(2)). 0
	// and mem.Unlimited stand for no bound.
	NodeBudgetBytes int64
	// Window is the length of the predictor's context window, at most
	// predictor.MaxWindow; 0 stands for 2 and NoWindow for none.
	Window int

	// IdlePolicy is auto (if empty), conservative, aggressive, off, or IdleIgnore.
	IdlePolicy string
	// Cost is the most of a thread's time, from 0 to 1, that policy pinwheel may cost: uses that wait because their memory
	// was deregistered and not registered again in time. Without an idle core and with IdlePolicy auto, the helper runs
	// on the core of the thread, and all that it does there counts, too. With IdlePolicy conservative there is no helper
	// then. 0 is .005.
	Cost float64
	// HelperShare is read as Cost if that is 0.
	//
	// Deprecated: set Cost.
	HelperShare float64
	// HelperCPUs are the processors that the helper may use. If there is only
	// one, the helper runs there, whatever IdlePolicy says, unless that is off.
	// Empty stands for the processors that this process may use.
	HelperCPUs []int
	// QueueEntries is how many uses each Thread's ring to the helper holds, at
	// most queue.MaxEntries; 0 stands for 1024.
	QueueEntries int

	// ProfileDir is a directory that keeps what policy Pinwheel has learned when the Manager is closed, for the next
	// run of the same job: the same build of the program, arguments and ranks. "": nothing is kept. Sites must be
	// equal in both runs: those of NewSite and of Site.Callers are.
	ProfileDir string
	// ProfileLimitBytes is how large that directory may become; the jobs that were run least recently go. 0 stands for
	// 256 MiB, mem.Unlimited for no limit.
	ProfileLimitBytes int64
	// ProfileForce has the Manager begin with the latest profile of the program if there is none of this job.
	ProfileForce bool
	// Trained are what policy Pinwheel knows at the beginning if there is no ProfileDir. nil: nothing.
	Trained *predictor.Trained

	// Provider registers memory. nil: ProviderName is opened, and closed with
	// the Manager.
	Provider verbs.Provider
	// ProviderName is auto (if empty), rdma, uring, mlock or sim.
	ProviderName string
	// RDMADevice is the device of the provider rdma: NAME or NAME:PORT.
	RDMADevice string
	// Costs are those of the provider, from a calibration. If they are zero and
	// there is a helper, New estimates them: it registers 256 KiB of its own a few
	// times, in about a millisecond. The helper corrects them by its own measurements.
	Costs verbs.Costs
	// Watcher reports changed mappings. nil: Watch names one.
	Watcher regcache.Watcher
	// Watch is a mechanism of vmwatch: auto, bpf, uffd, pfn, or none, with
	// which nothing is cached. Empty: the caller reports changed mappings through
	// Manager.Invalidate.
	Watch string
	// WatchService is the socket of the node's watch service, which loads BPF programs for processes that may not; off
	// asks none. Empty: where it listens by default.
	WatchService string

	// Report, if not empty, makes Close write a report: "y" to standard error,
	// else into this file, as JSON if it is named *.json (patterns as in PINWHEEL_STATS).
	Report string
	// Inform gets one line that says what New chose. nil: nobody does.
	Inform func(message string)
	// Warn gets a line whenever Pinwheel does less than it should, at most once
	// for each kind of fault. nil: standard error.
	Warn func(message string)
	// Debug gets the stack of a fault of ours, in many lines. nil: nobody does.
	Debug func(message string)

	// Tests wrap the predictor and the registrar of the helper. nil: as they are.
	wrapPredictor func(predictor.Predictor) predictor.Predictor
	wrapRegistrar func(helper.Registrar) helper.Registrar
}

// NoWindow is the value of Options.Window for a context of the current
// communication alone.
const NoWindow = -1

// FromEnvironment returns the options that the PINWHEEL_* variables ask for. It
// reports each value that it can't understand in one line on standard error, and
// ignores it.
func FromEnvironment() Options {
	s, warnings := settings.FromEnvironment()
	o := fromSettings(s)
	switch s.Log {
	case "off":
		o.Warn = func(string) {}
		return o
	case "info":
		o.Inform = logStderr
	case "debug":
		o.Inform, o.Debug = logStderr, logStderr
	}
	for _, w := range warnings {
		logStderr(w)
	}
	if s.Record != "" {
		logStderr("PINWHEEL_RECORD: MPI programs are recorded, by pinwheel record; a Manager of a Go program records nothing")
	}
	return o
}

func fromSettings(s settings.Settings) Options {
	o := Options{
		Disable:        s.Disable,
		Policy:         Policy(s.Policy),
		ThresholdBytes: max(s.ThresholdBytes, 1), // 0 means all, as 1 does
		Window:         int(s.Window),
		IdlePolicy:     s.IdlePolicy,
		Watch:          s.Watch,
		WatchService:   s.Watchd,
		ProviderName:   s.Provider,
		RDMADevice:     s.RDMADevice,
	}
	if s.Stats != "n" {
		o.Report = s.Stats
	}
	if s.Window == 0 {
		o.Window = NoWindow
	}
	if b := s.BudgetBytes; b != settings.Auto {
		o.BudgetBytes = max(b, 1) // 0 means nothing, not auto
	}
	if b := s.NodeBudgetBytes; b != settings.Auto && b != mem.Unlimited {
		o.NodeBudgetBytes = max(b, 1)
	}
	o.Cost = cmp.Or(s.Cost, engine.NoCost)
	if s.Cost == 0 && s.IdlePolicy == "auto" {
		o.IdlePolicy = "conservative"
	}
	if dir, err := s.ProfileDir(); err != nil {
		logStderr(fmt.Sprintf("PINWHEEL_PROFILE: %v", err))
	} else if dir != "" {
		o.ProfileDir, o.ProfileLimitBytes, o.ProfileForce = dir, max(s.ProfileBytes, 1), s.ProfileForce
	}
	if s.HelperCPU != settings.Auto {
		o.HelperCPUs = []int{int(s.HelperCPU)}
	}
	return o
}

// Bounds of what makes sense.
const (
	maxCPUs   = 1 << 16 // as in the setting
	maxCostNs = 1e12    // 1000 s, for one page
)

// EnsureDefaults fills in defaults for zero fields. It fails for options that make no sense.
func (o *Options) EnsureDefaults() error {
	o.Policy = cmp.Or(o.Policy, Pinwheel)
	o.ThresholdBytes = cmp.Or(o.ThresholdBytes, 16<<10) // 16 KiB
	o.Window = cmp.Or(o.Window, 2)
	o.IdlePolicy = cmp.Or(o.IdlePolicy, "auto")
	o.WatchService = cmp.Or(o.WatchService, vmwatch.ServicePath)
	o.Cost = cmp.Or(o.Cost, o.HelperShare, schedule.DefaultCost)
	o.QueueEntries = cmp.Or(o.QueueEntries, 1024)
	o.ProviderName = cmp.Or(o.ProviderName, "auto")
	if o.Warn == nil {
		o.Warn = logStderr
	}
	if !slices.Contains([]Policy{Pinwheel, Paper, LeavePinned, LRU, OnDemand}, o.Policy) {
		return fmt.Errorf("pinwheel: unknown policy %q", o.Policy)
	}
	if o.ThresholdBytes < 0 || o.BudgetBytes < 0 || o.NodeBudgetBytes < 0 || o.QueueEntries < 0 || o.Window < NoWindow {
		return fmt.Errorf("pinwheel: negative limit: threshold %d, budget %d, of the node %d, queue entries %d, window %d",
			o.ThresholdBytes, o.BudgetBytes, o.NodeBudgetBytes, o.QueueEntries, o.Window)
	}
	if !(o.Cost >= 0 && o.Cost <= 1) { // NaN too
		return fmt.Errorf("pinwheel: cost %v: it goes from 0 to 1", o.Cost)
	}
	if o.Window > predictor.MaxWindow {
		return fmt.Errorf("pinwheel: window %d: at most %d communications are remembered", o.Window, predictor.MaxWindow)
	}
	if o.QueueEntries > queue.MaxEntries {
		return fmt.Errorf("pinwheel: %d queue entries: at most %d are of use", o.QueueEntries, queue.MaxEntries)
	}
	for _, cpu := range o.HelperCPUs {
		if cpu < 0 || cpu >= maxCPUs {
			return fmt.Errorf("pinwheel: helper on processor %d: numbers go from 0 to %d; an empty list stands for any",
				cpu, maxCPUs-1)
		}
	}
	for _, c := range []verbs.Cost{o.Costs.Register, o.Costs.Deregister} {
		if !(c.PerPageNs >= 0 && c.FixedNs >= 0 && c.PerPageNs+c.FixedNs <= maxCostNs) { // NaN too
			return fmt.Errorf("pinwheel: costs of %v ns a page and %v ns fixed make no sense", c.PerPageNs, c.FixedNs)
		}
	}
	if o.IdlePolicy != IdleIgnore {
		if _, err := placement.ParseIdlePolicy(o.IdlePolicy); err != nil {
			return err
		}
	}
	return nil
}

func logStderr(message string) { fmt.Fprintln(os.Stderr, "pinwheel: "+message) }
