package stack

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Running is a job that has been started. It belongs to one goroutine.
type Running struct {
	job   Job
	cmd   *exec.Cmd
	dir   string // scratch of the job, with its TMPDIR
	start time.Time
	ended chan error
}

// Result is what is known of a job that has ended.
type Result struct {
	Status int           // of the launcher, or of pinwheel; 128 and the number of the signal if one ended it
	Late   bool          // it took longer than it may, and was killed
	Took   time.Duration // from the start of the launcher to its end
	Output string        // standard output and error
	Uses   []Use         // of every process that opened the device and reached its exit
}

// Start starts the job. The caller must call Wait.
func (j Job) Start() (*Running, error) {
	dir, err := os.MkdirTemp("", "live")
	if err != nil {
		return nil, err
	}
	if j.User != 0 {
		if err := os.Chown(dir, j.User, -1); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	r := &Running{job: j, dir: dir, ended: make(chan error, 1)}
	if err := r.exec(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

func (r *Running) exec() error {
	// A file, because a pipe stays open as long as anything that the job leaves behind.
	output, err := os.Create(r.output())
	if err != nil {
		return err
	}
	defer output.Close()
	args, environ := r.job.Command(r.stats())
	r.cmd = exec.Command(args[0], args[1:]...)
	r.cmd.Env = append(environ, "TMPDIR="+r.dir) // Open MPI's session directories
	r.cmd.Stdout, r.cmd.Stderr = output, output
	r.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // Ctrl-C is for who waits for the job
		Pdeathsig: syscall.SIGTERM, // a launcher ends its ranks, too
	}
	r.start = time.Now()
	if err := r.cmd.Start(); err != nil {
		return err
	}
	go func() { r.ended <- r.cmd.Wait() }()
	return nil
}

func (r *Running) output() string { return filepath.Join(r.dir, "output") }
func (r *Running) stats() string  { return filepath.Join(r.dir, "softverbs") }

// Ranks returns the process IDs of the ranks that run now, in no order that
// means anything. A child of a rank counts until it runs another program.
func (r *Running) Ranks() (pids []int) {
	for _, pid := range Descendants(r.cmd.Process.Pid) {
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && program == r.job.Program[0] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Wait waits for the end of the job. After the limit it kills the launcher and
// everything below it, and Result.Late is set. The error is about the test, not the job.
func (r *Running) Wait(limit time.Duration) (Result, error) {
	var res Result
	var err error
	select {
	case err = <-r.ended:
	case <-time.After(limit):
		res.Late = true
		for _, pid := range append(Descendants(r.cmd.Process.Pid), r.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
		err = <-r.ended
	}
	res.Took = time.Since(r.start)
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	output, readErr := os.ReadFile(r.output())
	uses, usesErr := ReadUses(r.stats())
	res.Status, res.Output, res.Uses = statusOf(r.cmd.ProcessState), string(output), uses
	return res, cmp.Or(err, readErr, usesErr, os.RemoveAll(r.dir))
}

// Run is Start and Wait.
func (j Job) Run(limit time.Duration) (Result, error) {
	r, err := j.Start()
	if err != nil {
		return Result{}, err
	}
	return r.Wait(limit)
}

// statusOf is the status that a shell would show.
func statusOf(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return state.ExitCode()
}
