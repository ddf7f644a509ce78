package settings

// Prefix begins the name of every variable.
const Prefix = "PINWHEEL_"

// Auto is the value of a number that the program chooses itself.
const Auto = -1

// Settings are the values of all variables.
type Settings struct {
	Disable         bool
	ThresholdBytes  int64
	Policy          string
	IdlePolicy      string
	HelperCPU       int64   // Auto, or a processor number
	Cost            float64 // of a rank's time, from 0 to 1
	Window          int64
	BudgetBytes     int64 // Auto, mem.Unlimited, or bytes
	NodeBudgetBytes int64 // Auto, mem.Unlimited, or bytes
	Watch           string
	Watchd          string // path of a socket, or off
	WatchWait       bool
	Provider        string
	RDMADevice      string // "" for the first with an active port
	Record          string // file pattern, "" for none
	Stats           string // "n", "y", or a file pattern
	Profile         string // "n", "y", or a directory; see ProfileDir
	ProfileForce    bool
	ProfileBytes    int64
	Log             string
}

// variable is one row of the table.
type variable struct {
	name  string // without Prefix
	value string // default, as it would be written
	kind  kind
	doc   string // one or more sentences
}

// table lists every variable, in the order of the listing.
var table = []variable{
	{"DISABLE", "n", flag(func(s *Settings) *bool { return &s.Disable }),
		"Switch Pinwheel off. Every buffer is registered as it would be without Pinwheel."},
	{"THRESHOLD", "16K", bytes(func(s *Settings) *int64 { return &s.ThresholdBytes }, "inf"),
		"Leave transfers below this size alone. The transport of an MPI program registers them as it would without Pinwheel." +
			" A Go transport keeps them cached and registered."},
	{"POLICY", "pinwheel", choice(func(s *Settings) *string { return &s.Policy },
		"pinwheel", "paper", "paper-strict", "leave-pinned", "on-demand", "lru"),
		"When to register and release memory. pinwheel: predict the next use of each region at every call site." +
			" paper: the helper thread of Li et al., CF 2011. paper-strict: the same, but a deadline that passed without its use keeps the" +
			" region registered until its call site comes again. leave-pinned: register at the first use, release only to make room." +
			" on-demand: register and release around every transfer. lru: leave-pinned, but stay within the budget."},
	{"IDLE_POLICY", "auto", choice(func(s *Settings) *string { return &s.IdlePolicy },
		"auto", "conservative", "aggressive", "off"),
		"Where helper threads run. auto: on an idle core if there is one, else none: memory is registered on demand, within PINWHEEL_COST." +
			" conservative: one helper for each idle core, for the processes that have the most registered memory." +
			" aggressive: every process, and helpers share the idle cores. off: none."},
	{"HELPER_CPU", "auto", number(func(s *Settings) *int64 { return &s.HelperCPU }, 0, 1<<16, "auto"),
		"Processor on which the helper thread runs. auto: an idle processor that shares a cache with the communication thread."},
	{"COST", ".5%", share(func(s *Settings) *float64 { return &s.Cost }),
		"Most of a rank's time that Pinwheel may cost under policy pinwheel, compared with a cache that keeps everything: .5% or 0.005." +
			" With an idle core for the helper, this bounds the time of uses whose memory was not registered in time. Without one, if" +
			" PINWHEEL_IDLE_POLICY is auto, memory is registered for a use and deregistered after it; under a transport that links" +
			" libpinwheel-api.so the helper runs on the core of its rank, and all that it does there counts. Buffers that would exceed" +
			" the share stay registered. 100%: no limit."},
	{"WINDOW", "2", number(func(s *Settings) *int64 { return &s.Window }, 0, 8),
		"Length of the context window: how many of the last communications belong to a call site's signature."},
	{"BUDGET", "auto", bytes(func(s *Settings) *int64 { return &s.BudgetBytes }, "auto", "inf"),
		"Most memory that this process may pin. auto: as much as the system permits (ulimit -l)."},
	{"NODE_BUDGET", "inf", bytes(func(s *Settings) *int64 { return &s.NodeBudgetBytes }, "auto", "inf"),
		"Most memory that all ranks of a job may pin on one node. Each rank begins with an equal share. What is free goes to the rank that" +
			" needs it, and shares move to where misses cost most. A rank that can't reach the others, as from another container, keeps to" +
			" its equal share. What the transport registers itself counts, too. Where there is no room for that, an MPI job goes over the budget, and one line" +
			" says so; a transport that links libpinwheel-api.so gets ENOMEM. auto: only the limits of the processes hold."},
	{"WATCH", "auto", choice(func(s *Settings) *string { return &s.Watch }, "auto", "bpf", "uffd", "pfn", "none"),
		"How Pinwheel notices that a memory mapping has changed. bpf: BPF programs in the kernel. uffd: userfaultfd. pfn: page frame" +
			" numbers. auto: the best that passes a self-test. none: nothing is cached, because a cached registration could be stale; pinwheel run then leaves the transport's own cache on, as it does" +
			" in each rank whose kernel offers nothing."},
	{"WATCHD", "/run/pinwheel/watch.sock", text(func(s *Settings) *string { return &s.Watchd }, "PATH|off"),
		"Socket of the node's watch service (pinwheel watchd), which loads BPF programs for processes that may not. off: it is not asked."},
	{"WATCH_WAIT", "n", flag(func(s *Settings) *bool { return &s.WatchWait }),
		"Whether the first large message of an MPI program waits until changes of mappings are noticed. n: it does not." +
			" Until then, for some 10 to 300 ms, memory is registered for each use. y: it does, and every run does the same, as tests want. With a" +
			" budget it waits in any case."},
	{"PROVIDER", "auto", choice(func(s *Settings) *string { return &s.Provider }, "auto", "rdma", "uring", "mlock", "sim"),
		"What registers memory in a Go transport. rdma: an RDMA device. uring: io_uring registered buffers. mlock: mlock(2). sim: a" +
			" simulation. auto: rdma if there is a device, else uring, else mlock."},
	{"RDMA_DEVICE", "", text(func(s *Settings) *string { return &s.RDMADevice }, "NAME|NAME:PORT"),
		"RDMA device, and its port. Without it, Pinwheel takes the first device that has an active port."},
	{"RECORD", "", text(func(s *Settings) *string { return &s.Record }, "FILE"),
		"Record a trace of an MPI program into this file. %h stands for the host, %p for the process, %r for the rank, %j for the job." +
			" When buffers end is recorded where PINWHEEL_WATCH permits BPF and the kernel does."},
	{"STATS", "n", text(func(s *Settings) *string { return &s.Stats }, "y|n|FILE"),
		"Write a report when the process ends. y: to standard error. FILE: into this file; %h, %p, %r and %j as in PINWHEEL_RECORD."},
	{"PROFILE", "n", text(func(s *Settings) *string { return &s.Profile }, "y|n|DIR"),
		"Keep what policy pinwheel has learned when the process ends, and begin with it when the same job runs again: the same build of the" +
			" program, the same arguments, the same number of ranks. DIR: in this directory. y: in XDG_STATE_HOME/pinwheel, or" +
			" ~/.local/state/pinwheel."},
	{"PROFILE_FORCE", "n", flag(func(s *Settings) *bool { return &s.ProfileForce }),
		"Begin with the latest profile of the program if there is none of this job: of another build, other arguments, another number of ranks."},
	{"PROFILE_LIMIT", "256M", bytes(func(s *Settings) *int64 { return &s.ProfileBytes }, "inf"),
		"How large the directory of profiles may become. The jobs that were run least recently go."},
	{"LOG", "warn", choice(func(s *Settings) *string { return &s.Log }, "off", "warn", "info", "debug"),
		"How much Pinwheel writes to standard error. info: also its choices at the start. debug: also the stack of an internal fault."},
}
