// Package kit is what our long measurements and soaks have in common: rows that are chosen by patterns and measured round
// by round, a log from which a command that was killed goes on, and a head that says what was measured where.
package kit

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

// Log keeps what a long series of runs has done in a file of JSON lines, so that a command that was killed goes on where it
// was. The first line, the head, says of which build the others are. The zero Log has none. It belongs to one goroutine, and
// the file that Open opens to one process at a time.
type Log[H header, L any] struct {
	Head  H
	Lines []L // after the head
	file  *os.File
}

// header is a first line: a Head, or what embeds one.
type header interface{ build() string }

func (h Head) build() string { return h.Build }

// Read reads a file up to the first line that is torn: that has no end, or that can't be decoded.
func (f *Log[H, L]) Read(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() // only read from
	_, err = f.read(in)
	return err
}

// read returns the size of what it has read.
func (f *Log[H, L]) read(in io.Reader) (whole int64, err error) {
	lines := bufio.NewReader(in)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		if whole == 0 {
			err = json.Unmarshal(text, &f.Head)
		} else {
			var l L
			if err = json.Unmarshal(text, &l); err == nil {
				f.Lines = append(f.Lines, l)
			}
		}
		if err != nil {
			return whole, nil
		}
		whole += int64(len(text))
	}
}

// Open opens or makes a file, and reads it as Read does: Add goes on behind what it has read. If the file is new, or of
// another build than the head, it begins anew with the head. Another process that has it open is an error.
func (f *Log[H, L]) Open(path string, head H) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%s: another run goes on: %w", path, err), file.Close())
	}
	f.file = file
	if err := f.goOn(head); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return nil
}

func (f *Log[H, L]) goOn(head H) error {
	whole, err := f.read(f.file)
	if err != nil {
		return err
	}
	if whole > 0 && f.Head.build() != head.build() {
		fmt.Fprintf(os.Stderr, "%s is of another build: beginning anew\n", f.file.Name())
		whole = 0
	}
	if err := f.file.Truncate(whole); err != nil { // the last line may be torn
		return err
	}
	if _, err := f.file.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if whole > 0 {
		return nil
	}
	f.Head, f.Lines = head, nil
	return f.write(head)
}

// Add notes a run. It writes a line at once, so that a kill tears at most this one.
func (f *Log[H, L]) Add(l L) error {
	f.Lines = append(f.Lines, l)
	return f.write(l)
}

func (f *Log[H, L]) write(line any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(line); err != nil {
		return err
	}
	_, err := f.file.Write(b.Bytes())
	return err
}

// Close closes what Open opened.
func (f *Log[H, L]) Close() error { return f.file.Close() }

// Stamp names a build by the bytes of files and of the files in directories.
func Stamp(paths ...string) (string, error) {
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
			defer f.Close() // only read from
			_, err = io.Copy(h, f)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
