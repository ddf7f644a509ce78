// Package runlog keeps what a long series of runs has done in a file of JSON lines, so that a command that was killed
// goes on where it was. The first line, the head, says of which build the others are.
package runlog

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

// ErrOtherBuild is what the reader of a head returns if the lines after it do not count.
var ErrOtherBuild = errors.New("of another build")

// Log is an open file of runs. It belongs to one goroutine, and to one process at a time.
type Log struct{ file *os.File }

// Read calls take with every line and its number, the head's being 0. It ends at the first line that is torn: that
// has no end, or that take can't decode. whole is the size of the lines before that.
func Read(in io.Reader, take func(n int, line []byte) error) (whole int64, err error) {
	lines := bufio.NewReader(in)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		if err := take(n, line); errors.Is(err, ErrOtherBuild) {
			return 0, err
		} else if err != nil {
			return whole, nil
		}
		whole += int64(len(line))
	}
}

// Open opens or makes a file and reads it as Read does. If it is of another build it begins anew with the head,
// as a new one does. Another process that has it open is an error.
func Open(path string, head any, take func(n int, line []byte) error) (l *Log, otherBuild bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, false, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, false, errors.Join(fmt.Errorf("%s: another run goes on: %w", path, err), f.Close())
	}
	l = &Log{f}
	whole, err := Read(f, take)
	if otherBuild = errors.Is(err, ErrOtherBuild); otherBuild {
		err = nil
	}
	if err == nil {
		err = f.Truncate(whole) // the last line may be torn
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err == nil && whole == 0 {
		err = l.Add(head)
	}
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return l, otherBuild, nil
}

// Add writes a line at once, so that a kill tears at most this one.
func (l *Log) Add(line any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(line); err != nil {
		return err
	}
	_, err := l.file.Write(b.Bytes())
	return err
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

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
