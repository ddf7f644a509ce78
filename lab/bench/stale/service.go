package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"pinwheel/vmwatch"
	"pinwheel/vmwatch/watchd"
)

// service is the column of what the watch service of the node does for processes that may not load programs.
const service = "service"

const serviceVariable = "PINWHEEL_WATCHD"

// watchBy opens a Watcher as a column says.
func watchBy(mechanism string) (*vmwatch.Watcher, error) {
	if mechanism != service {
		return vmwatch.Open(vmwatch.Options{Mechanism: mechanism})
	}
	path := cmp.Or(os.Getenv(serviceVariable), vmwatch.ServicePath)
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf", Service: path})
	if err == nil && !w.Report().Service {
		_ = w.Close()
		err = fmt.Errorf("no watch service at %s", path)
	}
	return w, err
}

// serve is a watch service for the cells, until end. It returns the variable by which they find it.
func serve() (variable string, end func(), err error) {
	s, err := vmwatch.OpenService(vmwatch.ServiceOptions{})
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "stale")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, "watch.sock")
	l, err := watchd.Listen(path)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watchd.Serve(ctx, l, s, func(m string) { fmt.Fprintln(os.Stderr, m) })
	}()
	return serviceVariable + "=" + path, func() {
		cancel()
		<-ended
		_ = s.Close()
		os.RemoveAll(dir)
	}, nil
}
