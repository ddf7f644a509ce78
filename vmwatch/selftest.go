package vmwatch

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// selfTestTries is how often a change is tried: another thread may take the
// address between two of its calls.
const selfTestTries = 3

// selfTestPages is the size of what it changes. Some changes take the second or the third page away.
const selfTestPages = 4

// selfTest performs kinds of change, if it is safe to perform them here, and
// fails on the first that w would let pass. Kinds which this kernel or this
// process can't perform are returned as skipped.
func selfTest(w *Watcher, kinds []change.Kind) (tested, skipped []string, err error) {
	for _, k := range kinds {
		var noticed bool
		var refused error
		for try := 0; try < selfTestTries; try++ {
			if noticed, refused, err = w.notices(k); err == nil && refused == nil {
				break
			}
		}
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", k.Name, err)
		case refused != nil:
			skipped = append(skipped, fmt.Sprintf("%s (%v)", k.Name, refused))
		case !noticed && !k.Keeps:
			return nil, nil, fmt.Errorf("%s went unseen", k.Name)
		default:
			tested = append(tested, k.Name)
		}
	}
	return tested, skipped, nil
}

// notices performs k on a watched and pinned Subject and reports whether a
// cache would have learned of it, or would never have cached it. refused is why
// this kernel or process can't perform k.
func (w *Watcher) notices(k change.Kind) (noticed bool, refused, err error) {
	s, err := k.Make(selfTestPages)
	if err != nil {
		return false, err, nil
	}
	defer s.Free()
	defer w.changesAreOver(s.Range)
	token, verify, err := w.Watch(s.Range)
	if errors.Is(err, ErrNotCacheable) {
		return true, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	defer w.Unwatch(token)
	w.Drain(func(mem.Range) {})
	w.Pinning(token)
	unpin, err := hold(s.Bytes())
	if errors.Is(err, unix.EPERM) && w.frames == nil { // by the seccomp profile of a container
		unpin, err = func() {}, nil // only frames could come back to where they were
	}
	if err != nil {
		return false, nil, err
	}
	defer unpin()
	if err := w.Pinned(token); err != nil {
		return false, nil, err
	}
	before := w.Generation()
	if err := k.Do(s); err != nil {
		return false, err, nil
	}
	s.Fill(2)
	if verify && !w.Unchanged(token) {
		return true, nil, nil
	}
	if w.Generation() == before {
		return false, nil, nil
	}
	w.Drain(func(r mem.Range) { noticed = noticed || r.Overlaps(s.Range) })
	return noticed, nil, nil
}

// changesAreOver tells that nothing changes r any more: its address may be a buffer's next.
func (w *Watcher) changesAreOver(r mem.Range) {
	if n, ok := w.source.note.(interface{ changesAreOver(mem.Range) }); ok {
		w.Drain(func(mem.Range) {})
		n.changesAreOver(r)
	}
}

// hold keeps the pages of b from being used elsewhere, as a registration
// would: their frame numbers stay theirs until release. A pipe takes references
// to pages without copying them (vmsplice(2)).
func hold(b []byte) (release func(), err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("pipe2: %w", err)
	}
	release = sync.OnceFunc(func() {
		unix.Close(p[0])
		unix.Close(p[1])
	})
	for part := range slices.Chunk(b, int(mem.PageSize)) {
		iov := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}
		// A page is taken whole or not at all.
		if _, err := unix.Vmsplice(p[1], iov, unix.SPLICE_F_NONBLOCK); err != nil {
			release()
			return nil, fmt.Errorf("vmsplice: %w", err)
		}
	}
	return release, nil
}
