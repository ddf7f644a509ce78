package main

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/stack"
)

// Each condition has its programs on each stack, with Pinwheel and without; what has none runs as it did.
func TestConditionsHaveTheirRuns(t *testing.T) {
	plain := product(programs, policies, stack.All, []int{2, 4}, conditions[:1])
	all := product(programs, policies, stack.All, []int{2, 4}, conditions)
	seen, runs := map[string]bool{}, map[string]int{}
	for _, c := range all {
		if seen[c.String()] {
			t.Errorf("two combinations are called %s", c)
		}
		seen[c.String()] = true
		runs[c.under.name]++
	}
	if runs[""] != len(plain) {
		t.Errorf("%d runs without a condition, not %d", runs[""], len(plain))
	}
	for _, u := range conditions[1:] {
		want := 0
		for _, name := range u.programs {
			p, err := programNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			if want += 2 * len(stack.All); p.pinwheelOnly {
				want -= len(stack.All)
			}
		}
		if runs[u.name] != want {
			t.Errorf("%s has %d runs, not %d", u.name, runs[u.name], want)
		}
	}
}

// A process is stopped, all of it, and goes on.
func TestStoppedProcessGoesOn(t *testing.T) {
	testwait.Bound(t)
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := stopAndGoOn(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "it has stopped", func() bool { return stopped(cmd.Process.Pid) })
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err := stopAndGoOn(cmd.Process.Pid); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("of a process that has ended: %v", err)
	}
}

// A job that was over before it was disturbed shows nothing.
func TestJobThatIsNotDisturbedIsFoundOut(t *testing.T) {
	c := condition{name: "stopped", disturb: func(int) error { return nil }}
	end := make(chan struct{})
	close(end)
	err := c.disturbAll(func() []int { return nil }, 2, end)
	if err == nil || !strings.Contains(err.Error(), "the job was over") {
		t.Errorf("%v", err)
	}
	if err := c.disturbAll(func() []int { return []int{1, 2} }, 2, make(chan struct{})); err != nil {
		t.Error(err)
	}
}
