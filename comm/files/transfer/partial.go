package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/newfile"
	"pinwheel/internal/outfile"
)

// newKey is the key of partial files that nobody resumes.
const newKey = "0000000000000000"

// maxBaseBytes of a name are part of the partial one, for that to fit into NAME_MAX, 255 of <linux/limits.h>.
const maxBaseBytes = 200

var partialPattern = regexp.MustCompile(`(?s)^\.(.+)\.([0-9a-f]{16})\.partial$`)

// isPartial tells whether a name is one of partialName. Such files are neither got nor put: their names are needed.
func isPartial(name string) bool {
	return strings.HasSuffix(name, ".partial") && partialPattern.MatchString(name)
}

// partialName returns the name that a file has until it is complete. The key says which version of which source it is
// from.
func partialName(target, key string) string {
	if len(target) > maxBaseBytes {
		target = target[:maxBaseBytes-17] + "." + shortHash(target)
	}
	return "." + target + "." + key + ".partial"
}

// resumeKey names a version of a source: nobody goes on with a partial file of another one.
func resumeKey(source string, size int64, version string) string {
	return shortHash(fmt.Sprintf("%q %d %q", source, size, version))
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// partial is a file that is being written under another name, from its first byte to its last. It is for one
// goroutine.
type partial struct {
	folder       *folder
	name, target string
	file         newfile.File
	bytes        int64 // that are there, from the start
	end          int64 // of the file on the disk: there may be a hole up to bytes
	mode         fs.FileMode
	modified     time.Time
	replaces     bool // something has the name of the target
}

// errBusy says that another process writes the same file.
var errBusy = errors.New("another process copies to it")

// create begins to write a file. With resume, what is there under the same key stays: bytes says how much. folder must
// stay open until commit or discard.
func (d *folder) create(target, key string, mode fs.FileMode, resume bool) (*partial, error) {
	p := &partial{folder: d, name: partialName(target, key), target: target, mode: mode.Perm()}
	f, err := newfile.Continue(d.dir, p.name, p.mode|0o600, lock)
	if err != nil {
		return nil, d.fault(target, err)
	}
	info, err := f.Stat()
	if err == nil && !resume && info.Size() > 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, d.fault(target, err)
	}
	p.file = newfile.Opened(f, d.device)
	if resume {
		p.bytes, p.end = info.Size(), info.Size()
	}
	return p, nil
}

// lock keeps other copies from a partial file. File systems without locks are used by one process at a time, or at
// one's own risk.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errBusy
	}
	return nil
}

// holeBytes is the unit in which zeros become holes.
const holeBytes = 64 << 10 // 64 KiB

var zeros [holeBytes]byte

// write appends bytes. Whole blocks of zeros become holes.
func (p *partial) write(b []byte) error {
	for len(b) > 0 {
		data, hole := p.untilHole(b)
		if err := p.writeAll(b[:data]); err != nil {
			return err
		}
		p.bytes += int64(hole)
		b = b[data+hole:]
	}
	return nil
}

// untilHole returns how many bytes come before a hole, and how long that is.
func (p *partial) untilHole(b []byte) (data, hole int) {
	for data < len(b) {
		n := holeBytes - int((p.bytes+int64(data))%holeBytes)
		if len(b)-data < n {
			return len(b), 0
		}
		if n == holeBytes && bytes.Equal(b[data:data+n], zeros[:]) {
			return data, n
		}
		data += n
	}
	return data, 0
}

func (p *partial) writeAll(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := p.file.WriteAt(b, p.bytes)
	p.bytes += int64(n)
	p.end = p.bytes
	if err != nil {
		return p.fault(fmt.Errorf("after %d bytes: %w", p.bytes, outfile.Cause(err)))
	}
	return nil
}

// writeFileRange appends n bytes of a file from an offset, which the kernel copies (copy_file_range(2)). It fails with
// errors.ErrUnsupported between some file systems.
func (p *partial) writeFileRange(from *os.File, off, n int64) (copied int64, err error) {
	in, err := from.SyscallConn()
	for copied < n && err == nil {
		var k int
		var failed error
		err = in.Control(func(fd uintptr) {
			to := p.bytes
			k, failed = unix.CopyFileRange(int(fd), &off, int(p.file.Fd()), &to, int(n-copied), 0)
		})
		switch {
		case err != nil || errors.Is(failed, unix.EINTR):
		case failed != nil:
			err = failed
		case k == 0: // the file is shorter, or of a file system that copies nothing
			err = errors.ErrUnsupported
		default:
			copied += int64(k)
			p.bytes += int64(k)
			p.end = p.bytes
		}
	}
	return copied, err
}

// preallocate asks for the room of a whole file, where that costs little: it finds a full disk before anything is
// transferred. The size stays what is there, as it says where to go on.
func (p *partial) preallocate(size int64) error {
	fd := int(p.file.Fd())
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil || st.Type != unix.EXT4_SUPER_MAGIC && st.Type != unix.XFS_SUPER_MAGIC {
		return nil // tmpfs would zero all pages, and others copy on write
	}
	err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, p.bytes, size-p.bytes)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return p.fault(fmt.Errorf("no room for %d bytes: %w", size, err))
	}
	return nil // else it was a hint
}

// startWriting makes the kernel write n bytes at from to the disk, and does not wait: the fsync at the end takes less.
func (p *partial) startWriting(from, n int64) {
	_ = unix.SyncFileRange(int(p.file.Fd()), from, n, unix.SYNC_FILE_RANGE_WRITE) // a hint
}

// finish gives the file its size, mode and time.
func (p *partial) finish() (err error) {
	if p.end != p.bytes { // it ends with a hole
		err = p.file.Truncate(p.bytes)
	}
	if err == nil && p.mode&0o600 != 0o600 { // open(2) was given more, and has applied the umask
		var own fs.FileInfo
		if own, err = p.file.Stat(); err == nil {
			err = p.file.Chmod(own.Mode() & p.mode)
		}
	}
	if err == nil {
		err = newfile.SetModTime(p.file.File, p.modified)
	}
	return p.fault(err)
}

// commit makes a finished file durable and gives it its name.
func (p *partial) commit() error {
	if err := p.file.Sync(); err != nil {
		return errors.Join(p.fault(err), p.discard())
	}
	if err := p.rename(); err != nil {
		return err
	}
	return p.folder.sync()
}

// rename gives a file its name that is durable already, and ends p.
func (p *partial) rename() error {
	if err := p.place(); err != nil {
		return errors.Join(p.fault(err), p.discard())
	}
	return p.fault(p.file.Close())
}

// keep ends p, and leaves the partial file for a copy that resumes.
func (p *partial) keep() error { return p.fault(p.file.Close()) }

// discard ends p and removes the partial file.
func (p *partial) discard() error {
	var err error
	if p.name != "" {
		err = p.folder.root.Remove(p.name) // the lock is held until the name is gone
	}
	return p.fault(errors.Join(err, p.file.Close()))
}

func (p *partial) fault(err error) error { return p.folder.fault(p.target, err) }
