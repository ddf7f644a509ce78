package files

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// FS returns the files as package io/fs has them. All its calls end with ctx. Its files are io.ReaderAt and io.Seeker,
// too.
func (c *Client) FS(ctx context.Context) fs.FS { return fsys{c, ctx} }

// fsys is a Client as an fs.FS.
type fsys struct {
	client *Client
	ctx    context.Context
}

var _ interface {
	fs.ReadDirFS
	fs.ReadFileFS
	fs.StatFS
} = fsys{}

// proper refuses what is no name of package io/fs, as that wants it.
func proper(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

func (s fsys) Open(name string) (fs.File, error) {
	if err := proper("open", name); err != nil {
		return nil, err
	}
	f, err := s.client.Open(s.ctx, name)
	if errors.Is(err, syscall.EISDIR) {
		i, err := s.client.Stat(s.ctx, name)
		if err != nil {
			return nil, err
		}
		return &fsDir{of: s, name: name, info: i}, nil
	}
	if err != nil {
		return nil, err
	}
	section := io.NewSectionReader(within{f, s.ctx}, 0, f.info.size)
	return &fsFile{section, bufio.NewReaderSize(section, SmallBytes), f}, nil
}

func (s fsys) Stat(name string) (fs.FileInfo, error) {
	if err := proper("stat", name); err != nil {
		return nil, err
	}
	return s.client.Stat(s.ctx, name)
}

func (s fsys) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := proper("readdir", name); err != nil {
		return nil, err
	}
	all, err := s.client.ReadDir(s.ctx, name)
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, len(all))
	for k, i := range all {
		entries[k] = i
	}
	return entries, nil
}

// fewBytes are what ReadFile has memory for before any have arrived.
const fewBytes = 1 << 20 // 1 MiB

func (s fsys) ReadFile(name string) (content []byte, err error) {
	if err := proper("open", name); err != nil {
		return nil, err
	}
	f, err := s.client.Open(s.ctx, name)
	if err != nil {
		return nil, err
	}
	content = []byte{}
	for have := int64(0); have < f.info.size && err == nil; have = int64(len(content)) {
		// No more memory than as much again as has arrived, whatever the server says.
		part := min(f.info.size-have, max(have, fewBytes))
		content = slices.Grow(content, int(part))[:have+part]
		var n int
		n, err = f.ReadAt(s.ctx, content[have:], have)
		content = content[:have+int64(n)]
	}
	return content, errors.Join(err, f.Close())
}

// within is a File whose calls end with a context.
type within struct {
	file *File
	ctx  context.Context
}

func (w within) ReadAt(p []byte, off int64) (int, error) { return w.file.ReadAt(w.ctx, p, off) }

// fsFile is a File as an fs.File. A Read of little is no request of its own.
type fsFile struct {
	section *io.SectionReader
	ahead   *bufio.Reader
	file    *File
}

func (f *fsFile) Read(p []byte) (int, error)              { return f.ahead.Read(p) }
func (f *fsFile) ReadAt(p []byte, off int64) (int, error) { return f.section.ReadAt(p, off) }

// Seek moves to an offset. What was read ahead is read again.
func (f *fsFile) Seek(off int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		off -= int64(f.ahead.Buffered())
	}
	at, err := f.section.Seek(off, whence)
	if err == nil {
		f.ahead.Reset(f.section)
	}
	return at, err
}

func (f *fsFile) Stat() (fs.FileInfo, error) { return f.file.info, nil }
func (f *fsFile) Close() error               { return f.file.Close() }

// fsDir is a directory as an fs.ReadDirFile. It is listed when it is first read.
type fsDir struct {
	of   fsys
	name string
	info Info
	rest []fs.DirEntry
	read bool
}

func (d *fsDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *fsDir) Close() error               { return nil }

func (d *fsDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: syscall.EISDIR}
}

func (d *fsDir) ReadDir(n int) (entries []fs.DirEntry, err error) {
	if !d.read {
		if d.rest, err = d.of.ReadDir(d.name); err != nil {
			return nil, err
		}
		d.read = true
	}
	k := len(d.rest)
	if n > 0 {
		k = min(k, n)
	}
	entries, d.rest = d.rest[:k:k], d.rest[k:]
	if n > 0 && k == 0 {
		return nil, io.EOF
	}
	return entries, nil
}
