package report

import (
	"fmt"
	"slices"
	"strings"

	"pinwheel/internal/caches"
	"pinwheel/mem"
)

// reason is why the helper of a process released nothing.
type reason int

const (
	released       reason = iota // it did, or the policy has each use release its own
	unused                       // nothing was registered through Pinwheel
	keepingPolicy                // the policy releases nothing by itself
	transportCache               // the transport keeps registrations, and asks for none again
	unwatched                    // no registration is cached
	faulted                      // the helper met a fault
	noHelper
	noIdleCore // the helper was parked
	sharedCore // with its rank, where a release must be worth its processor time
	unheard    // most uses never reached the helper
	usedOnce   // no buffer was used twice
	unlearned  // there was no prediction
	tooShort   // no prediction was worth it
)

// reasonOf finds out from a report why nothing was released. The first cause counts.
func reasonOf(r *Rank) reason {
	switch {
	case r.Mapping == "none" && r.HelperDeregs == 0 && r.transportKeeps():
		return unwatched
	case r.Uses == 0 && r.transportKeeps():
		return transportCache
	case r.Uses == 0:
		return unused
	case r.HelperDeregs > 0 || r.Policy == "on-demand" || r.Policy == "disabled":
		return released
	case r.Policy == "leave-pinned" || r.Policy == "lru":
		return keepingPolicy
	case r.transportKeeps():
		return transportCache
	case r.Demand.Uses > 0:
		return released
	case r.Mapping == "none":
		return unwatched
	case r.HelperFaulted || r.Faulted > 0:
		return faulted
	case r.Helper == "none":
		return noHelper
	case r.ParkedNs > 0:
		return noIdleCore
	case 2*float64(r.SharedNs) > 1e9*r.Seconds:
		return sharedCore
	case r.Lost > r.Uses/2:
		return unheard
	case r.Predictions == 0 && r.Uses <= r.First:
		return usedOnce
	case r.Predictions == 0:
		return unlearned
	}
	return tooShort
}

// transportKeeps reports whether the transport has a registration cache of its own that is on. A transport
// without one gives a registration back when the transfer has ended, so it holds none when MPI_Finalize begins.
// A request that a program leaves unfinished holds one; half of all is no such accident.
func (r *Rank) transportKeeps() bool { return r.Kept > 0 && 2*r.Kept >= r.Uses+r.Early }

// why says of n processes, whose reports are summed up in r, why nothing was released.
func (k reason) why(r *Rank, n int) string {
	switch k {
	case unused:
		return whyUnused(r)
	case keepingPolicy:
		return fmt.Sprintf("policy %s keeps memory registered", r.Policy)
	case transportCache:
		return r.keptLine()
	case unwatched:
		return "nothing here notices changes of mappings, so Pinwheel keeps no registration (pinwheel doctor says why)" +
			r.insteadOfUs()
	case faulted:
		return "there was an internal fault (see the output of the job)"
	case noHelper:
		if slices.Contains(r.Environment, "PINWHEEL_IDLE_POLICY=off") {
			return "PINWHEEL_IDLE_POLICY=off leaves out the helper thread"
		}
		return "there was no helper thread (see the output of the job)"
	case noIdleCore:
		return r.coreless() + "; " + r.parkedLine(n)
	case sharedCore:
		return fmt.Sprintf("it would have saved too little memory for the processor time that it takes from the rank: the helper has"+
			" used %.1f %% of its core (%s)", 100*float64(r.SharedCPUNs)/float64(r.SharedNs), r.advice())
	case unheard:
		return fmt.Sprintf("%d of %d uses came faster than the helper could take them in", r.Lost, r.Uses)
	case usedOnce:
		return fmt.Sprintf("%s of %s, none of them used twice", count(r.Uses, "use"), count(r.First, "buffer"))
	case unlearned:
		return fmt.Sprintf("%s, nothing learned yet", count(r.Uses, "use"))
	case tooShort:
		return fmt.Sprintf("none of %d predictions left time to release a buffer and register it again", r.Predictions)
	}
	return ""
}

// insteadOfUs says who keeps registrations where Pinwheel doesn't.
func (r *Rank) insteadOfUs() string {
	if r.transportKeeps() {
		return "; the transport's own cache does"
	}
	return ""
}

// Reasons says which ranks have no report, why others released nothing, and for how long the helpers of the rest
// were parked, a line for each reason.
func (j *Job) Reasons() (lines []string) {
	if missing := j.missing(); len(missing) > 0 {
		lines = append(lines, "No report"+naming(missing)+
			": killed, ended without MPI_Finalize, or on a node that doesn't share the files")
	}
	for why := unused; why <= tooShort; why++ {
		g := j.kept[why]
		if g == nil {
			continue
		}
		did := "released"
		if g.sum.Uses == 0 {
			did = "registered through Pinwheel"
		}
		lines = append(lines, fmt.Sprintf("Nothing was %s%s: %s", did, j.of(g), why.why(&g.sum, len(g.ranks))))
	}
	if g := j.kept[released]; g != nil && g.sum.Parks > 0 {
		lines = append(lines,
			fmt.Sprintf("%s at times%s: %s", capital(g.sum.coreless()), j.of(g), g.sum.parkedLine(len(g.ranks))))
	}
	total := j.Total()
	if line := total.Demand.line(); line != "" {
		lines = append(lines, line)
	}
	if line := total.Cost.Line(float64(len(j.rows)) * total.Seconds * 1e9); line != "" && total.Uses > 0 {
		lines = append(lines, line)
	}
	if line := total.lateLine(); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// missing returns the ranks of the launcher that were not added.
func (j *Job) missing() (ranks []Rank) {
	const most = 1 << 20 // of what a damaged report may say
	there := map[int]bool{}
	for _, r := range j.rows {
		if r.World == "" {
			there[r.Rank] = true
		}
	}
	if j.alone || there[-1] || len(there) == 0 { // MPI_Init was not reached
		return nil
	}
	for i := range min(j.first.Size, most) {
		if !there[i] {
			ranks = append(ranks, Rank{Rank: i})
		}
	}
	return ranks
}

// of names the ranks of a group, unless it has all of the job.
func (j *Job) of(g *group) string {
	if len(g.ranks) == len(j.rows) {
		return ""
	}
	slices.SortFunc(g.ranks, compare)
	return naming(g.ranks)
}

// naming names ranks in order, in brackets.
func naming(ranks []Rank) string {
	var names []string
	for i := 0; i < len(ranks); {
		first, last := ranks[i], ranks[i]
		for i++; i < len(ranks) && ranks[i].World == last.World && ranks[i].Rank == last.Rank+1; i++ {
			last = ranks[i]
		}
		name := Name(first.World, first.Rank)
		if last.Rank > first.Rank {
			name += " to " + Name(last.World, last.Rank)
		}
		names = append(names, name)
	}
	const most = 6
	if len(names) > most {
		names = append(names[:most], "...")
	}
	if len(ranks) == 1 {
		return " (rank " + names[0] + ")"
	}
	return fmt.Sprintf(" (%d ranks: %s)", len(ranks), strings.Join(names, ", "))
}

// parkedLine says for how long the helpers of n processes were parked, on average.
func (r *Rank) parkedLine(n int) string {
	each := float64(r.ParkedNs) / float64(max(n, 1)) / 1e9
	return fmt.Sprintf("the helper was parked from %.1f s on, for %.1f s of %.1f s"+
		" (%s, or give it one with PINWHEEL_HELPER_CPU)", float64(r.FirstParkNs)/1e9, each, r.Seconds, r.advice())
}

// lacksQuota reports whether helpers mostly had no core of their own because of a quota.
func (r *Rank) lacksQuota() bool { return 2*r.QuotaUsedUpNs > r.ParkedNs+r.SharedNs }

// coreless says why helpers had no core of their own.
func (r *Rank) coreless() string {
	if r.lacksQuota() {
		return "the CPU quota is used up"
	}
	return "no idle core"
}

func capital(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }

// advice says what would give helpers a core of their own.
func (r *Rank) advice() string {
	if r.lacksQuota() {
		return "raise the CPU quota"
	}
	return "leave a core free"
}

// whyUnused says why nothing was registered through Pinwheel.
func whyUnused(r *Rank) string {
	switch {
	case !r.VerbsUsed:
		return "the transport used no verbs (it is shared memory, TCP, PSM3 with rv, OPX or CXI, or linked with libibverbs " +
			"statically)"
	case r.Policy == "disabled" || r.Policy == "on-demand":
		return fmt.Sprintf("with policy %s the transport's %d registrations go past it", r.Policy, r.Plain)
	case r.Large == 0 && r.Passed > 0:
		return fmt.Sprintf("no MPI call that Pinwheel looks at was given a message of %s or more, but %s",
			mem.FormatBytes(uint64(r.ThresholdBytes)), r.passedLine())
	case r.Large == 0 && r.ThresholdBytes > 0:
		return fmt.Sprintf("no message of %s or more", mem.FormatBytes(uint64(r.ThresholdBytes)))
	case r.Plain == 0:
		return "the transport registered no memory"
	case r.Early > 0:
		return "the program ended before changes of mappings were noticed (with PINWHEEL_WATCH_WAIT=y it waits for that)"
	}
	return leftAlone(r)
}

// passedLine says what the transport did without Pinwheel.
func (r *Rank) passedLine() string {
	times := "once"
	if r.Passed > 1 {
		times = fmt.Sprintf("%d times", r.Passed)
	}
	return fmt.Sprintf("the transport registered memory past it and gave it back %s, %s in all:"+
		" what that saves and costs is the transport's doing", times, mem.FormatBytes(r.PassedBytes))
}

func leftAlone(r *Rank) string {
	line := fmt.Sprintf("registrations left alone, because they were small or the transport's own: %d",
		r.Plain-min(r.Plain, r.Early+r.Passed))
	if r.Early > 0 {
		line += fmt.Sprintf("; because changes of mappings were not noticed yet: %d", r.Early)
	}
	if r.Passed > 0 {
		line += "; " + r.passedLine()
	}
	return line
}

// keptLine says that the transport's own cache is on: what was set, what was seen, and what to do.
func (r *Rank) keptLine() string {
	whose := caches.WhoseIs(r.Transport)
	set, missing := caches.Of(whose, r.TransportSettings)
	given, remedy := "nothing that would turn it off is set", "set "+strings.Join(missing, " and ")
	if len(set) > 0 {
		given = "with " + strings.Join(set, ", ")
	}
	if len(missing) == 0 {
		remedy = "this version keeps it all the same"
	}
	return fmt.Sprintf("%s's cache is on, %s: of %s for %s it held %d when MPI_Finalize began; %s",
		whose, given, count(r.Uses+r.Early, "registration"), count(r.Large, "large buffer"), r.Kept, remedy)
}

// CacheWarning returns a line for the user if the transport keeps registrations although the environment asks it
// not to, or "".
func (r *Rank) CacheWarning() string {
	if len(r.TransportSettings) == 0 || !r.transportKeeps() {
		return ""
	}
	return r.keptLine()
}

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
