package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// outcome is a line of a state file: what came of one run.
type outcome struct {
	Run     string  `json:"run"`
	Failed  string  `json:"failed,omitempty"` // why
	Seconds float64 `json:"seconds,omitempty"`
	Killed  bool    `json:"killed,omitempty"` // a rank
	// Of runs without Pinwheel, what was ever seen of several of them: statuses, kinds of what they left behind, and
	// the longest time that ranks went on after one was killed.
	Statuses []int    `json:"statuses,omitempty"`
	Left     []string `json:"left,omitempty"`
	Slowest  float64  `json:"slowest_seconds,omitempty"`
}

// state has the outcomes of earlier runs of the same build. A command that was
// killed goes on behind the last of them.
type state struct {
	file *os.File
	done map[string]outcome
}

type stateHead struct {
	Stamp string `json:"stamp"` // of the build
}

// openState opens or makes a state file. What another build has done does not count.
func openState(path, stamp string) (*state, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another run goes on: %w", path, err), f.Close())
	}
	s := &state{file: f, done: map[string]outcome{}}
	whole, err := s.read(stamp)
	if err == nil {
		err = f.Truncate(whole) // the last line may be torn
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err == nil && whole == 0 {
		err = s.write(stateHead{stamp})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return s, nil
}

// read takes the outcomes, and returns how many bytes of the file are good.
func (s *state) read(stamp string) (whole int64, err error) {
	lines := bufio.NewReader(s.file)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		var l struct {
			stateHead
			outcome
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return whole, nil // torn by a crash of the machine
		}
		if n == 0 && l.Stamp != stamp {
			say("%s is of another build: starting anew", s.file.Name())
			return 0, nil
		}
		if l.Run != "" {
			s.done[l.Run] = l.outcome
		}
		whole += int64(len(line))
	}
}

func (s *state) write(line any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(line); err != nil {
		return err
	}
	_, err := s.file.Write(b.Bytes()) // at once, so that a kill tears at most this line
	return err
}

// add notes an outcome; it replaces an earlier one of the same run.
func (s *state) add(o outcome) error {
	s.done[o.Run] = o
	return s.write(o)
}

// passed reports whether a run is over and was good. One that failed is run again.
func (s *state) passed(run string) bool {
	o, ok := s.done[run]
	return ok && o.Failed == ""
}

// stampOf names a build by the bytes of files and of the files in directories.
func stampOf(paths ...string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(h, f)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// stamp names what this run tests.
func (b bench) stamp(more ...string) (string, error) {
	beside := filepath.Dir(b.Pinwheel)
	return stampOf(append(more, filepath.Join(beside, "libpinwheel.so"), filepath.Join(beside, "libpinwheel-go.so"),
		filepath.Join(b.Softverbs, "lib"), b.Sources)...)
}
