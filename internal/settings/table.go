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
	HelperCPU       int64 // Auto, or a processor number
	Window          int64
	BudgetBytes     int64 // Auto, mem.Unlimited, or bytes
	NodeBudgetBytes int64 // Auto, mem.Unlimited, or bytes
	Watch           string
	Provider        string
	RDMADevice      string // "" for the first with an active port
	Record          string // file pattern, "" for none
	Stats           string // "n", "y", or a file pattern
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
		"Pass everything through to plain registration, as if Pinwheel were not there."},
	{"THRESHOLD", "16K", bytes(func(s *Settings) *int64 { return &s.ThresholdBytes }, "inf"),
		"Transfers below this size are left alone: MPI programs register them as without Pinwheel; in Go transports they are cached and stay registered."},
	{"POLICY", "pinwheel", choice(func(s *Settings) *string { return &s.Policy },
		"pinwheel", "paper", "leave-pinned", "on-demand", "lru"),
		"When memory is registered and released. pinwheel: predict the next need of a region at any site; paper: the helper thread of" +
			" CF'11; leave-pinned: register at first use, release for room only; on-demand: register and release around every transfer;" +
			" lru: leave-pinned within the budget."},
	{"IDLE_POLICY", "auto", choice(func(s *Settings) *string { return &s.IdlePolicy },
		"auto", "conservative", "aggressive", "off"),
		"Which processes of a node run a helper thread. conservative: at most one helper on each idle core, for the processes with the most" +
			" registered memory; aggressive: every process, sharing idle cores; auto: conservative; off: none."},
	{"HELPER_CPU", "auto", number(func(s *Settings) *int64 { return &s.HelperCPU }, 0, 1<<16, "auto"),
		"Processor of the helper thread. auto: an idle one that shares a cache with the communication thread."},
	{"WINDOW", "2", number(func(s *Settings) *int64 { return &s.Window }, 0, 8),
		"Length of the context window: how many communications make up a call site's signature."},
	{"BUDGET", "auto", bytes(func(s *Settings) *int64 { return &s.BudgetBytes }, "auto", "inf"),
		"Limit of the memory that this process pins. auto: what the system permits (ulimit -l)."},
	{"NODE_BUDGET", "inf", bytes(func(s *Settings) *int64 { return &s.NodeBudgetBytes }, "auto", "inf"),
		"Limit of the memory that the ranks of a job pin on one node together: each gets an equal share. auto: no limit but those of the processes."},
	{"WATCH", "auto", choice(func(s *Settings) *string { return &s.Watch }, "auto", "bpf", "uffd", "pfn", "none"),
		"How changes of memory mappings are noticed. none: registrations are not cached across them."},
	{"PROVIDER", "auto", choice(func(s *Settings) *string { return &s.Provider }, "auto", "rdma", "uring", "mlock", "sim"),
		"What registers memory. auto: rdma where there is a device, else uring, else mlock."},
	{"RDMA_DEVICE", "", text(func(s *Settings) *string { return &s.RDMADevice }, "NAME|NAME:PORT"),
		"RDMA device. Without it, the first with an active port."},
	{"RECORD", "", text(func(s *Settings) *string { return &s.Record }, "FILE"),
		"Record a trace of an MPI program into this file. %h host, %p process, %r rank, %j job."},
	{"STATS", "n", text(func(s *Settings) *string { return &s.Stats }, "y|n|FILE"),
		"Print a report at the end: y to standard error, or into this file (%h host, %p process, %r rank, %j job)."},
	{"LOG", "warn", choice(func(s *Settings) *string { return &s.Log }, "off", "warn", "info", "debug"),
		"What is written to standard error. info: also what was chosen; debug: also where a fault of ours happened."},
}
