package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"pinwheel/internal/console"
	"pinwheel/mem"
)

// Key names a job: runs of the same key communicate in the same way.
type Key struct {
	Program   string // name of the executable's file
	Build     string // its build ID; of a trace that has none, the hash of its call sites
	Arguments string // as one line
	Ranks     int    // of the job

	// Settings that change what is an event, and how contexts are told apart.
	ThresholdBytes uint64
	Window         int
}

// Arguments returns the arguments of a command line that a report or a trace shows: all but the program.
func Arguments(commandLine string) string {
	_, arguments, _ := strings.Cut(commandLine, " ")
	return arguments
}

// Differs says in what k differs from the key of a profile, for people; "" if it doesn't.
func (k Key) Differs(have Key) string {
	switch {
	case k.Program != have.Program:
		return fmt.Sprintf("it is of the program %s", console.Printable(have.Program))
	case k.Ranks != have.Ranks:
		return fmt.Sprintf("it is of a run of %d ranks", have.Ranks)
	case k.Arguments != have.Arguments:
		return fmt.Sprintf("it is of a run with the arguments %q", have.Arguments)
	case k.Build != have.Build:
		return "it is of another build of the program"
	case k.ThresholdBytes != have.ThresholdBytes:
		return fmt.Sprintf("it is of a run with a threshold of %s", mem.FormatBytes(have.ThresholdBytes))
	case k.Window != have.Window:
		return fmt.Sprintf("it is of a run with a context window of %d", have.Window)
	}
	return ""
}

// directory names the directory of the job in a Store.
func (k Key) directory() string {
	sum := sha256.Sum256(k.encode(nil))
	return k.prefix() + hex.EncodeToString(sum[:8])
}

// prefix is what the directories of all jobs of the program begin with.
func (k Key) prefix() string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._+-", r) {
			return r
		}
		return '_'
	}, k.Program)
	const most = 100 // bytes; NAME_MAX of <linux/limits.h> is 255
	name = strings.TrimLeft(name[:min(len(name), most)], ".-")
	if name == "" {
		name = "program"
	}
	return name + "-"
}
