package node

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
)

// namePrefix begins the names of all sockets of this user in this PID namespace.
func namePrefix() string {
	namespace := "0"
	if link, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		namespace = strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
	}
	return fmt.Sprintf("pinwheel%d/%d/%s/", layout, os.Geteuid(), namespace)
}

// maxJob is the length of a job's name that leaves room for the rest of an
// abstract name, which has 107 bytes at most (unix(7)).
const maxJob = 48

// checkJob fails for names that could be taken for another one's.
func checkJob(job string) error {
	strange := func(r rune) bool { return r <= ' ' || r == '/' || r == '@' || r >= 0x7f }
	if job == "" || len(job) > maxJob || strings.ContainsFunc(job, strange) {
		return fmt.Errorf("node: %q can't be the name of a job", job)
	}
	return nil
}

// bind returns a socket with this abstract name. Closing it, or dying, frees the name.
func bind(name string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

// ErrBusy is the error of a lock that another process kept for too long. It may have been stopped, or have got no
// processor meanwhile.
var ErrBusy = errors.New("node: another process of the job holds the lock")

// patience is how long a newcomer waits for others. A node may be overloaded when its ranks start.
const patience = 5 * time.Second

// openDoor keeps other newcomers of the job out until the returned socket is closed.
func openDoor(job string) (fd int, err error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		fd, err = bind(namePrefix() + job + "/door")
		if err == nil || !errors.Is(err, unix.EADDRINUSE) {
			return fd, err
		}
		if time.Now().After(end) {
			return -1, fmt.Errorf("%w: the abstract socket of newcomers is taken", ErrBusy)
		}
	}
}

// beacon is one that was seen. Anyone may have bound it. By now the process may have closed the segment, and fd may
// mean another file of it: inode tells.
type beacon struct {
	job     string
	pid, fd int
	inode   uint64
}

func (b beacon) name() string {
	return fmt.Sprintf("%s%s/%d/%d/%x", namePrefix(), b.job, b.pid, b.fd, b.inode)
}

// parseBeacon reads the name of a socket without its prefix.
func parseBeacon(rest string) (b beacon, ok bool) {
	parts := strings.Split(rest, "/")
	if len(parts) != 4 || checkJob(parts[0]) != nil {
		return b, false
	}
	pid, err := strconv.ParseInt(parts[1], 10, 32)
	fd, err2 := strconv.ParseInt(parts[2], 10, 32)
	inode, err3 := strconv.ParseUint(parts[3], 16, 64)
	return beacon{parts[0], int(pid), int(fd), inode}, errors.Join(err, err2, err3) == nil && pid > 0 && fd >= 0
}

// beacons returns those of this user in this PID namespace, of all jobs.
func beacons() (all []beacon, err error) {
	names, err := machine.AbstractSockets(namePrefix())
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	for _, name := range names {
		if b, ok := parseBeacon(name); ok {
			all = append(all, b)
		}
	}
	return all, nil
}

// Jobs returns the jobs of this user on this node that have a living member, sorted.
func Jobs() ([]string, error) {
	all, err := beacons()
	if err != nil {
		return nil, err
	}
	var jobs []string
	for _, b := range all {
		if _, err := machine.ReadProcess(b.pid); err == nil {
			jobs = append(jobs, b.job)
		}
	}
	slices.Sort(jobs)
	return slices.Compact(jobs), nil
}
