package files

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"pinwheel/comm/files/internal/place"
	"pinwheel/comm/files/internal/unsized"
)

// fileKey is which file it is, among those that exist.
type fileKey struct{ dev, ino uint64 }

// stamp is what the kernel says of a file, and changes whenever its content does.
type stamp struct {
	fileKey
	size     int64
	modified syscall.Timespec // of the content
	chgNs    int64            // of the inode, which nobody can set
	blocks   int64            // of 512 bytes; they change when a hole is punched, and when the file is written out
	mode     fs.FileMode
}

// stampOf asks the kernel about an open file.
func stampOf(f *os.File) (s stamp, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return s, err
	}
	if e := c.Control(func(fd uintptr) { s, err = stampOfFD(int(fd)) }); e != nil {
		return s, e
	}
	return s, err
}

func stampOfFD(fd int) (stamp, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return stamp{}, os.NewSyscallError("fstat", err)
	}
	return makeStamp(&st), nil
}

func makeStamp(st *syscall.Stat_t) stamp {
	s := stamp{
		fileKey: fileKey{st.Dev, st.Ino}, size: st.Size, modified: st.Mtim, chgNs: st.Ctim.Nano(), blocks: st.Blocks,
		mode: fs.FileMode(st.Mode & 0o777),
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
	case syscall.S_IFDIR:
		s.mode |= fs.ModeDir
	case syscall.S_IFLNK:
		s.mode |= fs.ModeSymlink
	default:
		s.mode |= fs.ModeIrregular
	}
	return s
}

// regular fails for what is no regular file, and for one that does not tell its size. fd is where the file is open.
func (s stamp) regular(fd int) error {
	switch {
	case s.mode.IsDir():
		return syscall.EISDIR
	case !s.mode.IsRegular():
		return fmt.Errorf("%w: no regular file", syscall.EINVAL)
	}
	return unsized.Check(fd, s.size)
}

// same tells whether the content is the same, as far as the clock of the kernel tells.
func (s stamp) same(o stamp) bool {
	return s.fileKey == o.fileKey && s.size == o.size && s.modified == o.modified && s.chgNs == o.chgNs
}

// tick is more than the time between two stamps that the kernel makes equal (CONFIG_HZ is 100 or more; since Linux 6.13
// stamps that were looked at are finer).
const tick = 50 * time.Millisecond

// settled tells whether a change from now on would make another stamp.
func (s stamp) settled(now time.Time) bool { return now.UnixNano()-s.chgNs > tick.Nanoseconds() }

const maxETag = 80 // bytes

// etag is the tag of a regular file or a directory.
func (s stamp) etag() ETag {
	if s.mode.IsDir() {
		return ETag(place.Of(s.dev, s.ino))
	}
	if !s.mode.IsRegular() {
		return ""
	}
	b := strconv.AppendUint(make([]byte, 0, maxETag), s.ino, 16)
	for _, v := range []int64{s.size, s.modified.Nano(), s.chgNs} {
		b = strconv.AppendInt(append(b, '-'), v, 16)
	}
	return ETag(b)
}

func (s stamp) info(name string) Info {
	return Info{
		name: name, size: s.size, mode: s.mode, modTime: time.Unix(s.modified.Unix()), etag: s.etag(),
		room: s.blocks * 512,
	}
}
