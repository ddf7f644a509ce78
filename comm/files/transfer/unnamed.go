package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"

	"pinwheel/comm/files/internal/newfile"
)

// createUnnamed begins to write a file that has no name until it is complete. Where that can't be, it has the name of a
// partial file that nobody resumes.
func (d *folder) createUnnamed(target string, mode fs.FileMode) (*partial, error) {
	f, err := newfile.Create(d.dir, mode|0o600)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return d.create(target, newKey, mode, false)
	case err != nil:
		return nil, d.fault(target, err)
	}
	return &partial{folder: d, target: target, file: newfile.Opened(f, d.device), mode: mode.Perm()}, nil
}

// place gives a partial file the name of its target.
func (p *partial) place() error {
	if p.name != "" {
		return p.folder.root.Rename(p.name, p.target)
	}
	return newfile.Replace(p.file.File, p.folder.dir, p.target, p.replaces, func() string {
		return partialName(p.target, fmt.Sprintf("%016x", rand.Uint64()))
	})
}
