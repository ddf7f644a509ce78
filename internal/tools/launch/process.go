package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/internal/signals"
)

// Exec replaces this process by the plan's, so that signals, job control and
// the exit status are its own. It returns only if that failed.
func (p Plan) Exec() error {
	return fmt.Errorf("%s: %w", p.Path, syscall.Exec(p.Path, p.Args, p.Environ))
}

// passed are the signals that Run hands on. Those of job control stop and
// continue this process like its child, as the terminal sends them to both.
var passed = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1,
	unix.SIGUSR2, unix.SIGALRM, unix.SIGXCPU}

// Run starts the plan as a child with the standard streams of this process, and waits
// for its end.
func (p Plan) Run() (*os.ProcessState, error) { return p.RunOn(os.Stdin, os.Stdout, os.Stderr) }

// RunOn starts the plan as a child with these streams and waits for its end. It passes on the
// signals that this process gets, but for those of the terminal, which the
// child has already got. SIGKILL, which can't be passed on, ends the child too.
func (p Plan) RunOn(stdin, stdout, stderr *os.File) (*os.ProcessState, error) {
	cmd := exec.Cmd{Path: p.Path, Args: p.Args, Env: p.Environ, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}}
	runtime.LockOSThread() // whose end is what the child is told of, prctl(2)
	defer runtime.UnlockOSThread()
	arrived := make(chan os.Signal, 64)
	for _, s := range passed {
		if !signal.Ignored(s) { // nohup(1) goes for both
			signal.Notify(arrived, s)
		}
	}
	defer signal.Stop(arrived)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-arrived:
			if s != unix.SIGINT && s != unix.SIGQUIT || !inForeground() {
				_ = cmd.Process.Signal(s) // it may have ended
			}
		case err := <-done:
			if err != nil && !errors.As(err, new(*exec.ExitError)) {
				return nil, fmt.Errorf("%s: %w", p.Path, err)
			}
			return cmd.ProcessState, nil
		}
	}
}

// inForeground reports whether this process is in the foreground group of its
// terminal, where Ctrl-C reaches the child as well.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// EndAs ends this process as another one ended: with its exit status, or by
// the same signal, without a core file of its own.
func EndAs(state *os.ProcessState) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		signals.End(status.Signal())
	}
	os.Exit(state.ExitCode())
}
