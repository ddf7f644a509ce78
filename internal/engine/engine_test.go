package engine

import (
	"errors"
	"strings"
	"testing"

	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestRegistrarTellsTheHelperWhereThereWasNothingToDo(t *testing.T) {
	cache, err := regcache.New(sim.New(sim.Options{}), regcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	thread, err := cache.Thread()
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	ref, _, err := thread.Acquire(mem.Range{Start: 1 << 20, End: 1<<20 + 1<<16}, verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	r, id := Registrar(Single{cache}), ref.ID()
	expect := func(what string, err, want error) {
		if t.Helper(); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	expect("register what is registered", r.Register(id), schedule.ErrAlready)
	expect("deregister what is in use", r.Deregister(id), schedule.ErrInUse)
	thread.Release(ref)
	expect("deregister", r.Deregister(id), nil)
	expect("deregister again", r.Deregister(id), schedule.ErrAlready)
	expect("register", r.Register(id), nil)
	expect("register another", r.Register(id+1000), schedule.ErrGone)
	expect("register in a cache that was dropped", Registrar(Single{}).Register(id), schedule.ErrGone)
	if err := cache.Close(); err != nil {
		t.Fatal(err)
	}
	expect("register in a cache that was closed", r.Register(id), schedule.ErrGone)
}

func TestUserIsToldOnceOfEachKind(t *testing.T) {
	var warned, details []string
	e := New(func(s string) { warned = append(warned, s) }, func(s string) { details = append(details, s) })
	e.Warn("placer", "two\nlines")
	e.Warn("placer", "again")
	f := fault.Of("trained fault")
	for range 2 {
		e.Fault(f, "going on")
		e.Fault(f, "going on otherwise")
	}
	if len(warned) != 2 || warned[0] != "two; lines" || !strings.Contains(warned[1], "trained fault; going on (") {
		t.Errorf("warned %q, want one line of each kind", warned)
	}
	if len(details) != 2 || !strings.Contains(details[1], "going on otherwise\n") {
		t.Errorf("details %q, want those of each consequence", details)
	}
	New(func(string) { panic("no logger") }, nil).Warn("any", "to standard error")
}

func TestEngineWithoutHelperHasNothingToReport(t *testing.T) {
	e := New(func(string) {}, nil)
	for _, o := range []HelperOptions{{Policy: "lru"}, {Policy: "pinwheel", IdlePolicy: "off"}} {
		if e.StartHelper(o) || e.Helped() {
			t.Errorf("%+v: there is a helper", o)
		}
	}
	r := e.Report(regcache.Stats{Hits: 3}, func(predictor.CallSite) (string, string) { return "", "" })
	if r.Helper != "none" || r.Hits != 3 || r.Predictions != 0 || r.Sites != nil || r.PID == 0 {
		t.Errorf("report %+v", r)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
