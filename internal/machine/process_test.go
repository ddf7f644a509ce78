package machine

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestProcessIsItselfUntilItEnds(t *testing.T) {
	self, err := ReadProcess(os.Getpid())
	if err != nil || self.Parent != os.Getppid() || self.Name == "" || self.StartTicks == 0 {
		t.Errorf("this process: %+v, %v", self, err)
	}
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	child, err := ReadProcess(cmd.Process.Pid)
	if err != nil || child.Parent != os.Getpid() || child.StartTicks < self.StartTicks {
		t.Errorf("a child: %+v, %v", child, err)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if p, err := ReadProcess(cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("a child that has ended: %+v, %v", p, err)
	}
}
