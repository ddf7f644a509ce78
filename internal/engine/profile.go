package engine

import (
	"errors"
	"fmt"

	"go.uber.org/atomic"

	"pinwheel/internal/fault"
	"pinwheel/internal/report"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/profile"
)

// ProfileOptions say where a process finds what it has learned in the last run, and who it is.
type ProfileOptions struct {
	Store profile.Store
	Force bool // begin with a profile of another job of the program, too
	Node  profile.Node
	Rank  int // of the process in the job; it has no profile if that isn't known
	Ranks int // of the job; 0: not known

	ThresholdBytes uint64
	Loads          func() uint64 // counts how often libraries were loaded and unloaded; nil: none is ever unloaded
}

// Profiles are a directory of profiles, as the settings have it.
type Profiles struct {
	Dir        string // "": none
	LimitBytes int64  // mem.Unlimited for none
	Force      bool
}

// Of returns the options of a process; nil without a directory. rank is -1 if it isn't known. ranks is how many the job
// has as MPI says, or 0 if MPI says nothing: then the launcher may know.
func (p Profiles) Of(rank, ranks int, thresholdBytes uint64) *ProfileOptions {
	if p.Dir == "" {
		return nil
	}
	if ranks <= 0 {
		ranks = settings.Ranks()
	}
	store := profile.Store{Dir: p.Dir, LimitBytes: p.LimitBytes}
	if p.LimitBytes == mem.Unlimited {
		store.LimitBytes = 0
	}
	return &ProfileOptions{
		Store: store, Force: p.Force, Node: ProfileNode(),
		Rank: max(rank, 0), Ranks: ranks, ThresholdBytes: thresholdBytes,
	}
}

// ProfileNode is this node, as the launcher has it.
func ProfileNode() profile.Node {
	return profile.Node{Job: settings.Job(), Ranks: int(settings.LocalRanks())}
}

// learner is the default predictor with a profile. It looks for that at the first use, on the helper's thread: no
// thread of the program waits for a file, and a program without large messages opens none.
type learner struct {
	engine  *Engine
	opt     ProfileOptions
	inner   *predictor.Pinwheel // nil before the first use
	options predictor.Options

	outcome atomic.String // of load, as in report.Rank.Profile; any thread may read it

	modules *profile.Modules // nil: nothing is loaded or kept
	key     profile.Key
	ranks   *profile.Participant // this one; nil as modules
	from    *profile.Origin      // nil: no trained entries, or those of another job
}

// Observe implements predictor.Predictor.
func (l *learner) Observe(u predictor.Use) {
	if l.inner == nil {
		if err := fault.Contain(l.load); err != nil && l.opt.Node.First(l.key, "load") {
			l.engine.Warn("profile", fmt.Sprintf("profile: %v; going on without it", err))
		}
		l.inner = predictor.NewPinwheel(l.options)
	}
	if l.modules != nil {
		l.modules.Update()
	}
	l.inner.Observe(u)
}

// Next implements predictor.Predictor.
func (l *learner) Next(id mem.RegionID, nowNs int64) (predictor.Prediction, bool) {
	if l.inner == nil {
		return predictor.Prediction{}, false
	}
	return l.inner.Next(id, nowNs)
}

// Changed implements predictor.Predictor.
func (l *learner) Changed() []mem.RegionID {
	if l.inner == nil {
		return nil
	}
	return l.inner.Changed()
}

// Forget implements predictor.Predictor.
func (l *learner) Forget(id mem.RegionID) {
	if l.inner != nil {
		l.inner.Forget(id)
	}
}

// load finds out which job this is, and what the last run has learned.
func (l *learner) load() error {
	o := &l.opt
	modules, err := profile.ReadModules(o.Loads)
	if err != nil {
		return err
	}
	program := modules.Program()
	l.key = profile.Key{
		Program: program.Name, Build: program.Build, Arguments: profile.Arguments(report.CommandLine()), Ranks: o.Ranks,
		ThresholdBytes: o.ThresholdBytes, Window: l.options.Window,
	}
	if program.Build == "" {
		return errors.New("builds of this program can't be told apart")
	}
	l.modules, l.options.Frame = modules, modules.Frame
	l.ranks = o.Node.Join(l.key)
	l.options.Trained, l.from, err = o.Store.Load(l.key, o.Rank, modules, o.Force)
	switch {
	case err == nil:
		l.outcome.Store("used")
		if o.Rank == 0 {
			o.Store.Used(l.key)
		}
		return nil
	case errors.Is(err, profile.ErrNone):
		l.outcome.Store("none")
		return nil
	}
	l.outcome.Store("refused")
	if errors.Is(err, profile.ErrOtherJob) && o.Rank >= max(o.Node.Ranks, 1) {
		return nil // all nodes meet it: the first one, where ranks are placed in order, tells
	}
	return err
}

// SaveProfile keeps what was learned for the next run. After a fault of the helper it discards what that began with, as
// the next run would fail in the same way. It comes after Close, if the run came to its end; later calls do nothing.
func (e *Engine) SaveProfile() {
	l := e.learner
	e.learner = nil
	if l == nil || l.inner == nil || l.modules == nil {
		return
	}
	defer l.ranks.Leave()
	if e.helper.Stats().Faulted {
		e.discard(l)
		return
	}
	err := fault.Contain(func() error {
		trained := l.inner.Trained()
		part, err := profile.NewPart(l.opt.Rank, &trained)
		if err != nil {
			return err
		}
		part.Modules = l.modules.Met()
		return l.ranks.HandIn(part, func(parts []profile.Part) error {
			return l.opt.Store.Save(l.key, parts)
		})
	})
	if err != nil && l.opt.Node.First(l.key, "save") {
		e.Warn("profile not kept",
			fmt.Sprintf("profile: %v; what this run has learned is not kept (see PINWHEEL_PROFILE)", err))
	}
}

// discard removes the profile that the helper may have failed with. That of another job stays.
func (e *Engine) discard(l *learner) {
	if l.options.Trained == nil {
		return
	}
	var replaced bool
	err := fault.Contain(func() (err error) {
		if l.from != nil {
			replaced, err = l.from.Discard()
		}
		return err
	})
	if !l.opt.Node.First(l.key, "discard") {
		return
	}
	message := ""
	switch {
	case l.from == nil:
		message = "the helper failed with that of another job, which stays. Without PINWHEEL_PROFILE_FORCE it is not used"
	case err != nil:
		message = fmt.Sprintf("the helper failed with it, and it can't be removed: %v", err)
	case replaced:
		message = fmt.Sprintf("the helper failed with %s. It stays, as another run has replaced it since", l.from.Path)
	default:
		message = fmt.Sprintf("%s is removed, as the helper failed with it", l.from.Path)
	}
	e.Warn("profile discarded", "profile: "+message)
}
