package compare

import (
	"fmt"
	"io"
	"os"
	"strings"

	"pinwheel/internal/outfile"
)

// streams are the standard streams of a run. What the job prints goes into a file that has no
// name: a pipe would stay open for as long as anything that the job leaves behind.
type streams struct{ in, out *os.File }

func openStreams() (s streams, err error) {
	if s.in, err = openInput(); err != nil {
		return s, err
	}
	if s.out, err = os.CreateTemp("", "pinwheel-compare-"); err != nil {
		_ = s.in.Close() // only read from
		return s, err
	}
	return s, os.Remove(s.out.Name())
}

// openInput opens a file that is this process's standard input from its beginning, for every run anew. Other
// input could be read once only, and a job gets none.
func openInput() (*os.File, error) {
	if info, err := os.Stdin.Stat(); err == nil && info.Mode().IsRegular() {
		if f, err := os.Open("/dev/stdin"); err == nil {
			return f, nil
		}
	}
	return os.Open(os.DevNull)
}

// outputBytes is how much of a job's output is kept, from its end.
const outputBytes = 64 << 10

// end returns the end of what was printed.
func (s streams) end() string {
	size, err := s.out.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, outputBytes))
	n, _ := s.out.ReadAt(text, size-int64(len(text))) // as much as there is
	return string(text[:n])
}

// full is a reason for a job to fail that it could not print, "" if there is room for more.
func (s streams) full() string {
	if _, err := s.out.WriteString("\n"); err != nil {
		return fmt.Sprintf(": what it prints goes into %s (TMPDIR): %v", os.TempDir(), outfile.Cause(err))
	}
	return ""
}

func (s streams) close() {
	_ = s.in.Close()  // only read from
	_ = s.out.Close() // it has been read
}

// lastLine returns ": " and the last line of an output that says something, "" if there is none.
func lastLine(output string) string {
	lines := strings.Split(output, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.Trim(lines[i], " \t\r-=*"); line != "" {
			return ": " + line
		}
	}
	return ""
}
