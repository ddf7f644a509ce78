package report

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"pinwheel/internal/caches"
	"pinwheel/internal/console"
	"pinwheel/internal/outfile"
	"pinwheel/internal/settings"
)

// ThisProcess returns a report that says only which process it is of: its host, command and settings. It is
// rank 0 of 1 until the caller knows better.
func ThisProcess() Rank {
	host, _ := os.Hostname()
	r := Rank{Size: 1, Host: host, PID: os.Getpid(), Command: CommandLine()}
	r.TransportSettings = caches.Given(os.Environ())
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, settings.Prefix) && !strings.HasPrefix(e, settings.Prefix+"STATS=") {
			r.Environment = append(r.Environment, e)
		}
	}
	slices.Sort(r.Environment)
	return r
}

// CommandLine returns the command of this process in one line, as /proc/self/cmdline (proc(5)) has it.
func CommandLine() string {
	text, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// Save writes the report: to standard error if path is "y", else into a file, as JSON if its name ends in
// .json. It never waits for a reader.
func (r Rank) Save(path string) error {
	var text strings.Builder
	job := Job{alone: true}
	job.Add(r)
	_ = job.Write(&text) // to memory
	if path == "y" {
		console.Write(text.String())
		return nil
	}
	return outfile.Write(path, func(w io.Writer) error {
		if strings.HasSuffix(path, ".json") {
			return json.NewEncoder(w).Encode(r)
		}
		_, err := io.WriteString(w, text.String())
		return err
	}, outfile.NoWait)
}
