package replay

import (
	"slices"
	"testing"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/predictor"
)

// needLog is what each region of a rank was needed for. The IDs are those of
// every replay: the region of a request does not depend on what is registered.
type needLog map[mem.RegionID]*needs

type needs struct {
	rng     mem.Range // of all
	startNs []int64
}

// logging records the uses of the policy pinwheel.
type logging struct {
	predictor.Predictor
	log needLog
}

func (l *logging) Observe(u predictor.Use) {
	if l.log[u.Region] == nil {
		l.log[u.Region] = &needs{}
	}
	n := l.log[u.Region]
	n.rng = n.rng.Union(u.Range)
	n.startNs = append(n.startNs, u.StartNs)
	l.Predictor.Observe(u)
}

// clairvoyant predicts the next need of every region's bytes exactly: of the
// region, or of one inside of it that is not known yet and which it can serve.
type clairvoyant struct {
	log  needLog
	done map[mem.RegionID]int
	now  [1]mem.RegionID
}

func (c *clairvoyant) Observe(u predictor.Use) {
	c.done[u.Region]++
	c.now[0] = u.Region
}

func (c *clairvoyant) Changed() []mem.RegionID { return c.now[:] }
func (c *clairvoyant) Forget(mem.RegionID)     {}

func (c *clairvoyant) Next(id mem.RegionID, _ int64) (predictor.Prediction, bool) {
	next := int64(1) << 60
	whole := c.log[id]
	if whole == nil {
		return predictor.Prediction{}, false
	}
	if n := c.done[id]; n < len(whole.startNs) {
		next = whole.startNs[n]
	}
	for part, n := range c.log {
		if c.done[part] == 0 && whole.rng.Contains(n.rng) {
			next = min(next, n.startNs[0])
		}
	}
	return predictor.Prediction{NextNs: next, ExpectedNs: next, LatestNs: next, Confidence: 1}, true
}

// clairvoyantly replays a trace with perfect predictions.
func clairvoyantly(t *testing.T, name string) Result {
	f := nasTrace(t, name)
	var logs []needLog // by rank: helpers are made in this order
	o := Options{Policies: []string{Pinwheel}, Parallel: 1, Polls: true}
	o.NewHelper = func(policy string, o *Options) (predictor.Predictor, helper.SchedulerOptions, error) {
		p, so, err := DefaultHelper(policy, o)
		log := needLog{}
		logs = append(logs, log)
		return &logging{p, log}, so, err
	}
	if _, err := Compare(t.Context(), o, f); err != nil {
		t.Fatal(err)
	}
	o.NewHelper = func(policy string, o *Options) (predictor.Predictor, helper.SchedulerOptions, error) {
		_, so, err := DefaultHelper(policy, o)
		c := &clairvoyant{log: logs[0], done: map[mem.RegionID]int{}}
		logs = logs[1:]
		return c, so, err
	}
	rs, err := Compare(t.Context(), o, f)
	if err != nil {
		t.Fatal(err)
	}
	return rs[len(rs)-1]
}

// TestPerfectPredictionsAreNotWasted uses cache, scheduler and helper to what
// is possible: who knows every need has next to nothing late, and pins little
// more than the bound. In FT.C.16 halves of an array and slices of them are
// used by turns: a slice that was never used before is served by its half.
func TestPerfectPredictionsAreNotWasted(t *testing.T) {
	for name, captured := range map[string]float64{"bt.C.4": 0.99, "ft.B.4": 0.97, "ft.C.16": 0.97, "is.C.4": 0.90, "lu.D.4": 0.99, "sp.D.4": 0.99} {
		t.Run(name, func(t *testing.T) {
			r := clairvoyantly(t, name)
			if late := float64(r.LateRegs) / float64(r.Needs); late > 0.002 || name == "ft.C.16" && late > 0 || *r.CapturedAvg < captured {
				t.Errorf("%d of %d needs late, captured %.3f; want at least %.3f", r.LateRegs, r.Needs, *r.CapturedAvg, captured)
			}
		})
	}
}

// TestSleepsCostLittleOfTheSaving compares helpers that sleep with those that take each event at once.
func TestSleepsCostLittleOfTheSaving(t *testing.T) {
	for _, name := range []string{"bt.B.4", "cg.C.4", "ft.C.16", "is.C.4", "lu.B.4", "lu.D.4", "mg.C.4", "sp.B.4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			captured := func(polls bool) float64 {
				rs, err := Compare(t.Context(), Options{Policies: []string{LeavePinned, Pinwheel, Oracle}, Polls: polls}, nasTrace(t, name))
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(rs, func(r Result) bool { return r.Policy == Pinwheel && r.Rank == AllRanks })
				return *rs[i].CapturedAvg
			}
			if sleeps, polls := captured(false), captured(true); sleeps < 0.97*polls {
				t.Errorf("captured %.3f, and %.3f by helpers that poll", sleeps, polls)
			}
		})
	}
}
