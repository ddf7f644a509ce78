package filesbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stage is what measurements work with.
type stage struct {
	ctx     context.Context
	command string // pinwheel
	dir     string
	source  string
	bytes   map[string]int64
}

// patience is how long a server may take to listen, and to end.
const patience = 20 * time.Second

// daemon is a server that runs.
type daemon struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
}

// start starts a server. What it says goes into its error.
func (s *stage) start(name string, args ...string) (*daemon, error) {
	d := &daemon{cmd: exec.CommandContext(s.ctx, name, args...)}
	d.cmd.Stderr = &d.errs
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(unix.SIGTERM) }
	d.cmd.WaitDelay = patience
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	return d, nil
}

// stop ends the server and returns its processor time, with that of processes that it has waited for.
func (d *daemon) stop() (time.Duration, error) {
	_ = d.cmd.Process.Signal(unix.SIGTERM) // it fails if the server has ended, which Wait tells
	late := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	err := d.cmd.Wait()
	status := d.cmd.ProcessState
	signaled := status.Sys().(syscall.WaitStatus).Signaled()
	if err != nil && !signaled && status.ExitCode() != rsyncSignalled {
		return 0, fmt.Errorf("%w: %s", err, d.errs.String())
	}
	return status.UserTime() + status.SystemTime(), nil
}

// rsyncSignalled is the exit status of rsync after a signal, RERR_SIGNAL of rsync(1).
const rsyncSignalled = 20

// listens waits until a server takes connections, or has ended.
func (d *daemon) listens(address string) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		if d.ended() || time.Now().After(end) {
			return fmt.Errorf("%s does not listen: %w: %s", d.cmd.Path, err, d.errs.String())
		}
	}
}

// ended tells whether the server has ended, and leaves its status to stop.
func (d *daemon) ended() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, d.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// freePort returns the address of a loopback port that nobody has, for now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// client runs a client to its end.
func (s *stage) client(name string, args ...string) (cpu, wall time.Duration, err error) {
	cmd := exec.CommandContext(s.ctx, name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began := time.Now()
	err = cmd.Run()
	wall = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", cmd.String(), err, errs.String())
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall, nil
}

// both runs a client beside a server, which it ends.
func (s *stage) both(d *daemon, name string, args ...string) (cpu, wall time.Duration, err error) {
	cpu, wall, err = s.client(name, args...)
	own, stopErr := d.stop()
	return cpu + own, wall, errors.Join(err, stopErr)
}

// ours serves and gets with pinwheel.
func (s *stage) ours(what, listen string, serve, get []string, dest string) (cpu, wall time.Duration, err error) {
	args := append([]string{"serve", s.source, "--json", "--listen", listen}, serve...)
	cmd := exec.CommandContext(s.ctx, s.command, args...)
	d := &daemon{cmd: cmd}
	cmd.Stderr = &d.errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, 0, err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	var began struct{ Addresses []string }
	if err == nil {
		err = json.Unmarshal(line, &began)
	}
	if err != nil || len(began.Addresses) != 1 {
		_, stopErr := d.stop()
		return 0, 0, errors.Join(fmt.Errorf("pinwheel serve says %q: %w", line, err), stopErr)
	}
	remote := began.Addresses[0] + ":/" + fileName
	if strings.HasPrefix(remote, "tcp:") {
		remote = began.Addresses[0] + "/" + fileName
	}
	args = append([]string{"get", "--progress", "off", "--verify", "none"}, get...)
	if what == Tree {
		remote = strings.TrimSuffix(remote, fileName) + treeName
		args = append(args, "-r")
	}
	cpu, wall, err = s.client(s.command, append(args, remote, dest)...)
	go func() { _, _ = lines.WriteTo(new(bytes.Buffer)) }() // what it counts must not keep it
	own, stopErr := d.stop()
	return cpu + own, wall, errors.Join(err, stopErr)
}

// write writes a file of the configuration of a server.
func (s *stage) write(name, content string) (path string, err error) {
	path = filepath.Join(s.dir, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}
