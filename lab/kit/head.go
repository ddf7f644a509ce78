package kit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pinwheel/internal/machine"
	"pinwheel/internal/measure"
	"pinwheel/internal/tools/launch"
)

// Head is the first line of a file of runs, and says what was measured where.
type Head struct {
	Build    string          `json:"build"` // a digest of what was built
	Version  string          `json:"version"`
	Date     string          `json:"date"`
	Machine  machine.Machine `json:"machine"`
	Software []string        `json:"software,omitempty"` // packages and their versions
}

// NewHead describes this day and this machine, a version of Pinwheel, the build that some files are of, and those of some
// Debian packages that are installed.
func NewHead(version string, packages []string, files ...string) (h Head, err error) {
	h = Head{Version: version, Date: time.Now().UTC().Format(time.DateOnly), Machine: machine.This()}
	if h.Build, err = Stamp(files...); err != nil {
		return h, fmt.Errorf("%w (make build softverbs)", err)
	}
	if len(packages) == 0 {
		return h, nil
	}
	query := append([]string{"dpkg-query", "-W", "-f", "${Package} ${Version}\n"}, packages...)
	for l := range strings.Lines(launch.Output(os.Environ(), query...)) {
		if f := strings.Fields(l); len(f) == 2 { // else it is not installed
			h.Software = append(h.Software, strings.Join(f, " "))
		}
	}
	return h, nil
}

// VersionIn is that of pinwheel in a directory.
func VersionIn(bin string) string {
	version := launch.Output(os.Environ(), filepath.Join(bin, "pinwheel"), "--version")
	return strings.TrimSpace(strings.TrimPrefix(version, "pinwheel "))
}

// Publishable fails if nobody could repeat what was measured: the version is unknown, or has changes that are in no commit.
func (h *Head) Publishable() error {
	if h.Version == "" || strings.HasPrefix(h.Version, "(") || strings.HasSuffix(h.Version, "dirty") {
		return fmt.Errorf("these figures are of version %q, which is no commit: they go on no page (commit, build, measure)", h.Version)
	}
	return nil
}

// Describe says it for people, with what measure.Load was before each run.
func (h *Head) Describe(loads []float64) string {
	text := fmt.Sprintf("Pinwheel %s, %s. %s, %d processors, Linux %s.",
		h.Version, h.Date, h.Machine.Processor, h.Machine.Processors, h.Machine.Kernel)
	if len(h.Software) > 0 {
		text += " " + strings.Join(h.Software, ", ") + "."
	}
	if len(loads) > 0 {
		e := measure.Estimated(loads)
		text += fmt.Sprintf(" Load of the machine before a run: %.1f (median), %.1f (greatest).", e.Median, slices.Max(loads))
	}
	return Wrap(text)
}

// Wrap breaks a paragraph into lines of 100 columns at most.
func Wrap(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column > 0 && column+1+len(word) > 100 {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}
