package schedule

// LateUses are uses that found their region deregistered by the helper, by why that was so.
type LateUses struct {
	GoneOn int64 `json:"gone_on,omitempty"` // released after the program had gone on without it
	AtOnce int64 `json:"at_once,omitempty"` // released with nothing known of it, as the policy of Li et al. does
	// OnDemand were released to be registered by that use: keeping the region would have cost more.
	OnDemand int64 `json:"on_demand,omitempty"`

	Sooner int64 `json:"sooner,omitempty"` // needed sooner than predicted
	Slow   int64 `json:"slow,omitempty"`   // due, but not registered in time
}

// Add adds others.
func (l *LateUses) Add(o LateUses) {
	l.GoneOn += o.GoneOn
	l.AtOnce += o.AtOnce
	l.OnDemand += o.OnDemand
	l.Sooner += o.Sooner
	l.Slow += o.Slow
}

// Sum is how many there are.
func (l LateUses) Sum() int64 {
	return l.GoneOn + l.AtOnce + l.OnDemand + l.Sooner + l.Slow
}

// lateCause is why a use of a region will be late, if it comes before the region is registered again.
type lateCause uint8

const (
	notLate lateCause = iota
	lateGoneOn
	lateAtOnce
	lateOnDemand
	latePredicted // to be told apart when the use comes: one of the next two
	lateSooner
	lateSlow
)

func (l *LateUses) count(c lateCause) {
	switch c {
	case lateGoneOn:
		l.GoneOn++
	case lateAtOnce:
		l.AtOnce++
	case lateOnDemand:
		l.OnDemand++
	case lateSooner:
		l.Sooner++
	case lateSlow:
		l.Slow++
	}
}

// Late returns the uses that were late until now.
func (s *Scheduler) Late() LateUses { return s.late }

// blame finds out why a region that was released for a prediction was not registered when its need came. It is called
// before RQ forgets when that was to be.
func (s *Scheduler) blame(r *region, needNs int64) {
	if r.late != latePredicted {
		return
	}
	dueNs, queued := s.due.get(r)
	r.late = lateSooner
	if r.underWay || queued && needNs+s.register.ns(r.pages) >= dueNs {
		r.late = lateSlow
	}
}
