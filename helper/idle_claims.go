package helper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// Owner identifies one helper of one process on this node. The start time
// tells a process from a later one with the same number.
type Owner struct {
	PID      int32
	Instance uint32 // of the helpers of the process
	Start    uint64 // clock ticks after boot: field 22 of /proc/PID/stat
}

var instances atomic.Uint32

func newOwner() (Owner, error) {
	start, err := startTime(os.Getpid())
	return Owner{PID: int32(os.Getpid()), Instance: instances.Inc(), Start: start}, err
}

// alive reports whether the process still runs.
func (o Owner) alive() bool {
	start, err := startTime(int(o.PID))
	return err == nil && start == o.Start
}

// startTime reads field 22 of /proc/PID/stat (proc(5)). The name, field 2,
// may hold anything; it ends with the last parenthesis. A zombie holds
// nothing any more and counts as gone.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from field 3
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("/proc/%d/stat: no running process", pid)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// claimTable is the list of all helpers of one user on this node: a file in
// shared memory, of one record each, that is only touched under flock(2).
//
// A process may be killed at any instruction. The kernel then drops its lock, and
// its record stays until the next process finds that its owner is gone. A
// record is 32 bytes at a multiple of 32, so it lies in one page and no signal
// tears its write(2). If a longer write is cut short between two records, some
// records are missing or doubled. Every owner restores its own at its next update,
// and the first of two counts.
//
// A claimTable belongs to one goroutine at a time.
type claimTable struct {
	path string
}

const claimBytes = 32

// claimsDir is shared memory on every Linux, and gone after a boot.
const claimsDir = "/dev/shm"

// errClaimsBusy: another process kept the table locked for too long; it may
// have been stopped. The caller goes on with what it had.
var errClaimsBusy = errors.New("helper: the table of helpers is locked by another process")

// newClaimTable names the table of this user in dir, which is /dev/shm except in
// tests. Processes in another PID namespace have a table of their own, because
// nobody here can tell whether they are alive.
func newClaimTable(dir string) *claimTable {
	namespace := "0"
	if link, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		namespace = strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
	}
	return &claimTable{filepath.Join(dir, fmt.Sprintf("pinwheel-helpers-%d-%s", os.Getuid(), namespace))}
}

// update calls change with the claims of all living helpers and stores what it
// returns. An empty table is removed.
func (t *claimTable) update(change func([]Claim) []Claim) error {
	f, err := t.lock()
	if err != nil {
		return err
	}
	defer f.Close() // and unlocks
	data, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("helper: read %s: %w", t.path, err)
	}
	claims := change(decodeClaims(data))
	if len(claims) == 0 {
		return os.Remove(t.path)
	}
	if _, err := f.WriteAt(encodeClaims(claims), 0); err != nil {
		return fmt.Errorf("helper: write %s: %w", t.path, err)
	}
	return f.Truncate(int64(len(claims)) * claimBytes)
}

// lock opens and locks the table. It gives up after a while, because the holder
// may be stopped.
func (t *claimTable) lock() (*os.File, error) {
	for range 100 {
		f, err := os.OpenFile(t.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, fmt.Errorf("helper: %w", err)
		}
		ok, err := t.lockFile(f)
		if ok {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
	return nil, errClaimsBusy
}

// lockFile reports whether f is now locked and still the table: the process that
// empties the table removes it.
func (t *claimTable) lockFile(f *os.File) (bool, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return false, fmt.Errorf("helper: flock %s: %w", t.path, err)
	}
	var opened, named unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &opened); err != nil {
		return false, fmt.Errorf("helper: fstat %s: %w", t.path, err)
	}
	if int(opened.Uid) != os.Getuid() {
		return false, fmt.Errorf("helper: %s belongs to another user", t.path)
	}
	err := unix.Stat(t.path, &named)
	return err == nil && opened.Ino == named.Ino && opened.Dev == named.Dev, nil
}

func encodeClaims(claims []Claim) []byte {
	data := make([]byte, 0, len(claims)*claimBytes)
	for _, c := range claims {
		data = binary.LittleEndian.AppendUint32(data, uint32(c.Owner.PID))
		data = binary.LittleEndian.AppendUint32(data, c.Owner.Instance)
		data = binary.LittleEndian.AppendUint64(data, c.Owner.Start)
		data = binary.LittleEndian.AppendUint64(data, uint64(c.Bytes))
		data = binary.LittleEndian.AppendUint64(data, uint64(int64(c.CPU)))
	}
	return data
}

// decodeClaims returns the claims of living owners, one for each.
func decodeClaims(data []byte) []Claim {
	var claims []Claim
	for ; len(data) >= claimBytes; data = data[claimBytes:] {
		c := Claim{
			Owner: Owner{
				PID:      int32(binary.LittleEndian.Uint32(data)),
				Instance: binary.LittleEndian.Uint32(data[4:]),
				Start:    binary.LittleEndian.Uint64(data[8:]),
			},
			Bytes: int64(binary.LittleEndian.Uint64(data[16:])),
			CPU:   int(int64(binary.LittleEndian.Uint64(data[24:]))),
		}
		known := slices.ContainsFunc(claims, func(o Claim) bool { return o.Owner == c.Owner })
		if !known && c.Owner.alive() {
			claims = append(claims, c)
		}
	}
	return claims
}

// Claims returns the claims of all living helpers of this user on this node,
// without changing anything: for reports. dir is the directory of their table,
// "" for the usual one.
func Claims(dir string) ([]Claim, error) {
	if dir == "" {
		dir = claimsDir
	}
	data, err := os.ReadFile(newClaimTable(dir).path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("helper: %w", err)
	}
	return decodeClaims(data), nil
}
