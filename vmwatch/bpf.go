package vmwatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

//go:generate -command compile clang -O2 -g -mcpu=v3 -target bpf -I/usr/include/x86_64-linux-gnu -Wall -fdebug-compilation-dir=.
//go:generate compile -D__TARGET_ARCH_x86 -c bpf/watch.bpf.c -o bpf/watch_x86.o
//go:generate compile -D__TARGET_ARCH_arm64 -c bpf/watch.bpf.c -o bpf/watch_arm64.o
//go:generate llvm-strip -g bpf/watch_x86.o bpf/watch_arm64.o
//go:generate sh -c "cat bpf/watch.bpf.c bpf/*.h | sha256sum > bpf/watch.sum"

// hook is a program and what it is attached to: the event of a tracepoint, the name of a raw
// tracepoint, or what its section says.
type hook struct{ program, event string }

// bpfHooks are the hooks of each mechanism, in alternatives for different kernels: the first that
// loads is taken.
var bpfHooks = map[Mechanism][][]hook{
	Fentry: {
		// since Linux 6.16
		hooks("zap_enter", "zap_exit", "zap_huge_enter", "zap_huge_exit", "move_enter_pmc", "move_exit_pmc"),
		hooks("zap_enter", "zap_exit", "zap_huge_enter", "zap_huge_exit", "move_enter", "move_exit"),
	},
	TPS: {append(perCall("mmap", "munmap", "brk", "mremap", "madvise", "shmat", "process_madvise"), uringSubmit)},
	TP:  {append(hooks("any_enter", "any_exit"), uringSubmit)},
}

var uringSubmit = hook{"uring_submit", "io_uring_submit_req"}

func hooks(programs ...string) (all []hook) {
	for _, p := range programs {
		all = append(all, hook{program: p})
	}
	return all
}

// perCall returns the hooks of system calls, which share two programs: the verifier takes 1 ms for each.
func perCall(calls ...string) (all []hook) {
	for _, c := range calls {
		all = append(all, hook{"call_enter", "sys_enter_" + c}, hook{"call_exit", "sys_exit_" + c})
	}
	return all
}

// allTypes has all types of the running kernel, for programs that are attached to one of its functions.
// To read them takes 20 ms.
var allTypes = btf.NewCache()

// bpfNotifier is this process's part in the programs of one mechanism, which others of its job may have
// loaded. They live as long as anyone has their descriptors: the process's end closes them too.
type bpfNotifier struct {
	bpfLog
	space uint64 // the address space, by which programs find the log; 0: they don't have it yet
	bpfObjects
	coll *ebpf.Collection // which has the maps and programs of bpfObjects; nil if another process has loaded them
}

// bpfObjects are the descriptors of a set of programs at work that a process needs.
type bpfObjects struct {
	logs, captured, inspect int // two maps and a program
	links                   []io.Closer
}

// openBPF loads and attaches the programs of a mechanism.
func openBPF(m Mechanism, pages *pageReader) (*bpfNotifier, error) {
	if len(bpfObject) == 0 {
		return nil, fmt.Errorf("no BPF programs for %s", runtime.GOARCH)
	}
	if m != TP {
		if err := checkPreemption(); err != nil {
			return nil, err
		}
	}
	if m == Fentry {
		if err := probeFentry(); err != nil {
			return nil, loadError(err)
		}
	}
	if m == TPS && x32Enabled() {
		return nil, errors.New("this kernel runs x32 system calls, which the per-call tracepoints don't see")
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(bpfObject))
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	if v := spec.Variables["page_mask"]; v != nil { // where not all machines have pages of one size
		if err := v.Set(mem.PageSize - 1); err != nil {
			return nil, fmt.Errorf("set the size of pages: %w", err)
		}
	}
	o := ebpf.CollectionOptions{Cache: allTypes}
	if o.Programs.KernelTypes, err = readKernelTypes(spec.Types); err != nil {
		o.Programs.KernelTypes = nil // the library reads all of them
	}
	for _, hooks := range bpfHooks[m] {
		n, loadErr := loadBPF(spec.Copy(), hooks, o, pages)
		if loadErr == nil {
			return n, nil
		}
		err = loadErr
		if errors.Is(err, unix.EPERM) {
			break // another variant won't be allowed either
		}
	}
	return nil, err
}

// A tracepoint takes 64 programs (BPF_TRACE_MAX_PROGS, <linux/bpf.h> of the kernel), with those that the kernel has still
// to detach after their processes have ended. It detaches one in some 50 ms.
const (
	detachPatience = 2 * time.Second
	detachPause    = 20 * time.Millisecond
)

// loadBPF loads and attaches programs for the calling process.
func loadBPF(spec *ebpf.CollectionSpec, hooks []hook, o ebpf.CollectionOptions, pages *pageReader) (_ *bpfNotifier, err error) {
	want := map[string]bool{"inspect": true}
	for _, h := range hooks {
		want[h.program] = true
	}
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !want[name] })
	coll, err := ebpf.NewCollectionWithOptions(spec, o)
	if err != nil {
		return nil, loadError(err)
	}
	n := &bpfNotifier{coll: coll, bpfObjects: bpfObjects{
		logs: coll.Maps["logs"].FD(), captured: coll.Maps["captured"].FD(), inspect: coll.Programs["inspect"].FD(),
	}}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if err := n.enrol(pages); err != nil {
		return nil, err
	}
	patience := time.Now().Add(detachPatience)
	for _, h := range hooks {
		l, err := attach(coll.Programs[h.program], h.event)
		for errors.Is(err, unix.E2BIG) && time.Now().Before(patience) {
			time.Sleep(detachPause)
			l, err = attach(coll.Programs[h.program], h.event)
		}
		if err != nil {
			return nil, fmt.Errorf("attach %s %s: %w", h.program, h.event, err)
		}
		n.links = append(n.links, l)
	}
	return n, nil
}

// enrol gives this process, of which pages is the page table, a log of its own. No other process may do so with the same
// programs meanwhile.
func (n *bpfNotifier) enrol(pages *pageReader) error {
	found, err := inspectFile(n.inspect, n.captured, int(pages.pagemap.Fd()))
	if err != nil {
		return err
	}
	if found.own == 0 || found.space != found.own {
		return errors.New("this kernel does not say whose a page table is")
	}
	log, err := newLog()
	if err != nil {
		return err
	}
	defer unix.Close(log)
	if n.bpfLog, err = mapLog(log); err != nil {
		return err
	}
	if err := addLog(n.logs, found.space, log); err != nil {
		return err
	}
	n.space = found.space
	return nil
}

func attach(p *ebpf.Program, event string) (io.Closer, error) {
	switch p.Type() {
	case ebpf.TracePoint:
		return attachTracepoint(p, event)
	case ebpf.RawTracepoint:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: event, Program: p})
	}
	return link.AttachTracing(link.TracingOptions{Program: p})
}

// loadError makes one line of what the loader says; errors.Is still works.
func loadError(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load BPF programs: %w (needs CAP_BPF and CAP_PERFMON, and a kernel that allows this kind of program)", unix.EPERM)
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return oneLine{"load BPF programs: " + line, err}
}

// oneLine leaves the verifier's log out of an error's text.
type oneLine struct {
	line string
	error
}

func (o oneLine) Error() string { return o.line }
func (o oneLine) Unwrap() error { return o.error }

// leave ends the log of this process.
func (n *bpfNotifier) leave() error {
	if n.space == 0 {
		return nil
	}
	defer func() { n.space = 0 }()
	return deleteLog(n.logs, n.space)
}

// bpfLog is the log of this process, which programs write: the part of a notifier that does not depend on who has
// loaded them.
type bpfLog struct {
	log    changeLog
	shared *bpfShared
}

func mapLog(fd int) (bpfLog, error) {
	shared, err := mapShared[bpfShared](fd)
	if err != nil {
		return bpfLog{}, err
	}
	return bpfLog{changeLog{&shared.control, &shared.records}, shared}, nil
}

func (l *bpfLog) word() *uint64 { return &l.log.control.head }

func (l *bpfLog) arm(r mem.Range) (verifier, error) {
	l.shared.interest.add(r)
	return nil, nil
}

func (l *bpfLog) disarm(r mem.Range, _ verifier) { l.shared.interest.remove(r) }

func (l *bpfLog) interests() *interest { return &l.shared.interest }
func (l *bpfLog) records() *uint64     { return &l.shared.records[0].start }

func (l *bpfLog) first() uint64 { return atomic.LoadUint64(&l.log.control.head) }

func (l *bpfLog) drain(seen uint64, report func(mem.Range)) (next uint64, overrun bool) {
	return l.log.drain(seen, report)
}

// close ends what linger returned; links that this process still has are closed side by side, since each detachment
// waits for the kernel's readers.
func (n *bpfNotifier) close() error {
	errs := make([]error, len(n.links)+1)
	errs[len(n.links)] = n.leave()
	replaceByZeros(n.shared, n)
	var all sync.WaitGroup
	for i, l := range n.links {
		all.Go(func() { errs[i] = l.Close() })
	}
	all.Wait()
	if n.coll != nil {
		n.coll.Close()
	} else {
		errs = append(errs, unix.Close(n.logs), unix.Close(n.captured), unix.Close(n.inspect))
	}
	return errors.Join(errs...)
}
