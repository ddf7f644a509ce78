package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// groups returns the directories that slurmd makes below the roots of the hierarchies of control groups: slurm or
// slurm_NODE in version 1, slurmstepd.scope in version 2.
func groups() (tops []string) {
	for _, pattern := range []string{"/*/slurm*", "/system.slice/*slurmstepd.scope"} {
		found, _ := filepath.Glob(groupRoot + pattern) // the pattern is good
		tops = append(tops, found...)
	}
	return tops
}

// removeGroups removes those that were not there before. Their processes have just been killed, and a
// directory can't be removed before the last of them has gone.
func removeGroups(before []string) error {
	added := slices.DeleteFunc(groups(), func(top string) bool { return slices.Contains(before, top) })
	for end := time.Now().Add(ready); ; time.Sleep(20 * time.Millisecond) {
		var err error
		for _, top := range added {
			err = errors.Join(err, removeGroup(top))
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// removeGroup removes a group and those below it.
func removeGroup(top string) (err error) {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, walkErr error) error {
		if walkErr == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what can't be read may have gone by itself
	})
	for _, dir := range slices.Backward(dirs) {
		if e := os.Remove(dir); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("control group: %w", e))
		}
	}
	return err
}
