package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"pinwheel/lab/testbed/live/stack"
)

type soakCmd struct {
	bench
	Launches int    `default:"1000" help:"On each stack; in every tenth a rank is killed."`
	Seed     uint64 `default:"1" help:"Of the choice of ways, policies, ranks and moments."`
	Only     string `help:"Of these launches only those that end in this way, such as lost-rank."`
	Plain    bool   `help:"Make the launches without Pinwheel, too: what comes out is what the stacks do by themselves."`
}

// ways are those in which lab/testbed/programs/lifecycle.c ends.
var ways = []string{"finalize", "status", "exit", "abort", "libc-abort", "segv", "fork", "no-mpi", "signals"}

// lostRank is the way of the launches in which a rank is killed. They are of halo, long
// enough that this happens before, while and after it communicates.
const (
	lostRank     = "lost-rank"
	lostRankArgs = "60 1048576 5"
)

// plainRuns is how often a job is run without Pinwheel to see how it can end, and
// moreRuns how often again if one under Pinwheel ends in another way: ends of ranks
// race with each other and with the launcher.
const (
	plainRuns = 3
	moreRuns  = 20
)

// launch is one of the soak, made of its number alone.
type launch struct {
	stack  stack.Stack
	number int
	way    string
	policy string
	ranks  int
	rank   int     // to kill: of those that run then, the one with this remainder
	moment float64 // when: a share of how long a plain run takes
	waits  bool    // for the watch of mappings; else short programs end, and are killed, while it is being opened
}

func (c soakCmd) launch(s stack.Stack, number int) launch {
	r := rand.New(rand.NewPCG(c.Seed, uint64(number)))
	l := launch{
		stack: s, number: number, way: ways[r.IntN(len(ways))], policy: policies[r.IntN(len(policies)-1)],
		ranks: 2 + 2*(r.IntN(4)/3), rank: r.IntN(4), moment: r.Float64(), waits: r.IntN(2) == 0,
	}
	if number%10 == 9 {
		l.way = lostRank
	}
	return l
}

// String is the name by which the state file knows it.
func (l launch) String() string {
	name := fmt.Sprintf("%s  launch %d  %d ranks  %s  %s", l.stack.Name, l.number, l.ranks, l.policy, l.way)
	if !l.waits {
		name += "  while the watch opens"
	}
	if l.way == lostRank {
		name += fmt.Sprintf(" at %.2f", l.moment)
	}
	return name
}

// plain is the name of the runs without Pinwheel that it is compared with.
func (l launch) plain() string {
	return fmt.Sprintf("plain  %s  %d ranks  %s", l.stack.Name, l.ranks, l.way)
}

// soak is one that runs.
type soak struct {
	soakCmd
	device stack.Device
	state  *state
	hung   int // jobs whose launcher hung; they are started again
}

// Run makes all launches, and prints a line for each that did not end as it should.
func (c soakCmd) Run() error {
	stop := interrupted()
	device, stacks, err := c.stacks()
	if err != nil || len(stacks) == 0 {
		return err
	}
	s := soak{soakCmd: c, device: device}
	if err := s.open(stacks); err != nil {
		return err
	}
	defer s.state.Close()
	start, launched, before, reasons := time.Now(), 0, 0, map[string]int{}
	pinnedAtStart, _ := pinned()
	bar := progress(c.Launches*len(stacks), "soak-live")
	defer func() { _ = bar.Finish() }() // decoration
	for number := range c.Launches {
		for _, each := range stacks {
			l := c.launch(each, number)
			_ = bar.Add(1)
			if c.Only != "" && l.way != c.Only {
				continue
			}
			if launched++; s.state.passed(l.String()) {
				before++
				continue
			}
			o, output, err := s.one(l)
			if err == nil {
				err = s.state.add(o)
			}
			if err != nil {
				return err
			}
			if o.Failed != "" {
				reasons[each.Name+": "+o.Failed]++
				_ = bar.Clear()
				say("FAIL     %s: %s\n%s", l, o.Failed, indented(output))
			}
			select {
			case <-stop:
				return errInterrupted
			default:
			}
		}
	}
	if why := leftPinned(pinnedAtStart); why != "" {
		say("FAIL     %s", why)
		reasons[why]++
	}
	killed, failed := 0, 0
	for _, o := range s.state.done {
		if o.Killed {
			killed++
		}
	}
	say("a rank was killed in %d launches on %d stacks; %d times a launcher hung", killed, len(stacks), s.hung)
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		say("%5d failed: %s", reasons[why], why)
		failed += reasons[why]
	}
	say("%d launches, %d of them before, %d failed, %.0f s", launched, before, failed, time.Since(start).Seconds())
	if failed > 0 {
		return errFailed
	}
	return nil
}

func (s *soak) open(stacks []stack.Stack) error {
	for _, each := range stacks {
		for _, name := range []string{"lifecycle", "halo"} {
			p, err := programNamed(name)
			if err == nil {
				err = each.Compile(s.path(each.MPI, name), p.files(s.Sources)...)
			}
			if err != nil {
				return err
			}
		}
	}
	stamp, err := s.stamp()
	if err != nil {
		return err
	}
	name := "soak.jsonl"
	if s.Plain {
		name = "soak-plain.jsonl"
	}
	s.state, err = openState(filepath.Join(s.Out, name), fmt.Sprint(stamp, " seed ", s.Seed))
	return err
}

// job is the launch as a job, with Pinwheel or without, where the transport's cache is off as well.
func (s *soak) job(l launch, pinwheel bool) stack.Job {
	p := program{name: "lifecycle", args: l.way}
	if l.way == lostRank {
		p = program{name: "halo", args: lostRankArgs}
	}
	c := combination{program: p, policy: l.policy, stack: l.stack, ranks: l.ranks}
	j := s.bench.job(s.device, c)
	if !pinwheel {
		j.Under, j.NoCache = nil, true
	}
	if !l.waits {
		j.Environ = append(j.Environ, "PINWHEEL_WATCH_WAIT=n")
	}
	return j
}

// one makes a launch and judges it.
func (s *soak) one(l launch) (o outcome, output string, err error) {
	plain, err := s.plainly(l)
	if err != nil {
		return o, "", err
	}
	o = outcome{Run: l.String()}
	var e ended
	for range moments {
		if e, err = s.run(l, !s.Plain, plain); err != nil {
			return o, "", err
		}
		if launcherHung(e) {
			s.hung++
		} else if !e.missed || e.Status != 0 {
			break
		}
		_, l.moment = math.Modf(l.moment + math.Phi) // far from all moments before
	}
	o.Seconds, o.Killed = e.Took.Seconds(), l.way == lostRank && !e.missed
	switch {
	case e.Late:
		o.Failed = fmt.Sprintf("not over after %.0f s", e.Took.Seconds())
	case strings.Contains(e.Output, "internal fault"):
		o.Failed = "a fault of Pinwheel"
	default:
		o.Failed, err = s.compare(l, plain, e)
	}
	return o, e.Output, err
}

// moments is how many are tried in one launch until there is a rank to kill.
const moments = 5

// launcherHung reports whether Open MPI's launcher waits for itself after a rank was killed: PMIx_server_finalize takes a
// lock that a connection has kept whose rank died meanwhile (Open MPI 4.1.4 with PMIx 4.2.2). It does so without Pinwheel
// as well. Where no rank was killed, a hang is an end like any other.
func launcherHung(e ended) bool {
	return e.Late && e.after > 0 && strings.Contains(e.Output, "PMIX ERROR: UNREACHABLE")
}

// compare says what is different from plain runs, after more of them if need be.
func (s *soak) compare(l launch, plain outcome, e ended) (why string, err error) {
	for range moreRuns {
		if plain.difference(l, e) == "" || slices.ContainsFunc(e.left, ours) {
			break
		}
		again, err := s.run(l, false, plain)
		if err != nil {
			return "", err
		}
		if plain.see(again) {
			if err := s.state.add(plain); err != nil {
				return "", err
			}
		}
	}
	return plain.difference(l, e), nil
}

// plainly returns how the launch ends without Pinwheel, from some runs that it
// makes the first time.
func (s *soak) plainly(l launch) (outcome, error) {
	if o, ok := s.state.done[l.plain()]; ok {
		return o, nil
	}
	o := outcome{Run: l.plain()}
	if l.way == lostRank { // how long it takes if nobody is killed
		whole, err := s.run(l, false, o)
		if err != nil {
			return o, err
		}
		o.Seconds = whole.Took.Seconds()
	}
	for i := range plainRuns {
		l.moment = float64(i+1) / (plainRuns + 1)
		e, err := s.run(l, false, o)
		if err != nil {
			return o, err
		}
		o.see(e)
	}
	return o, s.state.add(o)
}

// ended is how a job ended that may have lost a rank.
type ended struct {
	stack.Result
	missed bool          // no rank was there to be killed: none yet, or all had ended
	after  time.Duration // from the moment that one was killed until the job was over
	left   []string      // in the file system and as processes: the kinds
}

// run runs the launch once, with Pinwheel or without. It kills a rank if it
// is known how long the job takes.
func (s *soak) run(l launch, pinwheel bool, plain outcome) (e ended, err error) {
	had := lookBefore()
	r, err := s.job(l, pinwheel).Start()
	if err != nil {
		return e, err
	}
	start, killed := time.Now(), time.Time{}
	if l.way == lostRank && plain.Seconds > 0 {
		time.Sleep(time.Duration(l.moment * plain.Seconds * float64(time.Second)))
		ranks := r.Ranks()
		e.missed = len(ranks) == 0 || syscall.Kill(ranks[l.rank%len(ranks)], syscall.SIGKILL) != nil
		killed = time.Now()
	}
	if e.Result, err = r.Wait(s.Limit); err != nil {
		return e, err
	}
	if !killed.IsZero() {
		e.after = max(0, e.Took-killed.Sub(start))
		// A rank that had come to its end was killed too late to change anything.
		e.missed = e.missed || e.Status == 0 && strings.Contains(e.Output, "data right")
	}
	for _, what := range had.left() {
		e.left = append(e.left, kindOf(what))
	}
	return e, nil
}

// ours reports whether a leftover is of Pinwheel, which plain runs don't have.
func ours(what string) bool { return strings.HasPrefix(what, sharedMemory+"/pinwheel") }

// kindOf is the part of a leftover's name that is the same in every job.
func kindOf(what string) string {
	return strings.TrimRight(regexp.MustCompile(`^process [0-9]+|tmp.{6}$|[0-9a-f.]{6,}`).ReplaceAllString(what, "*"),
		"*") + "*"
}

// see notes how a plain run ended, and reports whether that is new. Of runs that
// were to lose a rank, those count that did.
func (o *outcome) see(e ended) (news bool) {
	if e.missed || launcherHung(e) {
		return false
	}
	if news = !slices.Contains(o.Statuses, e.Status); news {
		o.Statuses = append(o.Statuses, e.Status)
	}
	for _, what := range e.left {
		if !slices.Contains(o.Left, what) {
			o.Left, news = append(o.Left, what), true
		}
	}
	if s := e.after.Seconds(); s > o.Slowest {
		o.Slowest, news = s, true
	}
	return news
}

// patience is how much longer than the slowest plain run the ranks may go on
// after one was killed: the machine may do much else.
const patience = 20 * time.Second

// sameStatus reports whether a job may end with a status if others end with the plain one. MPICH's launcher returns the
// bitwise or of those of the ranks, and may have killed one before that had its own. And it dies of a broken pipe in 2
// of 1000 plain runs (MPICH 4.0.2), which a few of them don't show.
func (l launch) sameStatus(plain, status int) bool {
	if status == plain || l.stack.MPI != "mpich" {
		return status == plain
	}
	killed := plain != 0 && status == plain|int(syscall.SIGKILL) // where no rank fails, none is killed for it
	return killed || status == 128+int(syscall.SIGPIPE)
}

// leavesByItself reports whether a job that lost a rank may leave something that no plain run has left so far: where
// one dies between making the memory that MPICH's ranks share and its removal, it stays (4 of 60 plain runs, MPICH
// 4.0.2).
func (l launch) leavesByItself(what string) bool {
	return l.way == lostRank && l.stack.MPI == "mpich" && strings.HasPrefix(what, sharedMemory+"/mpich_shar_")
}

// difference says in one line how a run differs from all plain ones, "" if it does not.
func (o *outcome) difference(l launch, e ended) string {
	switch {
	case e.missed && e.Status != 0:
		return fmt.Sprintf("status %d, though no rank was there to be killed", e.Status)
	case !e.missed && !slices.ContainsFunc(o.Statuses, func(s int) bool { return l.sameStatus(s, e.Status) }):
		return fmt.Sprintf("status %d, without Pinwheel one of %v", e.Status, o.Statuses)
	}
	for _, what := range e.left {
		if !slices.Contains(o.Left, what) && !l.leavesByItself(what) {
			return fmt.Sprintf("left behind %s, without Pinwheel %v", what, o.Left)
		}
	}
	if e.after.Seconds() > o.Slowest+patience.Seconds() {
		return fmt.Sprintf("went on for %.0f s after a rank was killed, without Pinwheel for %.0f s at most",
			e.after.Seconds(), o.Slowest)
	}
	return ""
}
