package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"pinwheel/comm/files"
)

// getWorkers have a directory or a group of small files each.
const getWorkers = 8

// directory copies a tree.
func (g *getter) directory(name string, info files.Info, local string) error {
	if err := g.openTop(info, local); err != nil {
		return err
	}
	defer g.top.drop()
	if err := notInto(g.top.place, info.ETag(), local); err != nil {
		return err
	}
	g.durable = newBatch(g.settled)
	g.made = []attributes{{".", g.options.made.note(".", g.top.made), info}}
	g.top.hold()
	if err := g.run(getWorkers, func() { g.list(g.top, name, ".") }); err != nil {
		g.durable.discard()
		return err
	}
	g.durable.flush()
	if err := context.Cause(g.ctx); err != nil {
		return err
	}
	g.finishDirectories()
	return g.top.syncAll()
}

// openTop opens the directory that becomes a copy, or makes it.
func (g *getter) openTop(info files.Info, local string) (err error) {
	if _, err := os.Stat(local); err == nil { // it may be a link, which the user has named
		g.top, err = openFolder(local)
		return err
	}
	local = filepath.Clean(local)
	parent, err := g.parent(local)
	if err == nil {
		defer parent.drop()
		g.top, err = parent.enter(filepath.Base(local), info.Mode())
	}
	return err
}

// list copies what is in a directory. d was held for it.
func (g *getter) list(d *folder, name, at string) {
	defer d.drop()
	if g.ended() {
		return
	}
	g.directories.Inc()
	var group []smallFile
	var bytes int64
	flush := func() {
		g.group(d, name, group)
		group, bytes = nil, 0
	}
	for info, err := range g.client.List(g.ctx, name) {
		if err == nil {
			if err = checkName(info.Name()); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
		if err != nil {
			g.fail(err)
			continue
		}
		small, have := g.entry(d, name, at, info)
		if !small {
			continue
		}
		group = append(group, smallFile{info.Name(), have})
		if bytes += info.Size(); len(group) == groupFiles || bytes >= groupBytes {
			flush()
		}
	}
	flush()
}

// smallFile is one that goes with others.
type smallFile struct {
	name string
	have fs.FileInfo // what is there under the name; nil: nothing
}

// entry begins to copy something of a directory, unless it is a small file. have is what is there under its name.
func (g *getter) entry(d *folder, name, at string, info files.Info) (small bool, have fs.FileInfo) {
	switch {
	case info.IsDir():
		d.hold()
		g.small.push(func() { g.enter(d, path.Join(name, info.Name()), path.Join(at, info.Name()), info) })
		return false, nil
	case !info.Mode().IsRegular() || isPartial(info.Name()):
		g.skipped.Inc()
		return false, nil
	}
	g.options.Meter.TotalBytes.Add(info.Size())
	have = d.at(info.Name())
	compare := looksSame(have, info)
	if compare && !g.options.Compare {
		g.leave(info.Size())
		return false, nil
	}
	if info.Size() <= files.SmallBytes {
		return true, have
	}
	d.hold()
	g.large.push(func() {
		defer d.drop()
		from := path.Join(name, info.Name())
		switch {
		case g.ended():
		case compare && g.identical(g.client, d, info.Name(), from, info.Size()):
			g.leave(info.Size())
		default:
			g.fail(g.file(d, from, info.Name()))
		}
	})
	return false, nil
}

// enter makes a directory, and copies what is in it. d was held for it.
func (g *getter) enter(d *folder, name, at string, info files.Info) {
	defer d.drop()
	if g.ended() {
		return
	}
	if err := notInto(g.top.place, info.ETag(), name); err != nil {
		g.fail(err)
		return
	}
	in, err := d.enter(info.Name(), info.Mode())
	if err != nil {
		g.fail(err)
		return
	}
	g.mu.Lock()
	g.made = append(g.made, attributes{at, g.options.made.note(at, in.made), info})
	g.mu.Unlock()
	g.list(in, name, at)
}

const (
	// groupFiles go with one request: so many that the way there and back costs nothing.
	groupFiles = 128
	groupBytes = 2 << 20 // 2 MiB, after which a group is full
)

// group copies small files of a directory.
func (g *getter) group(d *folder, name string, targets []smallFile) {
	if len(targets) == 0 {
		return
	}
	d.hold()
	g.small.push(func() {
		defer d.drop()
		if g.ended() {
			return
		}
		names := make([]string, len(targets))
		for i, target := range targets {
			names[i] = path.Join(name, target.name)
		}
		got := func(i int, info files.Info, content []byte, err error) error {
			if err == nil {
				err = g.writeSmall(d, targets[i], info, content)
			}
			if errors.Is(err, files.ErrNotSmall) || again(err) { // it has grown, or changed
				err = g.file(d, names[i], targets[i].name)
			}
			if err != nil && !fatal(err) {
				g.fail(err)
				err = nil
			}
			return err
		}
		g.fail(g.client.ReadMany(g.ctx, names, g.options.Verify, got))
	})
}

// writeSmall writes a file, which becomes durable with others, unless it is there.
func (g *getter) writeSmall(d *folder, target smallFile, info files.Info, content []byte) error {
	if g.options.Compare && looksSame(target.have, info) && d.holds(target.name, content) {
		g.leave(info.Size())
		return nil
	}
	if target.have != nil && !target.have.Mode().IsRegular() {
		if err := d.replaceable(target.name); err != nil {
			return err
		}
	}
	p, err := d.createUnnamed(target.name, info.Mode())
	if err != nil {
		return err
	}
	p.modified, p.replaces = info.ModTime(), target.have != nil
	if err = p.write(content); err == nil {
		err = p.finish()
	}
	if err != nil {
		return errors.Join(err, p.discard())
	}
	g.options.Meter.Bytes.Add(int64(len(content)))
	d.hold() // until it has its name
	g.durable.add(p)
	return nil
}

// settled hears of each small file.
func (g *getter) settled(p *partial, err error) {
	if err == nil {
		g.count(p.bytes, 0)
	}
	g.fail(err)
	p.folder.drop()
}

// finishDirectories gives directories their modes and times, each before the one that it is in, which may become
// closed.
func (g *getter) finishDirectories() {
	for i := len(g.made) - 1; i >= 0; i-- {
		d := g.made[i]
		var err error
		if mode := d.info.Mode().Perm(); d.made && mode&0o700 != 0o700 {
			have, statErr := g.top.root.Lstat(d.name)
			if err = statErr; err == nil { // mkdir(2) was given more, and has applied the umask
				err = g.top.root.Chmod(d.name, have.Mode()&mode)
			}
		}
		if err == nil {
			err = g.top.root.Chtimes(d.name, time.Time{}, d.info.ModTime())
		}
		g.finished(d, g.top.fault(d.name, err))
	}
}
