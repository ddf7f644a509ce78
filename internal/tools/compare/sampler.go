package compare

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// interval is how often the pinned memory of each rank is read.
const interval = 10 * time.Millisecond

// sample is the pinned memory of a process at a time of CLOCK_MONOTONIC.
type sample struct{ ns, bytes int64 }

// sampler reads the pinned memory of the ranks on this node that the meter has announced
// in a directory. Its goroutine owns all fields until done is closed.
type sampler struct {
	dir     string
	prefix  string // of the files of this node's ranks
	status  map[int]*os.File
	samples map[int][]sample // by process ID
	stop    chan struct{}
	done    chan struct{}
}

func startSampler(dir string) *sampler {
	var host unix.Utsname
	_ = unix.Uname(&host) // it does not fail
	s := &sampler{dir: dir, prefix: fmt.Sprintf("%s%s-", meterPrefix, unix.ByteSliceToString(host.Nodename[:])),
		status: map[int]*os.File{}, samples: map[int][]sample{}, stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// end stops the sampler and returns what it has seen.
func (s *sampler) end() map[int][]sample {
	close(s.stop)
	<-s.done
	return s.samples
}

func (s *sampler) run() {
	defer close(s.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			for _, f := range s.status {
				_ = f.Close() // only read from
			}
			return
		case <-tick.C:
			s.look()
			s.read()
		}
	}
}

// look finds ranks that have been announced.
func (s *sampler) look() {
	entries, _ := os.ReadDir(s.dir) // the next look may find them
	for _, e := range entries {
		pid, here := processIn(e.Name(), s.prefix)
		if _, known := s.samples[pid]; !here || known {
			continue
		}
		s.samples[pid] = nil
		if f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "status")); err == nil {
			s.status[pid] = f
		}
	}
}

// processIn returns the process ID in the name of a meter's file, if it is of this node.
func processIn(name, prefix string) (pid int, here bool) {
	rest, here := strings.CutPrefix(name, prefix)
	pid, err := strconv.Atoi(strings.TrimSuffix(rest, ".json"))
	return pid, here && err == nil
}

func (s *sampler) read() {
	var text [4096]byte // proc_pid_status(5) has about 1500 bytes
	for pid, f := range s.status {
		n, _ := f.ReadAt(text[:], 0) // an error is that the text is shorter, or that the process has ended
		pinned, ok := pinnedBytes(text[:n])
		if !ok {
			_ = f.Close() // only read from
			delete(s.status, pid)
			continue
		}
		s.samples[pid] = append(s.samples[pid], sample{monotonicNs(), pinned})
	}
}

// pinnedBytes returns VmPin and VmLck: memory that the kernel pins for a device, and memory
// that is locked because the device can only read it. A zombie has neither.
func pinnedBytes(status []byte) (sum int64, ok bool) {
	for _, field := range []string{"\nVmLck:", "\nVmPin:"} {
		_, rest, found := bytes.Cut(status, []byte(field))
		line, _, _ := bytes.Cut(rest, []byte(" kB"))
		kb, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
		if !found || err != nil {
			return 0, false
		}
		sum += kb << 10
	}
	return sum, true
}

func monotonicNs() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // Linux always has it
	return t.Nano()
}

// pinned is the pinned memory of a process between two times, in bytes.
type pinned struct {
	mean  float64 // weighed by time; between samples memory is taken to change evenly
	peak  float64
	least float64 // after the peak
}

// pinnedBetween makes the figures of samples between two times.
func pinnedBetween(samples []sample, begin, end int64) (p pinned) {
	area, covered := 0.0, 0.0
	for i, s := range samples {
		if s.ns >= begin && s.ns <= end {
			if bytes := float64(s.bytes); bytes > p.peak {
				p.peak, p.least = bytes, bytes
			} else {
				p.least = min(p.least, bytes)
			}
		}
		if i+1 == len(samples) {
			break
		}
		next := samples[i+1]
		if from, to := max(s.ns, begin), min(next.ns, end); from < to {
			area += float64(s.bytes+next.bytes) / 2 * float64(to-from)
			covered += float64(to - from)
		}
	}
	if p.mean = p.peak; covered > 0 {
		p.mean = area / covered
	}
	return p
}
