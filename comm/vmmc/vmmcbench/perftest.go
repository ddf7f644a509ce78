package vmmcbench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"pinwheel/verbs/rdma"
)

// Who measures messages between two other processes, which have all their memory registered before they begin.
const (
	perftest = "perftest" // linux-rdma/perftest
	ucxPut   = "UCX put"  // ucx_perftest
)

// program is one that does.
type program struct {
	name    string
	options func(device string, port int) (args, env []string)
	line    string                            // how the line of its result begins; empty: with the size
	column  int                               // of its result; the first is 0
	ns      func(v float64, size int) float64 // that a message takes, if the column says v
}

var (
	// t_typical, in us: half of the way there and back.
	writeLatency = program{"ib_write_lat", ofPerftest, "", 4, func(v float64, _ int) float64 { return v * 1e3 }}
	// The average, in MiB a second.
	writeBandwidth = program{"ib_write_bw", ofPerftest, "", 3, nsPerMessage}
	// The overall bandwidth, in MiB a second.
	putBandwidth = program{"ucx_perftest", ofUCX, "Final:", 6, nsPerMessage}
)

// nsPerMessage is how long a message of a size takes at v MiB a second.
func nsPerMessage(v float64, size int) float64 { return float64(size) * 1e9 / (v * (1 << 20)) }

func ofPerftest(device string, port int) (args, env []string) {
	return []string{"-d", device, "-i", strconv.Itoa(port), "-F"}, nil
}

// ofUCX leaves UCX no way but the device.
func ofUCX(device string, port int) (args, env []string) {
	env = []string{"UCX_TLS=rc,ud", fmt.Sprintf("UCX_NET_DEVICES=%s:%d", device, port)}
	return []string{"-t", "ucp_put_bw", "-w", "100"}, env // 100 messages to warm up
}

// equipment is what this machine has to measure with.
type equipment struct{ rdma, perftest, ucx bool }

func lookForEquipment() (e equipment) {
	devices, err := rdma.Devices()
	if err != nil {
		return e
	}
	installed := func(p program) bool { _, err := exec.LookPath(p.name); return err == nil }
	e.rdma, e.perftest = true, installed(writeLatency) && installed(writeBandwidth)
	// UCX does not take every device: it wants a file of it in /dev.
	known, err := exec.Command("ucx_info", "-d").Output()
	e.ucx = err == nil && installed(putBandwidth) &&
		strings.Contains(string(known), fmt.Sprintf(" %s:%d\n", devices[0].Name, devices[0].Port))
	return e
}

// perftestTime bounds a run beyond the time that it measures for.
const perftestTime = 30 * time.Second

// errNothing is the error of a result of 0, which perftest prints now and then on a machine that does much else.
var errNothing = errors.New("measured nothing")

// run measures messages of a size.
func (p *program) run(size int) func(*stage, time.Duration) (figures, error) {
	once := p.once(size)
	return func(s *stage, about time.Duration) (f figures, err error) {
		for range 5 {
			if f, err = once(s, about); !errors.Is(err, errNothing) {
				break
			}
		}
		return f, err
	}
}

// once runs the program at both ends. Its processor time includes its preparations, and is not given.
func (p *program) once(size int) func(*stage, time.Duration) (figures, error) {
	return func(s *stage, about time.Duration) (f figures, err error) {
		devices, err := rdma.Devices()
		if err != nil {
			return f, err
		}
		port, err := freePort()
		if err != nil {
			return f, err
		}
		each := 10*time.Microsecond + time.Duration(size)*time.Nanosecond/10 // about what a message takes
		messages := min(max(int(about/each), 1000), 1_000_000)
		ctx, cancel := context.WithTimeout(s.ctx, about+perftestTime)
		defer cancel()
		args, env := p.options(devices[0].Name, int(devices[0].Port))
		args = append(args, "-p", port, "-n", strconv.Itoa(messages), "-s", strconv.Itoa(size))
		command := func(args ...string) *exec.Cmd {
			c := exec.CommandContext(ctx, p.name, args...)
			c.Env = append(os.Environ(), env...)
			return c
		}
		server := command(args...)
		if err := server.Start(); err != nil {
			return f, err
		}
		defer func() { cancel(); _ = server.Wait() }()
		var out []byte
		for { // until the server listens
			var stderr bytes.Buffer
			client := command(append(args, "127.0.0.1")...)
			client.Stderr = &stderr
			if out, err = client.Output(); err == nil {
				break
			}
			if ctx.Err() != nil {
				return f, ctx.Err()
			}
			if said := string(out) + stderr.String(); !strings.Contains(said, "connect") {
				return f, fmt.Errorf("%s: %w: %s", p.name, err, strings.TrimSpace(said))
			}
			time.Sleep(20 * time.Millisecond)
		}
		v, err := p.result(string(out), size)
		if err != nil {
			return f, err
		}
		return figures{ns: p.ns(v, size)}, nil
	}
}

// result finds the column in what the program printed.
func (p *program) result(out string, size int) (float64, error) {
	first := cmp.Or(p.line, strconv.Itoa(size))
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > p.column && f[0] == first {
			v, err := strconv.ParseFloat(f[p.column], 64)
			if err == nil && !(v > 0) {
				err = errNothing
			}
			if err != nil {
				return 0, fmt.Errorf("%s says %q: %w", p.name, strings.TrimSpace(line), err)
			}
			return v, nil
		}
	}
	return 0, fmt.Errorf("%s printed no line for %d bytes: %s", p.name, size, strings.TrimSpace(out))
}

// freePort returns a TCP port that nobody has.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
