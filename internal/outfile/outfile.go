package outfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// File is an output that is being written. It is for one goroutine.
type File struct {
	path   string // as given, for messages
	out    *os.File
	target string   // regular file that is replaced; "" if out is written through
	stage  string   // name of out until then; "" if it has none
	made   []string // directories that were made for it, the outermost first
	shared bool     // out is not ours to close
	noWait bool
	alone  bool // RemoveOnSignals leaves it alone
	done   bool
}

// Option changes what Create does.
type Option func(*File)

// NoWait makes a FIFO that nobody reads an error instead of something to wait
// for, as in a program that is not ours.
func NoWait(f *File) { f.noWait = true }

// WithoutSignals keeps RemoveOnSignals from ending the process while the file is written: the caller handles signals
// itself, and finishes the file first.
func WithoutSignals(f *File) { f.alone = true }

// patience is how long a reader of a FIFO may keep a File with NoWait waiting.
const patience = time.Second

// Create begins to write the file of that name. Nothing is seen of it until Commit.
func Create(path string, options ...Option) (*File, error) {
	f := &File{path: path}
	for _, o := range options {
		o(f)
	}
	if err := f.open(); err != nil {
		return nil, cmp.Or(f.fault(err), f.Discard())
	}
	return f, nil
}

// Write writes a whole file by a function.
func Write(path string, fill func(io.Writer) error, options ...Option) error {
	f, err := Create(path, options...)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		_ = f.Discard() // err is the cause
		return err
	}
	return f.Commit()
}

// WriteText writes a whole file that has this text.
func WriteText(path, text string) error {
	return Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	if f.noWait && f.target == "" {
		_ = f.out.SetWriteDeadline(time.Now().Add(patience)) // what has none never waits for a reader
	}
	n, err := f.out.Write(b)
	return n, f.fault(err)
}

// Commit puts the file in its place. If that fails it is as after Discard.
// After either both do nothing.
func (f *File) Commit() error {
	if f.done {
		return nil
	}
	var err error
	if f.target != "" {
		err = f.out.Sync()
	}
	pending.Lock()
	defer pending.Unlock()
	if err == nil && f.target != "" {
		err = f.publish()
	}
	return f.fault(cmp.Or(err, f.drop()))
}

// Discard drops what was written. A regular file that was there stays.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	pending.Lock()
	defer pending.Unlock()
	return f.fault(f.drop())
}

// publish gives the file its name or, where that can't be, its content to the
// file of that name.
func (f *File) publish() error {
	if f.stage == "" {
		return f.overwrite()
	}
	err := os.Rename(f.stage, f.target)
	if errors.Is(err, unix.EBUSY) { // the target is a mount of its own
		return f.overwrite()
	}
	if err == nil {
		f.stage, f.made = "", nil
		syncDirectory(filepath.Dir(f.target))
	}
	return err
}

// drop gives up what was held until the file is in its place. Until that is done, a signal waits.
func (f *File) drop() error {
	defer f.forget()
	f.done = true
	var err error
	if f.out != nil && !f.shared {
		err = f.out.Close()
	}
	f.removeTraces()
	return err
}

// removeTraces removes what a file leaves that was not put in its place.
func (f *File) removeTraces() {
	if f.stage != "" {
		_ = os.Remove(f.stage) // nothing else could be done about it
	}
	for i := len(f.made) - 1; i >= 0; i-- {
		_ = os.Remove(f.made[i]) // one that others have put something into stays
	}
}

// fault says of an error which file it is about, by the name that the user gave.
func (f *File) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", f.path, Cause(err))
}

// Cause returns what an error of package os is about, without its operation and its names: for messages that name the
// file as the user knows it. Any other error stays.
func Cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
