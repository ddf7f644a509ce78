package schedule

import (
	"errors"
	"slices"
	"testing"

	"pinwheel/mem"
)

// script is a Decider that answers as it was told to, then with nothing to do, and notes what it hears.
type script struct {
	Decider
	answers []Action
	heard   []heard
	restNs  int64
}

// heard is a call of a script.
type heard struct {
	call   string
	region mem.RegionID
	err    error
}

func (s *script) Next(int64) Action {
	if len(s.answers) == 0 {
		return Action{Kind: Idle}
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a
}

func (s *script) note(call string, id mem.RegionID, err error) {
	s.heard = append(s.heard, heard{call, id, err})
}

func (s *script) Done(a Action, _, _ int64, err error) { s.note("done", a.Region, err) }
func (s *script) Observe(e Event, _ int64)             { s.note("observe", e.Region, nil) }
func (s *script) Missed(m Miss, _ int64)               { s.note("missed", m.Region, nil) }
func (s *script) Forget(id mem.RegionID)               { s.note("forget", id, nil) }
func (s *script) SetShared(bool, int64) float64        { return DefaultCost }
func (s *script) Rest(int64) int64                     { return s.restNs }

// want checks what was heard since the last time.
func (s *script) want(t *testing.T, want ...heard) {
	t.Helper()
	if !slices.Equal(s.heard, want) {
		t.Errorf("the Decider heard %v, want %v", s.heard, want)
	}
	s.heard = nil
}

// loopOf returns a Loop whose driver has nothing to tell, for a Decider with these answers.
func loopOf(answers ...Action) (*Loop, *script) {
	s := &script{answers: answers}
	l := NewLoop(LoopOptions{Decider: s, Missed: func(*Misses, int64) {},
		Gone: func(buf []mem.RegionID) []mem.RegionID { return buf }})
	return &l, s
}

func register(id mem.RegionID) Action   { return Action{Kind: Register, Region: id} }
func deregister(id mem.RegionID) Action { return Action{Kind: Deregister, Region: id} }

// prepares makes the driver prepare regions together, and returns which.
func prepares(l *Loop) (prepared *[][]mem.RegionID) {
	prepared = new([][]mem.RegionID)
	l.Prepare = func(ids []mem.RegionID) { *prepared = append(*prepared, slices.Clone(ids)) }
	return prepared
}

func TestDeregistrationsThatAreDueTogetherAreOneBatch(t *testing.T) {
	const n = maxBatch + 4
	var answers []Action
	for id := range mem.RegionID(n) {
		answers = append(answers, deregister(id+1))
	}
	l, _ := loopOf(answers...)
	prepared := prepares(l)
	for i, want := range answers {
		a, _ := l.Next(0)
		if a != want {
			t.Errorf("action %d: %v, want %v", i, a, want)
		}
		l.Done(a, 0, 1, nil)
	}
	if len(*prepared) == 0 || len((*prepared)[0]) != maxBatch {
		t.Errorf("prepared together: %v, want %d first", *prepared, maxBatch)
	}
	if a, w := l.Next(0); a.Kind != Idle || w.DueNs != Never {
		t.Errorf("after all of them %v, until %v", a, w)
	}
}

// It was named while a batch was made, or becomes due in the middle of one.
func TestRegistrationWaitsForOneDeregistrationAtMost(t *testing.T) {
	idle := Action{Kind: Idle}
	for _, answers := range [][]Action{
		{deregister(1), deregister(2), deregister(3), register(4)},
		{deregister(1), deregister(2), deregister(3), idle, register(4)},
	} {
		l, _ := loopOf(answers...)
		prepares(l)
		for i, want := range []Action{deregister(1), register(4), deregister(2), deregister(3), idle} {
			if a, _ := l.Next(0); a != want {
				t.Errorf("action %d: %v, want %v", i, a, want)
			}
		}
	}
}

func TestParkEndsWhatWasDecided(t *testing.T) {
	l, s := loopOf(deregister(1), deregister(2), deregister(3), register(4))
	prepares(l)
	l.Next(0)
	l.Parked(0)
	s.want(t, heard{"done", 4, errSkipped}, heard{"done", 2, errSkipped}, heard{"done", 3, errSkipped})
	if a, _ := l.Next(0); a.Kind != Idle {
		t.Errorf("after a park %v", a)
	}
}

// What was missed during a park is later than what waits in DQ, and both come before any decision.
func TestLoopThatIsBehindHearsOfMissesOnceDQIsEmpty(t *testing.T) {
	l, s := loopOf()
	missed := []mem.RegionID{8}
	l.Missed = func(m *Misses, _ int64) {
		for _, id := range missed {
			m.Add(Miss{Region: id, NeedNs: 0})
		}
		missed = nil
	}
	l.Gone = func(buf []mem.RegionID) []mem.RegionID { return append(buf, 7) }
	l.Parked(0)
	event := Event{Pages: 1}
	event.Region = 7
	if looks := l.Begin(0); !looks || !l.Observe(&event, 0) {
		t.Error("it rests, or is not behind")
	}
	l.Begin(0)
	l.Emptied(0)
	s.want(t, heard{"observe", 7, nil}, heard{"forget", 7, nil}, heard{"missed", 8, nil})
	missed = []mem.RegionID{9}
	if l.Begin(0); l.Observe(&event, 0) {
		t.Error("it is behind although DQ was empty")
	}
	s.want(t, heard{"missed", 9, nil}, heard{"observe", 7, nil})
}

func TestLoopLeavesDQAloneWhileTheDeciderSaysSo(t *testing.T) {
	l, s := loopOf()
	l.SetShared(true, 1, 0)
	s.restNs = second
	if looks := l.Begin(0); looks || l.RestNs != second {
		t.Fatalf("it looks although it is to rest, or rests until %d", l.RestNs)
	}
	if ns := l.SleepNs(0, Waiting{DueNs: Never, ReviewNs: Never}); ns != l.RestNs {
		t.Errorf("it sleeps for %d ns, and DQ is to be left alone for %d", ns, l.RestNs)
	}
	if ns := l.SleepNs(0, Waiting{DueNs: ms, ReviewNs: Never}); ns > ms {
		t.Errorf("it sleeps for %d ns with a registration due in a millisecond", ns)
	}
	if !l.behind {
		t.Error("after a rest it is not behind")
	}
	s.restNs = 3 * second
	if l.Begin(ms) || !l.Begin(second) || l.Begin(second) || l.RestNs != s.restNs {
		t.Errorf("it does not look once after a rest, and rests until %d", l.RestNs)
	}
	if l.SetShared(false, 1, second); l.RestNs != 0 {
		t.Error("with a core of its own it rests on")
	}
}

var errDevice = errors.New("device is gone")

// fail lets so many deregistrations fail, the last of them at nowNs.
func fail(l *Loop, times int, nowNs int64) {
	for range times {
		l.Done(deregister(1), nowNs-1, nowNs, errDevice)
	}
}

func TestPausesAfterFailuresGrowAndEnd(t *testing.T) {
	l, s := loopOf()
	paused := func(nowNs int64, kind ActionKind) bool {
		s.heard, s.answers, l.skipped = nil, []Action{{Kind: kind, Region: 1}}, Action{}
		a, w := l.Next(nowNs)
		skipped := slices.Equal(s.heard, []heard{{"done", 1, errSkipped}})
		if skipped && (a.Kind != Idle || w.DueNs > nowNs) {
			t.Errorf("a skipped action: %v, waits until %d", a, w.DueNs)
		}
		return skipped
	}
	fail(l, failuresBeforeBackoff, 1)
	if paused(1, Deregister) {
		t.Errorf("it pauses after %d failures", failuresBeforeBackoff)
	}
	for n, wantNs := range []int64{2 * minBackoffNs, 4 * minBackoffNs, 8 * minBackoffNs} {
		fail(l, 1, 1)
		if !paused(wantNs, Deregister) || paused(wantNs+1, Deregister) {
			t.Errorf("pause %d is not %d ns", n, wantNs)
		}
	}
	fail(l, 100, 1)
	if !paused(maxBackoffNs, Deregister) || paused(maxBackoffNs+1, Deregister) {
		t.Errorf("the longest pause is not %d ns", maxBackoffNs)
	}
	if paused(1, Register) {
		t.Error("registrations are held up, too")
	}
	if l.Done(deregister(1), 0, 1, nil); paused(1, Deregister) {
		t.Error("it still pauses after a success")
	}
}

func TestDeciderThatInsistsIsMadeToWait(t *testing.T) {
	l, s := loopOf(deregister(1), deregister(1))
	fail(l, failuresBeforeBackoff+1, 1)
	s.heard = nil
	if _, w := l.Next(2); w.DueNs > 2 {
		t.Errorf("the first time it waits until %d, although there may be more to do", w.DueNs)
	}
	if _, w := l.Next(2); w.DueNs != 1+2*minBackoffNs {
		t.Errorf("the second time it waits until %d, want the end of the pause", w.DueNs)
	}
	s.want(t, heard{"done", 1, errSkipped}, heard{"done", 1, errSkipped})
}

func TestRefusalsAreNoFailures(t *testing.T) {
	for _, c := range []struct {
		err    error
		failed bool
		want   []heard
	}{
		{nil, false, []heard{{"done", 1, nil}}},
		{ErrAlready, false, []heard{{"done", 1, nil}}},
		{ErrInUse, false, []heard{{"done", 1, ErrInUse}}},
		{ErrGone, false, []heard{{"done", 1, ErrGone}, {"forget", 1, nil}}},
		{errDevice, true, []heard{{"done", 1, errDevice}}},
	} {
		l, s := loopOf()
		for range failuresBeforeBackoff + 1 {
			s.heard = nil
			if failed := l.Done(deregister(1), 0, 1, c.err); failed != c.failed {
				t.Errorf("%v: failed %t", c.err, failed)
			}
		}
		s.want(t, c.want...)
		if paused := l.pauses[Deregister].retryNs > 0; paused != c.failed {
			t.Errorf("%v: pauses %t", c.err, paused)
		}
	}
}

// A registration that was planned tells how exact its start is; one that an event made due has no moment of its own.
func TestOnlyPlannedRegistrationsHaveAMoment(t *testing.T) {
	l, _ := loopOf(Action{Kind: Wait, UntilNs: 50 * ms}, register(1), register(2))
	l.Next(0)
	l.Next(50*ms + 7)
	if offNs, planned := l.Began(50*ms + 7); !planned || offNs != 7 {
		t.Errorf("planned %t, %d ns late", planned, offNs)
	}
	l.Next(50*ms + 8)
	if _, planned := l.Began(50*ms + 8); planned {
		t.Error("the one after it was planned, too")
	}
	l, _ = loopOf(Action{Kind: Wait, UntilNs: 50 * ms}, register(1))
	l.Next(0)
	l.Next(ms)
	if _, planned := l.Began(ms); planned {
		t.Error("it was planned, and began 49 ms early")
	}
}

// A sleep can't be trusted to end at once: what is due before that begins now, at its moment.
func TestRegistrationThatIsDueSoonBeginsNow(t *testing.T) {
	for _, exact := range []bool{false, true} {
		l, s := loopOf(Action{Kind: Wait, UntilNs: 80 * us}, register(1))
		if !exact {
			l.Pacer = NewPacer(0, 10*ms)
		}
		a, w := l.Next(0)
		if a.Kind == Register == exact || exact && w.DueNs != 80*us {
			t.Errorf("sleeps end on time %t: %v, waits until %d", exact, a, w.DueNs)
		}
		if offNs, planned := l.Began(0); !planned || offNs != -80*us || (len(s.answers) == 0) == exact {
			t.Errorf("sleeps end on time %t: planned %t, %d ns off", exact, planned, offNs)
		}
	}
}
