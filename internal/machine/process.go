package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is what /proc/PID/stat tells of a process (proc_pid_stat(5)).
type Process struct {
	Name       string // of the executable, at most 15 bytes
	Parent     int
	StartTicks uint64 // after boot, in units of 10 ms (USER_HZ); tells it from a later one with the same number
}

// ErrGone is the error for a process of which no thread runs any more.
var ErrGone = errors.New("no running process")

// ReadProcess reads /proc/PID/stat. It fails with ErrGone if no thread of the process runs. The
// first thread of a killed process is often a zombie before the others have ended, so a zombie
// counts as gone once it is alone.
func ReadProcess(pid int) (p Process, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return p, ErrGone
	}
	if err != nil {
		return p, err
	}
	// The name, field 2, may hold anything; it ends with the last parenthesis.
	text := string(data)
	begin, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	var fields []string // from field 3
	if begin >= 0 && end > begin {
		p.Name, fields = text[begin+1:end], strings.Fields(text[end+1:])
	}
	if len(fields) < 20 {
		return p, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	ended, threads := fields[0] == "Z" || fields[0] == "X", fields[17]
	if ended && (threads == "0" || threads == "1") {
		return p, ErrGone
	}
	p.Parent, err = strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[19], 10, 64)
	p.StartTicks = start
	return p, errors.Join(err, err2)
}
