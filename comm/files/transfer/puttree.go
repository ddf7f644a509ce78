package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"syscall"

	"pinwheel/comm/files"
)

// putWorkers have a directory or a small file each. The server makes durable together what comes at the same time.
const putWorkers = 96

// directory copies a tree.
func (p *putter) directory(local, name string, info fs.FileInfo) error {
	d, err := openFolder(local)
	if err != nil {
		return err
	}
	if err := p.run(putWorkers, func() { p.begin(d, name, info) }); err != nil {
		return err
	}
	return p.finishDirectories()
}

// finishDirectories gives directories their modes and times, each before the one that it is in, which may become
// closed.
func (p *putter) finishDirectories() error {
	for i := len(p.made) - 1; i >= 0; i-- {
		d := p.made[i]
		a := files.Attributes{Keep: 0o777, ModTime: d.info.ModTime()}
		if d.made {
			a.Keep = d.info.Mode()
		}
		p.finished(d, p.client.SetAttr(p.ctx, d.name, a))
	}
	return context.Cause(p.ctx)
}

// begin makes the copy of the directory that was named, and copies what is in it. It drops d.
func (p *putter) begin(d *folder, name string, info fs.FileInfo) {
	defer d.drop()
	made, ok := p.makeDir(name, info)
	if !ok {
		return
	}
	if top, err := p.client.Stat(p.ctx, name); err == nil { // else nothing is known, and what is wrong shows soon
		p.top = top.ETag()
	}
	if err := notInto(p.top, d.place, d.path); err != nil {
		p.fail(err)
		return
	}
	p.list(d, name, made)
}

// makeDir makes a directory at the server, unless it is there. ok tells whether it is now.
func (p *putter) makeDir(name string, info fs.FileInfo) (made, ok bool) {
	if p.ended() {
		return false, false
	}
	made, err := p.client.Mkdir(p.ctx, name, info.Mode().Perm()|0o700)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		err = fmt.Errorf("%s: something at the server is in the way of a directory", name)
	}
	if err != nil {
		p.fail(err)
		return made, false
	}
	p.directories.Inc()
	p.mu.Lock()
	p.made = append(p.made, attributes{name, p.options.made.note(name, made), info})
	p.mu.Unlock()
	return made, true
}

// list copies what is in a directory. made says that nothing is in that of the server yet.
func (p *putter) list(d *folder, name string, made bool) {
	there := map[string]files.Info{}
	if !made {
		for info, err := range p.client.List(p.ctx, name) {
			if err != nil {
				p.fail(err)
				return
			}
			there[info.Name()] = info
		}
	}
	if _, err := d.dir.Seek(0, io.SeekStart); err != nil { // it was looked at
		p.fail(d.fault("", err))
		return
	}
	for !p.ended() {
		names, err := d.dir.Readdirnames(1024)
		for _, n := range names {
			have, is := there[n]
			p.entry(d, n, path.Join(name, n), have, is)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.fail(d.fault("", err))
			}
			return
		}
	}
}

// entry begins to copy something. have is what the server has under its name, if something is there.
func (p *putter) entry(d *folder, name, target string, have files.Info, there bool) {
	info, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
		return
	case err != nil:
		p.fail(d.fault(name, err))
		return
	case info.IsDir():
		d.hold()
		p.small.push(func() { p.enter(d, name, target, info) })
		return
	case !info.Mode().IsRegular() || isPartial(name):
		p.skipped.Inc()
		return
	}
	p.options.Meter.TotalBytes.Add(info.Size())
	compare := there && looksSame(have, info)
	if compare && !p.options.Compare {
		p.leave(info.Size())
		return
	}
	q, copyFile := p.small, p.smallFile
	if info.Size() > files.SmallBytes {
		q, copyFile = p.large, p.file
	}
	d.hold()
	q.push(func() {
		defer d.drop()
		switch {
		case p.ended():
		case compare && p.identical(p.client, d, name, target, info.Size()):
			p.leave(info.Size())
		default:
			p.fail(copyFile(d, name, target))
		}
	})
}

// enter copies what is in a directory. d was held for it.
func (p *putter) enter(d *folder, name, target string, info fs.FileInfo) {
	defer d.drop()
	root, err := d.root.OpenRoot(name)
	if err != nil {
		p.fail(d.fault(name, err))
		return
	}
	in, err := newFolder(root, filepath.Join(d.path, name))
	if err != nil {
		p.fail(err)
		return
	}
	defer in.drop()
	if err := notInto(p.top, in.place, in.path); err != nil {
		p.fail(err)
		return
	}
	if made, ok := p.makeDir(target, info); ok {
		p.list(in, target, made)
	}
}

// smallFile copies a file with one request.
func (p *putter) smallFile(d *folder, name, target string) error {
	s, err := d.open(name, &p.options.Meter.Bytes)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.info.Size() > files.SmallBytes { // it has grown
		return p.file(d, name, target)
	}
	content := make([]byte, s.info.Size())
	grew := false
	_, err = io.ReadFull(s.File, content)
	if err == nil {
		grew, err = s.changed(p.options.Strict)
	}
	if err == nil {
		o := s.createOptions()
		o.Sum = p.options.Verify
		_, err = p.client.WriteFile(p.ctx, target, content, o)
	}
	switch {
	case again(err) || errors.Is(err, io.EOF): // it changes
		return p.file(d, name, target)
	case err != nil:
		return err
	}
	p.options.Meter.Bytes.Add(s.info.Size())
	p.count(s.info.Size(), 0)
	if grew {
		p.grew(d.fullName(name))
	}
	return nil
}
