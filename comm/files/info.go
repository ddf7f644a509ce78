package files

import (
	"io/fs"
	"time"
)

// ETag identifies the content of a file of one server: equal tags mean equal bytes. It is opaque and has at most 80
// bytes. It is made of what the kernel says of the file, which tells nothing of some writers: one that stores again to a
// shared mapping, before the page is written out, or again within the resolution of the clock.
type ETag string

// Info describes a file or directory of a server. It is an fs.FileInfo and an fs.DirEntry.
type Info struct {
	name    string // its last element
	size    int64
	mode    fs.FileMode
	modTime time.Time
	etag    ETag
	room    int64 // bytes
}

// Name returns the last element of the name.
func (i Info) Name() string { return i.name }

// Size returns the length in bytes.
func (i Info) Size() int64 { return i.size }

// Mode returns type and permissions.
func (i Info) Mode() fs.FileMode { return i.mode }

// Type returns the type bits of the mode.
func (i Info) Type() fs.FileMode { return i.mode.Type() }

// ModTime returns when the content changed last, by the clock of the server.
func (i Info) ModTime() time.Time { return i.modTime }

// Allocated returns how many bytes the disk of the server holds for it: fewer than Size if there are holes.
func (i Info) Allocated() int64 { return i.room }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.mode.IsDir() }

// Info returns i.
func (i Info) Info() (fs.FileInfo, error) { return i, nil }

// Sys returns the ETag.
func (i Info) Sys() any { return i.etag }

// ETag returns the tag of the content of a regular file. That of a directory tells which one of all machines it is, or
// is empty.
func (i Info) ETag() ETag { return i.etag }

func (i Info) String() string { return fs.FormatFileInfo(i) }
