package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc"
)

// Names of the ends of a connection of package files.
const (
	serverName = "server"
	readerName = "reader"
)

type readCmd struct {
	Address string        `arg:"" help:"Of the server."`
	Names   []string      `arg:"" optional:"" help:"Files to read. Default: those that standard input names, a line each."`
	Clients int           `default:"1" help:"Clients that read at the same time, each with a node of its own."`
	Time    time.Duration `help:"How long each file is read, again and again. Default: once."`
	Window  int64         `default:"33554432" help:"Bytes of the window of each client."`
	Unix    string        `help:"Directory for the sockets of clients that share memory with the server."`
	NoRDMA  bool          `help:"Have the bytes go over TCP."`
}

// reading is what a readCmd prints for each file.
type reading struct {
	Seconds float64 `json:"s"`     // until the last client has ended
	Gets    int64   `json:"gets"`  // of all clients
	Bytes   []int64 `json:"bytes"` // that each client has got within the time
	Errors  int64   `json:"errors"`
	Error   string  `json:"error,omitempty"` // the first
	Way     string  `json:"way"`
}

// Run implements the command read.
func (c *readCmd) Run() error {
	ctx := context.Background() // whoever has started this process ends it
	readers := make([]*files.Client, c.Clients)
	for i := range readers {
		n, err := vmmc.Open(c.node(i))
		if err != nil {
			return err
		}
		defer n.Close() // the readings count
		readers[i], err = files.Dial(ctx, n, c.Address, files.ClientOptions{
			Peers: vmmc.Permissions{Peers: []string{serverName}}, WindowBytes: c.Window,
		})
		if err != nil {
			return err
		}
		defer readers[i].Close()
	}
	out := json.NewEncoder(os.Stdout)
	names, in := slices.Values(c.Names), bufio.NewScanner(os.Stdin)
	if len(c.Names) == 0 {
		names = lines(in)
	}
	for name := range names {
		if c.Time > 0 {
			_ = readFile(ctx, readers[0], name, new(atomic.Int64), time.Now()) // the reading has errors
		}
		if err := out.Encode(c.read(ctx, readers, name)); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("names of standard input: %w", err)
	}
	return nil
}

// lines are those of a scanner, until it ends.
func lines(from *bufio.Scanner) iter.Seq[string] {
	return func(yield func(string) bool) {
		for from.Scan() && yield(from.Text()) {
		}
	}
}

func (c *readCmd) node(i int) vmmc.Options {
	o := tcpNode(readerName)
	o.NoRDMA = c.NoRDMA
	if c.Unix != "" {
		o.Token, o.Listen = "", []string{fmt.Sprintf("unix:%s/%d", c.Unix, i)}
	}
	return o
}

// read has all readers get a file, again and again.
func (c *readCmd) read(ctx context.Context, readers []*files.Client, name string) (r reading) {
	var gets, failed atomic.Int64
	var first atomic.Error
	bytes := make([]atomic.Int64, len(readers))
	began := time.Now()
	until := began.Add(c.Time)
	var all sync.WaitGroup
	for i, reader := range readers {
		all.Go(func() {
			for {
				if err := readFile(ctx, reader, name, &bytes[i], until); err != nil {
					failed.Inc()
					first.CompareAndSwap(nil, err)
					return // the others show what that means
				}
				gets.Inc()
				if !time.Now().Before(until) {
					return
				}
			}
		})
	}
	all.Wait()
	r = reading{Seconds: time.Since(began).Seconds(), Gets: gets.Load(), Errors: failed.Load(), Way: readers[0].Transport()}
	if err := first.Load(); err != nil {
		r.Error = err.Error()
	}
	for i := range bytes {
		r.Bytes = append(r.Bytes, bytes[i].Load())
	}
	return r
}

// readFile gets a file, and counts the bytes that come in time.
func readFile(ctx context.Context, c *files.Client, name string, count *atomic.Int64, until time.Time) error {
	f, err := c.Open(ctx, name)
	if err != nil {
		return err
	}
	_, err = f.CopyRange(ctx, counter{count, until}, 0, f.Info().Size())
	return errors.Join(err, f.Close())
}

type counter struct {
	count *atomic.Int64
	until time.Time
}

func (c counter) Write(p []byte) (int, error) {
	if time.Now().Before(c.until) {
		c.count.Add(int64(len(p)))
	}
	return len(p), nil
}
