//go:build amd64 || arm64

package vmwatch

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const readerSlots = 4096

// readerShared is what the reader thread and the rest of the process share.
// The reader alone writes generation, published and the ring; a slot is its
// until published passes it, and then the drainer's until the ring has gone
// round once. A drainer that is behind by more than half takes it for an
// overrun, which invalidates everything.
//
// The words are raw, for sync/atomic: the thread is assembly, and the kernel writes tid.
type readerShared struct {
	generation uint64 // events begun
	_          [7]uint64
	published  uint64 // events in the ring
	_          [7]uint64
	poll       [2]unix.PollFd // the userfaultfd, the stop descriptor
	_          [4096 - 144]byte
	ring       [readerSlots]uffdMsg
	stack      [4096]byte
	tid        uint32 // cleared by the kernel when the thread is gone
}

// uffdReader is the thread that reads a userfaultfd.
//
// A thread that changes an armed mapping waits until its event is read. A
// reader that depends on Go's scheduler, or allocates, or takes a lock can
// therefore stop the process: Go's own runtime unmaps with the scheduler
// stopped, malloc with its arena locked. This one is a bare kernel thread
// running a loop of system calls in assembly, with every signal blocked. It
// ends with the process, or by stop.
type uffdReader struct {
	shared *readerShared
	stopFD int
}

func spawnReader(flags, stack uintptr, shared *readerShared, tid *uint32) int

const readerFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD |
	unix.CLONE_SYSVSEM | unix.CLONE_CHILD_CLEARTID

func startReader(fd int) (_ *uffdReader, err error) {
	s, err := mapPrivate[readerShared]()
	if err != nil {
		return nil, err
	}
	r := &uffdReader{shared: s, stopFD: -1}
	s.tid = 1
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	if r.stopFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	s.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	s.poll[1] = unix.PollFd{Fd: int32(r.stopFD), Events: unix.POLLIN}
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	// The new thread inherits the mask of this one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return nil, fmt.Errorf("sigprocmask: %w", err)
	}
	top := uintptr(unsafe.Pointer(&s.stack)) + unsafe.Sizeof(s.stack)
	tid := spawnReader(readerFlags, top, s, &s.tid)
	if e := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); e != nil {
		return nil, fmt.Errorf("sigprocmask: %w", e)
	}
	if tid < 0 {
		return nil, fmt.Errorf("clone of the reader thread: %w", unix.Errno(-tid))
	}
	return r, nil
}

// first returns the number of the next message.
func (r *uffdReader) first() uint64 { return atomic.LoadUint64(&r.shared.published) }

// drain calls event for each message from number seen on and returns the
// number of the next.
func (r *uffdReader) drain(seen uint64, event func(uffdMsg)) (next uint64, overrun bool) {
	s := r.shared
	head := atomic.LoadUint64(&s.generation)
	for tries := 0; atomic.LoadUint64(&s.published) < head; tries++ {
		if tries == publishTries {
			overrun = true // the last event has begun but can't be read yet; the next drain has it again
			break
		}
		runtime.Gosched()
	}
	head = atomic.LoadUint64(&s.published)
	for ; seen < head; seen++ {
		m := s.ring[seen%readerSlots]
		if atomic.LoadUint64(&s.published)-seen > readerSlots/2 {
			return head, true
		}
		event(m)
	}
	return seen, overrun
}

// stop returns when the thread is gone. Its memory stays until free.
func (r *uffdReader) stop() error {
	one := [8]byte{1}
	if _, err := unix.Write(r.stopFD, one[:]); err != nil {
		return fmt.Errorf("stop the reader thread: %w", err)
	}
	for tries := 0; atomic.LoadUint32(&r.shared.tid) != 0; tries++ {
		time.Sleep(min(time.Millisecond, time.Duration(tries)*time.Microsecond))
	}
	return nil
}

func (r *uffdReader) free() error {
	var err error
	if r.stopFD >= 0 {
		err = unix.Close(r.stopFD)
	}
	replaceByZeros(r.shared, r)
	return err
}

// The assembly knows these offsets; a mismatch doesn't compile.
var (
	_ [64]struct{}   = [unsafe.Offsetof(readerShared{}.published)]struct{}{}
	_ [128]struct{}  = [unsafe.Offsetof(readerShared{}.poll)]struct{}{}
	_ [4096]struct{} = [unsafe.Offsetof(readerShared{}.ring)]struct{}{}
	_ [32]struct{}   = [unsafe.Sizeof(uffdMsg{})]struct{}{}
)
