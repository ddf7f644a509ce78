package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
)

// segment is the memfd of a job, as one member or one reader has it open.
type segment struct {
	fd    int // an open file description of its own, which owns the locks
	inode uint64
	mem   memory
}

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// createSegment makes an empty segment. All of its pages are allocated now, because an access that
// finds no memory for a page ends the process with SIGBUS.
func createSegment() (s *segment, err error) {
	fd, err := unix.MemfdCreate("pinwheel-node", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return nil, os.NewSyscallError("fchmod", err)
	}
	if err := unix.Fallocate(fd, 0, 0, sizeBytes); err != nil {
		return nil, os.NewSyscallError("fallocate", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, os.NewSyscallError("fcntl F_ADD_SEALS", err)
	}
	if s, err = mapSegment(fd, true); err != nil {
		return nil, err
	}
	s.mem.store(headerLayout, layout<<32|slots)
	s.mem.store(headerMagic, magic)
	return s, nil
}

// mapSegment takes fd over if it succeeds. It fails for files that are not a sealed memfd of this
// user and of the right size.
func mapSegment(fd int, writable bool) (*segment, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	if int(st.Uid) != os.Geteuid() {
		return nil, errors.New("it belongs to another user")
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != sizeBytes {
		return nil, fmt.Errorf("it is no file of %d bytes", sizeBytes)
	}
	if got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		return nil, errors.New("its size is not sealed")
	}
	protection := unix.PROT_READ
	if writable {
		protection |= unix.PROT_WRITE
	}
	m, err := unix.Mmap(fd, 0, sizeBytes, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	_ = unix.Madvise(m, unix.MADV_DONTFORK) // a child is no member
	_ = unix.Madvise(m, unix.MADV_DONTDUMP)
	return &segment{fd, st.Ino, m}, nil
}

// findSegment opens the segment of a job through any of its members. It fails with ErrNone if
// there is none.
func findSegment(job string, writable bool) (*segment, error) {
	all, err := beacons()
	if err != nil {
		return nil, err
	}
	err = ErrNone
	for _, b := range all {
		if b.job != job {
			continue
		}
		s, failed := openBeacon(b, writable)
		switch {
		case failed == nil:
			return s, nil
		case errors.Is(failed, fs.ErrNotExist): // it has ended, or never was
		case isOurs(b.pid):
			err = fmt.Errorf("node: segment of process %d: %w", b.pid, failed)
		}
	}
	return nil, err
}

// ErrNone means that the job has no segment on this node.
var ErrNone = errors.New("node: no process of this job is here")

// errReplaced: the process has closed the segment since its beacon was seen, and may have opened something else.
var errReplaced = fmt.Errorf("it has closed the segment: %w", fs.ErrNotExist)

func (b beacon) path() string { return fmt.Sprintf("/proc/%d/fd/%d", b.pid, b.fd) }

// stands reports whether the descriptor still is, or may be, that of the segment.
func (b beacon) stands() bool {
	var st unix.Stat_t
	err := unix.Stat(b.path(), &st)
	return err == nil && st.Ino == b.inode || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// openBeacon opens the segment of a beacon, which its process may close at any time.
func openBeacon(b beacon, writable bool) (*segment, error) {
	if !b.stands() {
		return nil, errReplaced
	}
	s, err := openSegment(b.path(), writable)
	if err == nil && s.inode != b.inode {
		s.close()
		return nil, errReplaced
	}
	if err != nil && !b.stands() {
		return nil, errReplaced
	}
	return s, err
}

func openSegment(path string, writable bool) (*segment, error) {
	flags := unix.O_RDONLY
	if writable {
		flags = unix.O_RDWR
	}
	// O_NONBLOCK, since anyone may have bound the name, and it may mean a FIFO of this user.
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	s, err := mapSegment(fd, writable)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if s.mem.load(headerMagic) != magic || s.mem.load(headerLayout) != layout<<32|slots {
		s.close()
		return nil, errors.New("it holds something else")
	}
	return s, nil
}

// isOurs reports whether a process lives and belongs to this user. Other users may bind
// names that look like those of our processes.
func isOurs(pid int) bool {
	// A process that ends gives its memory back before it closes its files, its socket among them. In
	// between /proc/PID/fd belongs to root, and VmSize is missing.
	values, err := machine.Fields(os.DirFS("/"), fmt.Sprintf("proc/%d/status", pid), "Uid", "VmSize")
	if err != nil {
		return false
	}
	ids := strings.Fields(values[0]) // real, effective, ...; the owner of /proc/PID is root for some
	return len(ids) > 1 && ids[1] == strconv.Itoa(os.Geteuid())
}

// close unmaps the segment and frees the locks of this description.
func (s *segment) close() {
	_ = unix.Munmap(s.mem)
	unix.Close(s.fd)
}

// mainLock is the byte whose lock protects slots and shares; slotLock the one that a member
// holds for as long as it has the slot.
const mainLock = 0

func slotLock(i int) int64 { return 1 + int64(i) }

func fileLock(kind int16, at int64) *unix.Flock_t {
	return &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1}
}

// tryLock locks a byte for this description, unless another one has it.
func (s *segment) tryLock(at int64) (ok bool, err error) {
	for {
		switch err := unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_SETLK, fileLock(unix.F_WRLCK, at)); err {
		case nil:
			return true, nil
		case unix.EAGAIN, unix.EACCES:
			return false, nil
		case unix.EINTR:
		default:
			return false, os.NewSyscallError("fcntl F_OFD_SETLK", err)
		}
	}
}

func (s *segment) unlock(at int64) {
	_ = unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_SETLK, fileLock(unix.F_UNLCK, at)) // it was locked
}

// isLocked reports whether another description has locked a byte.
func (s *segment) isLocked(at int64) bool {
	l := fileLock(unix.F_WRLCK, at)
	return unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_GETLK, l) != nil || l.Type != unix.F_UNLCK
}

// lock locks a byte, or fails with ErrBusy when the time is over. It spins at first, and then pauses ever longer, up to
// maxPause.
func (s *segment) lock(at int64, patience, maxPause time.Duration) error {
	end, pause := time.Now().Add(patience), minLockPause
	for try := 0; ; try++ {
		ok, err := s.tryLock(at)
		if ok || err != nil {
			return err
		}
		if try < spins {
			runtime.Gosched()
			continue
		}
		if !time.Now().Before(end) {
			return ErrBusy
		}
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
	}
}

const (
	// spins is how often lock tries before it sleeps: some 10 us.
	spins = 20
	// minLockPause is the first pause, and the only length of pause for the main lock: its holder writes a few words.
	minLockPause = 100 * time.Microsecond
)
