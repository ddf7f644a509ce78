package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"pinwheel/mem"
)

// Rank is what one rank reports. Names are those of nasreplay's JSON where it has them.
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
	Mapping string `json:"watch"` // how changes of mappings were noticed; empty if nothing was registered
	Helper  string `json:"helper"`
	// Seconds is from MPI_Init to MPI_Finalize.
	Seconds float64 `json:"run_s"`

	PeakPinnedBytes    int64 `json:"peak_pinned_bytes"`
	AveragePinnedBytes int64 `json:"avg_pinned_bytes"`
	// VerbsUsed says whether the transport called libibverbs at all.
	VerbsUsed bool `json:"verbs_used"`
	// Uses is how many registrations the transport asked us for, and Plain how
	// many went past the cache: its own buffers, small or unusual ones.
	Uses         uint64 `json:"uses"`
	Plain        uint64 `json:"plain_regs"`
	Hits         uint64 `json:"hits"`
	Waited       uint64 `json:"waited"`
	First        uint64 `json:"first_regs"`
	Late         uint64 `json:"late_regs"`
	HelperRegs   uint64 `json:"helper_regs"`
	HelperDeregs uint64 `json:"helper_deregs"`
	// Repeated is how many uses repeated one of the same call, and were not
	// told to the helper; Lost is how many the helper was too late for.
	Repeated uint64 `json:"repeated_uses"`
	Lost     uint64 `json:"lost_uses"`
	StallNs  uint64 `json:"stall_ns"` // waiting for what was no hit
	// PathNs is what a large message costs on its path where registration is a
	// hit: noting its buffer, taking the registration and giving it back. PathSamples
	// is how many of those were measured, one in 61. Reading the counter around
	// a part keeps it from overlapping with the rest, so this is an upper estimate.
	PathNs      float64  `json:"path_ns"`
	PathSamples uint64   `json:"path_samples"`
	HelperCPUNs int64    `json:"helper_cpu_ns"`
	Predictions int64    `json:"predictions"`
	Err05       float64  `json:"err_0_5"` // share with less than 0.5 % error
	Err5        float64  `json:"err_5"`   // share with less than 5 % error
	Sites       []Site   `json:"sites"`
	Environment []string `json:"environment"` // PINWHEEL_* as given
}

// Site is one call site, as the symbols of the program name it.
type Site struct {
	Name  string `json:"name"`
	Op    string `json:"op"`
	Uses  int64  `json:"uses"`
	Bytes int64  `json:"bytes"`
}

// TopSites is how many call sites are listed.
const TopSites = 10

// Write prints the report of one or more ranks of a run.
func Write(w io.Writer, ranks []Rank) error {
	var j Job
	for _, r := range ranks {
		j.Add(r)
	}
	return j.Write(w)
}

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

// Job gathers the reports of the ranks of a run. Of each rank it keeps the
// row of the table alone.
type Job struct {
	first Rank   // the lowest, for what all have in common
	rows  []Rank // without what is in first and sites
	sites map[siteKey]Site
}

type siteKey struct{ name, op string }

// Add adds a rank.
func (j *Job) Add(r Rank) {
	r = r.printable()
	if len(j.rows) == 0 || compare(r, j.first) < 0 {
		j.first = r
	}
	if j.sites == nil {
		j.sites = map[siteKey]Site{}
	}
	for _, s := range r.Sites[:min(len(r.Sites), TopSites)] {
		k := siteKey{s.Name, s.Op}
		t := j.sites[k]
		j.sites[k] = Site{s.Name, s.Op, t.Uses + s.Uses, t.Bytes + s.Bytes}
	}
	r.Command, r.Library, r.Policy, r.Mapping, r.Helper, r.Sites, r.Environment = "", "", "", "", "", nil, nil
	j.rows = append(j.rows, r)
}

// printable returns the rank with nothing in its texts that a terminal would obey.
func (r Rank) printable() Rank {
	r.Sites, r.Environment = slices.Clone(r.Sites), slices.Clone(r.Environment)
	texts := []*string{&r.World, &r.Host, &r.Command, &r.Library, &r.Policy, &r.Mapping, &r.Helper}
	for i := range r.Sites {
		texts = append(texts, &r.Sites[i].Name, &r.Sites[i].Op)
	}
	for i := range r.Environment {
		texts = append(texts, &r.Environment[i])
	}
	for _, t := range texts {
		*t = strings.Map(func(c rune) rune {
			if unicode.IsPrint(c) {
				return c
			}
			return '?'
		}, *t)
	}
	return r
}

// Write prints the report of the ranks that were added; nothing if there are none.
func (j *Job) Write(w io.Writer) error {
	if len(j.rows) == 0 {
		return nil
	}
	slices.SortStableFunc(j.rows, compare)
	out := bufio.NewWriter(w)
	total := sum(j.rows)
	total.Policy = j.first.Policy
	j.header(out, total)
	if total.Uses == 0 {
		fmt.Fprintf(out, "@ Nothing was registered through Pinwheel: %s.\n", whyNothing(total))
	} else {
		table(out, j.rows, total)
		remarks(out, total)
		j.writeSites(out)
	}
	return out.Flush()
}

func (j *Job) header(b io.Writer, total Rank) {
	r := j.first
	launched, started := len(j.rows), ""
	for _, row := range j.rows {
		if row.World != r.World {
			launched--
		}
	}
	if n := len(j.rows) - launched; n > 0 {
		started = fmt.Sprintf(", and %d that these started", n)
	}
	fmt.Fprintf(b, "@ Pinwheel\n@ Command  %s\n@ MPI      %s, %d of %d ranks%s\n@ Policy   %s\n",
		r.Command, cmp.Or(r.Library, "none"), launched, r.Size, started, r.Policy)
	if r.Mapping != "" {
		fmt.Fprintf(b, "@ Mappings %s\n", r.Mapping)
	}
	fmt.Fprintf(b, "@ Helper   %s\n@ Run time %.3f s\n", r.Helper, total.Seconds)
	for _, e := range r.Environment {
		fmt.Fprintf(b, "@ Setting  %s\n", e)
	}
}

func whyNothing(total Rank) string {
	switch {
	case !total.VerbsUsed:
		return "the transport used no verbs (it is shared memory, TCP, or linked with libibverbs statically)"
	case total.Plain == 0:
		return "the transport registered no memory"
	case total.Policy == "disabled" || total.Policy == "on-demand":
		return fmt.Sprintf("with policy %s the transport's %d registrations go past it", total.Policy, total.Plain)
	}
	return leftAlone(total)
}

func leftAlone(total Rank) string {
	return fmt.Sprintf("registrations left alone, because they were small or the transport's own: %d", total.Plain)
}

// sum is the aggregate line: what can be added is, times are the longest.
func sum(ranks []Rank) Rank {
	t := Rank{Rank: -1}
	var good05, good5, path float64
	for _, r := range ranks {
		t.Seconds = max(t.Seconds, r.Seconds)
		t.PeakPinnedBytes += r.PeakPinnedBytes
		t.AveragePinnedBytes += r.AveragePinnedBytes
		t.Uses += r.Uses
		t.Plain += r.Plain
		t.Hits += r.Hits
		t.Waited += r.Waited
		t.First += r.First
		t.Late += r.Late
		t.HelperRegs += r.HelperRegs
		t.HelperDeregs += r.HelperDeregs
		t.Repeated += r.Repeated
		t.Lost += r.Lost
		t.StallNs += r.StallNs
		t.VerbsUsed = t.VerbsUsed || r.VerbsUsed
		t.PathSamples += r.PathSamples
		path += r.PathNs * float64(r.PathSamples)
		t.HelperCPUNs += r.HelperCPUNs
		t.Predictions += r.Predictions
		good05 += r.Err05 * float64(r.Predictions)
		good5 += r.Err5 * float64(r.Predictions)
	}
	if t.Predictions > 0 {
		t.Err05, t.Err5 = good05/float64(t.Predictions), good5/float64(t.Predictions)
	}
	if t.PathSamples > 0 {
		t.PathNs = path / float64(t.PathSamples)
	}
	return t
}

func table(b io.Writer, ranks []Rank, total Rank) {
	fmt.Fprintf(b, "\n@--- Registered memory and registrations ---\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rank\thost\tpeak\taverage\tuses\thits\twaited\tfirst\tlate\tahead\treleased\tlost\t<0.5 %\t<5 %\tstall ms\thelper ms\t")
	for _, r := range append(ranks, total) {
		name := Name(r.World, r.Rank)
		if r.Rank < 0 {
			name = "*"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%.1f\t%.1f\t\n", name, cmp.Or(r.Host, "*"),
			mem.FormatBytes(uint64(r.PeakPinnedBytes)), mem.FormatBytes(uint64(r.AveragePinnedBytes)),
			r.Uses, r.Hits, r.Waited, r.First, r.Late, r.HelperRegs, r.HelperDeregs, r.Lost,
			percent(r.Err05, r.Predictions), percent(r.Err5, r.Predictions), float64(r.StallNs)/1e6, float64(r.HelperCPUNs)/1e6)
	}
	w.Flush()
}

func percent(share float64, of int64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// legend says what the columns are, in their order.
const legend = `peak, average: memory that Pinwheel held registered. uses: what the transport asked for; it was registered already (hits), was
being registered (waited), or had to be, for the first time (first) or again (late). ahead, released: registered and
deregistered by the helper thread; lost: uses that it did not hear of. <0.5 %, <5 %: predictions of the next use that were
wrong by less than that share of the interval. stall: time that communication spent waiting for registrations; helper: its processor time.
`

func remarks(b io.Writer, total Rank) {
	fmt.Fprint(b, legend)
	if total.PathSamples > 0 {
		fmt.Fprintf(b, "Overhead on the path of a message: %.0f ns beside registration, the mean of %d hits.\n", total.PathNs, total.PathSamples)
	}
	if total.Plain > 0 {
		fmt.Fprintf(b, "Besides, %s.\n", leftAlone(total))
	}
}

// writeSites prints the call sites of all ranks together.
func (j *Job) writeSites(b io.Writer) {
	if len(j.sites) == 0 {
		return
	}
	var list []Site
	for _, s := range j.sites {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y Site) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Op, y.Op))
	})
	fmt.Fprintf(b, "\n@--- Call sites by bytes registered ---\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "call\tuses\tbytes\tsite")
	for _, s := range list[:min(len(list), TopSites)] {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Op, s.Uses, mem.FormatBytes(uint64(s.Bytes)), s.Name)
	}
	w.Flush()
}
