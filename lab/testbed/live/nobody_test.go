package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/stack"
	"pinwheel/vmwatch"
	"pinwheel/vmwatch/watchd"
)

const nobody = 65534

// asNobody runs its arguments as a user without privileges, but for as much pinned memory as root.
var asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
	"--bounding-set=-all,+ipc_lock", "--inh-caps=-all,+ipc_lock", "--ambient-caps=+ipc_lock"}

// A normal user's job is right by each watch that he can have, and says by which.
func TestJobsOfANormalUser(t *testing.T) {
	device, under := withLimits(t, 8*time.Minute)
	if err := testwait.Command(t, asNobody[0], append(asNobody[1:], under, "info")...).Run(); err != nil {
		t.Skip("needs root, and a directory that others can read: ", err)
	}
	dir, err := os.MkdirTemp("", "nobody's job ")
	if err := errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, how := serve(t, filepath.Join(dir, "watch.sock"))
	for _, s := range stack.All {
		t.Run(s.Name, func(t *testing.T) {
			if why := s.Missing(device); why != "" {
				t.Skip(why)
			}
			program := filepath.Join(dir, s.Name)
			if err := s.Compile(program, filepath.Join(sources, "collectives.c")); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct{ watch, service, by string }{
				{"auto", socket, how + ", by the watch service"},
				{"uffd", "off", "uffd"},
				{"none", "off", "none"},
			} {
				t.Run(c.watch, func(t *testing.T) {
					if c.watch == "auto" && socket == "off" {
						t.Skip("no watch service: this kernel has no BPF for it")
					}
					// PINWHEEL_COST=0: what is registered on demand, because no core is idle, needs no watch.
					res, err := stack.Job{
						Stack: s, Device: device, Ranks: ranks, Program: []string{program, "3", "262144"},
						Under: append(asNobody[:len(asNobody):len(asNobody)], under, "run", "--"), User: nobody,
						Environ: []string{"PINWHEEL_WATCH=" + c.watch, "PINWHEEL_WATCHD=" + c.service, "PINWHEEL_WATCH_WAIT=y",
							"PINWHEEL_COST=0", "PINWHEEL_LOG=info", "HOME=/nonexistent"},
					}.Run(100 * time.Second)
					if err != nil || res.Status != 0 || res.Late || !strings.Contains(res.Output, "data right") {
						t.Errorf("%+v, %v", res, err)
					}
					if !strings.Contains(res.Output, "changes of mappings: "+c.by+", helper") {
						t.Errorf("said\n%s\nwant that changes are noticed by %q", res.Output, c.by)
					}
				})
			}
		})
	}
}

// serve is a watch service, and returns its socket, or off where it can't be had, and what it watches by.
func serve(t *testing.T, path string) (socket, mechanism string) {
	s, err := vmwatch.OpenService(vmwatch.ServiceOptions{})
	if errors.Is(err, vmwatch.ErrUnavailable) {
		return "off", ""
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := watchd.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- watchd.Serve(ctx, l, s, func(m string) { t.Log(m) }) }()
	t.Cleanup(func() {
		end()
		if err := errors.Join(testwait.Receive(t, "the end of the service", served), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return path, s.Mechanism().String()
}
