package main

/*
#include "bind.h"
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"pinwheel/internal/cgroup"
	"pinwheel/internal/outfile"
	"pinwheel/internal/report"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/profile"
	"pinwheel/trace"
)

// recorder writes the records of the C side into a .pwt file of this rank.
type recorder struct {
	ring      *C.struct_pw_recorder
	path      string
	out       *trace.Writer
	rank      *trace.RankWriter
	threshold uint64           // bytes; only the ends of such buffers are recorded
	base      uint64           // of the program: call sites are relative to it if it can't be known what is loaded
	code      *profile.Modules // that call sites are in; nil: not known
	err       error            // the first; nothing is written after it
	ends      *endings         // of buffers
	place     trace.Place
	stop      chan struct{}
	done      chan struct{}

	unnamed [2]unnamed // registrations of memory that no call was given: pools, and copies of buffers
}

// startRecording begins to record if that is asked for.
func (s *server) startRecording() {
	if s.set.Record == "" || s.sh.rank < 0 || s.sh.linked != 0 {
		return
	}
	path := s.expand(s.set.Record)
	host, _ := os.Hostname()
	header := trace.Header{Program: report.CommandLine(), Ranks: int(s.sh.size), Source: "pinwheel record on " + host}
	out, err := createTrace(path, header)
	if err != nil {
		s.engine.Warn("record", fmt.Sprintf("%v (see PINWHEEL_RECORD)", err))
		return
	}
	rank, err := out.Rank(int(s.sh.rank))
	ring := C.pw_new_recorder()
	if err != nil || ring == nil {
		_ = out.Abort()
		s.engine.Warn("record", fmt.Sprintf("cannot record: %v", err))
		return
	}
	r := &recorder{ring: ring, path: path, out: out, rank: rank, base: uint64(C.pw_program_base()),
		threshold: uint64(s.sh.threshold),
		stop:      make(chan struct{}), done: make(chan struct{})}
	if r.code, err = profile.ReadModules(loads); err != nil {
		r.code = nil // a profile can't be learned from such a trace
	} else if program := r.code.Program(); program.Build != "" {
		r.err = rank.DefineModule(trace.Module{Name: program.Name, Build: program.Build})
	}
	r.ends = s.newEndings(ring)
	r.place = place()
	r.err = cmp.Or(r.err, rank.DefinePlace(r.place))
	s.sh.recorder = ring
	s.record = r
	go r.run(s)
}

// place returns where this rank runs, as far as that is known.
func place() trace.Place {
	cpus, err := placement.AllowedCPUs()
	if err != nil {
		return trace.Place{}
	}
	quota := cgroup.NewCPUQuota(os.DirFS("/")).Limit().Processors
	return trace.Place{Processors: int(min(float64(len(cpus)), quota)), Ranks: int(settings.LocalRanks())}
}

func createTrace(path string, h trace.Header) (*trace.Writer, error) {
	out, err := outfile.Create(path, outfile.NoWait)
	if err != nil {
		return nil, err
	}
	return trace.NewWriter(out, path, h)
}

// drainInterval is how often the ring is emptied. The ring has room for that much time at 1.6
// million calls a second. Each wake-up of a Go thread takes some 20 us from a rank
// where there is no idle core.
const drainInterval = 20 * time.Millisecond

// maxFlushInterval is how much of a trace is lost at most when a rank is killed. Short
// traces are flushed more often. Each flush restarts the compression.
const maxFlushInterval = time.Second

// run empties the ring until the end.
func (r *recorder) run(s *server) {
	defer close(r.done)
	defer r.ends.close()
	interval := drainInterval
	tick, flush := time.NewTicker(drainInterval), time.NewTimer(interval)
	defer tick.Stop()
	defer flush.Stop()
	for {
		select {
		case <-r.stop:
			r.drain()
			r.close(s)
			return
		case <-flush.C:
			_ = r.out.Flush() // the error sticks
			interval = min(2*interval, maxFlushInterval)
			flush.Reset(interval)
		case <-tick.C:
			r.drain()
			if at32(&r.ring.end).Load() == 0 {
				continue
			}
			r.drain() // records from before the end
			r.close(s)
			at32(&r.ring.ended).Store(1)
			return
		}
	}
}

// finish ends the trace.
func (r *recorder) finish() {
	if r == nil {
		return
	}
	close(r.stop)
	<-r.done
}

// close ends the trace. A trace that lost records ends before them, so that it can be replayed.
func (r *recorder) close(s *server) {
	if r.err != nil {
		_ = r.out.Abort() // r.err is the cause
		s.warn(r.err.Error())
		return
	}
	if err := errors.Join(r.leaveOut(), r.tellUnseen(s), r.tellPlace(), r.defineLibraries(), r.out.Close()); err != nil {
		s.warn(err.Error())
		return
	}
	if at32(&r.ring.failed).Load() != 0 {
		s.warn(r.path + ": the disk or the processor was too slow; the trace ends before the program")
	}
}

// leaveOut notes in the trace which calls the C side could not record.
func (r *recorder) leaveOut() error {
	for why, what := range [C.PW_LEFT_REASONS]string{
		C.PW_LEFT_THREADS: "calls of other threads", C.PW_LEFT_FAILED: "calls that failed",
		C.PW_LEFT_PERSISTENT: "starts of persistent collectives and the like",
		C.PW_LEFT_MESSAGES:   "receives of messages that another thread had found",
		C.PW_LEFT_CANCELLED:  "ends of operations that were cancelled and freed",
		C.PW_LEFT_COMMS:      "calls on communicators too many to be told apart",
	} {
		if n := at64(&r.ring.left_out[why]).Load(); n > 0 {
			if err := r.rank.LeaveOut(what, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellUnseen notes in the trace what could not be recorded, and what of it was counted.
func (r *recorder) tellUnseen(s *server) error {
	all := r.ends.unseen()
	if at32(&s.sh.verbs_used).Load() == 0 {
		all = append(all, trace.Unseen{What: "registrations of memory that no call was given, such as copies that MPI makes: the job used no verbs"})
	}
	for i, what := range [...]string{"registrations of memory that no call was given, such as pools",
		"registrations of copies that MPI makes of buffers, or parts of them"} {
		if u := &r.unnamed[i]; u.times > 0 {
			all = append(all, trace.Unseen{What: what, Times: u.times, Bytes: u.peakBytes})
		}
	}
	var errs []error
	for _, u := range all {
		errs = append(errs, r.rank.Unseen(u))
	}
	return errors.Join(errs...)
}

// tellPlace notes where this rank ran, now that it is known how long the watch took to open.
func (r *recorder) tellPlace() error {
	r.place.WatchNs = r.ends.openingNs
	return r.rank.DefinePlace(r.place)
}

// loads counts how often libraries were loaded and unloaded. It takes some 100 ns.
func loads() uint64 { return uint64(C.pw_loads()) }

func (r *recorder) drain() {
	if r.code != nil {
		r.code.Update()
	}
	for {
		tail := uint64(r.ring.tail)
		if tail == at64(&r.ring.head).Load() {
			return
		}
		if err := r.write(&r.ring.record[tail%C.PW_RECORDS]); err != nil && r.err == nil {
			r.err = err
			at32(&r.ring.failed).Store(1)
		}
		at64(&r.ring.tail).Store(tail + 1)
	}
}

// relative makes an address of code the same in every run.
func (r *recorder) relative(address uint64) uint64 {
	if r.code == nil {
		return address - r.base
	}
	return r.code.Frame(address)
}

// defineLibraries says in which libraries call sites are.
func (r *recorder) defineLibraries() error {
	if r.code == nil {
		return nil
	}
	for _, m := range r.code.Met() {
		if m.Tag == 0 {
			continue // from the beginning
		}
		if err := r.rank.DefineModule(trace.Module{Tag: m.Tag, Name: m.Name, Build: m.Build}); err != nil {
			return err
		}
	}
	return nil
}

// changed writes which buffers a change of mappings has ended before a call.
func (r *recorder) changed(c *C.struct_pw_record, change mem.Range) error {
	for i := range r.unnamed {
		r.unnamed[i].now.Remove(change)
	}
	ended := r.ends.end(change)
	if ended.Empty() {
		return nil
	}
	return r.rank.Append(&trace.Record{
		StartNs: int64(c.start_ns), EndNs: int64(c.start_ns),
		StartCPUNs: int64(c.start_cpu_ns), EndCPUNs: int64(c.start_cpu_ns),
		Addr: ended.Start, Bytes: ended.Len(), Peer: trace.NoPeer, Op: trace.OpUnmap,
	})
}

func (r *recorder) write(c *C.struct_pw_record) error {
	if c.op == C.PW_COMM {
		members := unsafe.Slice((*int32)(*(*unsafe.Pointer)(unsafe.Pointer(&c.addr))), int(c.bytes))
		err := r.rank.DefineComm(int32(c.comm), uint64(c.start_ns), members)
		C.pw_free(c.addr)
		return err
	}
	if r.err != nil {
		return r.err
	}
	if c.op == C.PW_MATCH {
		if err := r.rank.Matched(uint32(c.req), int32(c.peer), int32(c.tag)); !errors.Is(err, trace.ErrLimit) {
			return err
		}
		return nil // the replay matches it as well as it can
	}
	if c.op == C.PW_UNNAMED {
		pages := mem.Range{Start: mem.Addr(c.addr), End: mem.Addr(c.addr + c.bytes)}.PageAligned()
		r.unnamed[c.dir-1].add(pages)
		return nil
	}
	if err := r.ends.before(uint64(c.changes), func(change mem.Range) error { return r.changed(c, change) }); err != nil {
		return err
	}
	if c.dir != C.uint32_t(trace.DirNone) && uint64(c.bytes) >= r.threshold {
		r.ends.used(mem.Range{Start: mem.Addr(c.addr), End: mem.Addr(c.addr + c.bytes)}.PageAligned())
	}
	var frames []uint64
	for _, f := range c.frames {
		if f == 0 {
			break
		}
		frames = append(frames, r.relative(uint64(f)))
	}
	stack, err := r.rank.Stack(frames)
	if err != nil {
		return err
	}
	return r.rank.Append(&trace.Record{
		StartNs: int64(c.start_ns), EndNs: int64(c.end_ns),
		StartCPUNs: int64(c.start_cpu_ns), EndCPUNs: int64(c.end_cpu_ns),
		Addr: mem.Addr(c.addr), Bytes: uint64(c.bytes),
		Peer: int32(c.peer), Tag: int32(c.tag), Comm: int32(c.comm), Req: uint32(c.req),
		Stack: stack, Op: trace.Op(c.op), Dir: trace.Dir(c.dir),
	})
}
