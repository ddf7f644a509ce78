package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pinwheel/internal/tools/launch"
)

const (
	meterPrefix   = "meter-"            // of the files of mpishim/meter
	meterVariable = "LIBPINWHEEL_METER" // names their directory
)

// findMeter returns the path of the library that is preloaded in every mode, beside libpinwheel.so.
func findMeter(library string) (string, error) {
	library, err := launch.FindLibrary(library)
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(library), launch.Meter)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s, which counts processor time, is missing beside libpinwheel.so", path)
	}
	return path, nil
}

// reading is what the meter read at one moment.
type reading struct {
	WallNs   int64 `json:"wall_ns"` // CLOCK_MONOTONIC
	CPUNs    int64 `json:"cpu_ns"`
	UserUs   int64 `json:"user_us"`
	SystemUs int64 `json:"system_us"`
}

// meterFile is the file of a rank.
type meterFile struct {
	PID      int      `json:"pid"`
	Init     reading  `json:"init"`     // MPI_Init returns
	Finalize *reading `json:"finalize"` // MPI_Finalize is entered; nil if it was not
	End      reading  `json:"end"`      // the process ends
	local    bool
}

var errNoRank = errors.New("no rank called MPI_Init, " +
	"or its node does not share the directory where the job was started")

// readMeter returns what the ranks of a job have written.
func readMeter(dir, localPrefix string) (ranks []meterFile, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), meterPrefix) || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		var r meterFile
		_, r.local = processIn(e.Name(), localPrefix)
		if err := json.Unmarshal(text, &r); err != nil || r.Finalize == nil {
			return nil, fmt.Errorf("rank %s ended without MPI_Finalize", processOf(e.Name()))
		}
		ranks = append(ranks, r)
	}
	if len(ranks) == 0 {
		return nil, errNoRank
	}
	return ranks, nil
}

// processOf names the process of a meter's file for people.
func processOf(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, meterPrefix), ".json")
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		if _, err := strconv.Atoi(name[at+1:]); err == nil {
			return "(process " + name[at+1:] + " on " + name[:at] + ")"
		}
	}
	return name
}
