package profile

import (
	"os"
	"testing"

	"pinwheel/internal/testwait"
)

const firstEnv = "PROFILE_TEST_FIRST"

func TestMain(m *testing.M) {
	if job := os.Getenv(firstEnv); job != "" { // another rank, which meets the trouble first
		if (Node{Job: job, Ranks: 2}).First(someKey(), "load") {
			testwait.Ready()
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestOneRankOfANodeTells(t *testing.T) {
	testwait.Bound(t)
	n := testNode(t, 2)
	_, kill := testwait.Peer(t, firstEnv+"="+n.Job)
	if n.First(someKey(), "load") {
		t.Error("two ranks tell")
	}
	for range 2 {
		if !n.First(someKey(), "save") {
			t.Error("nobody tells of other trouble")
		}
	}
	if alone := (Node{Job: n.Job, Ranks: 1}); !alone.First(someKey(), "load") {
		t.Error("nobody tells where there is one rank")
	}
	kill()
	if !n.First(someKey(), "load") {
		t.Error("nobody tells after the first has ended")
	}
}

// It is deferred before there is a participant.
func TestNobodyMayLeave(t *testing.T) {
	var p *Participant
	p.Leave()
}
