package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/console"
	"pinwheel/internal/cpulist"
	"pinwheel/predictor"
)

// Store is a directory of profiles. Processes share it without locks: files are replaced whole, and a process that
// finds none runs without.
type Store struct {
	Dir string
	// LimitBytes is how large the directory may become. 0: there is no limit.
	LimitBytes int64
}

// Errors of Load.
var (
	// ErrNone: there is nothing about the program.
	ErrNone = errors.New("no profile")
	// ErrOtherJob: there are profiles of the program, but of other jobs.
	ErrOtherJob = errors.New("the profile does not match")
)

const extension = ".profile"

// Load returns what a rank has learned in the last run of the job. With force, a profile of another job of the program will
// do. It fails with ErrNone, ErrOtherJob and the errors of Open. Of a job that has a profile, a rank that is not in it has
// none, whatever other jobs have. libraries, if not nil, are those that are loaded. from is the file; nil if it is of
// another job.
func (s Store) Load(k Key, rank int, libraries *Modules, force bool) (l *predictor.Trained, from *Origin, err error) {
	own := filepath.Join(s.Dir, k.directory())
	l, from, err = s.loadFrom(own, rank, libraries, force)
	if !errors.Is(err, ErrNone) {
		return l, from, err
	}
	if files, _ := ours(own); len(files) > 0 && !force { // the job was run before, only this rank has learned nothing
		return nil, nil, ErrNone
	}
	for _, dir := range s.jobs(k.prefix()) {
		if force {
			if l, _, err := s.loadFrom(dir, rank, libraries, force); err == nil {
				return l, nil, nil
			}
		} else if why := differs(k, dir); why != "" {
			return nil, nil, fmt.Errorf("%w: %s", ErrOtherJob, why)
		}
	}
	return nil, nil, err
}

// Origin is the file that trained entries were loaded from.
type Origin struct {
	Path string
	info fs.FileInfo
}

// Discard removes the file, unless another one has taken its place since: then replaced is true.
func (o *Origin) Discard() (replaced bool, err error) {
	now, err := os.Lstat(o.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another rank was faster
		return false, nil
	case err != nil:
		return false, err
	case !os.SameFile(now, o.info) || !now.ModTime().Equal(o.info.ModTime()):
		return true, nil
	}
	if err = os.Remove(o.Path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return false, err
}

// differs names the parts of a key that differ from those of the profiles in a directory; "" if none can be read.
func differs(k Key, dir string) string {
	names, _ := filepath.Glob(filepath.Join(globQuoted(dir), "*"+extension)) // the pattern is valid
	for _, name := range names {
		if f, err := Open(name); err == nil {
			_ = f.Close() // only read from
			return k.Differs(f.Key)
		}
	}
	return ""
}

func globQuoted(dir string) string { return regexp.MustCompile(`[\\*?[]`).ReplaceAllString(dir, `\$0`) }

// mostOpened bounds how many files of a job are opened to find a rank.
const mostOpened = 16

// loadFrom loads from the directory of a job. It fails with ErrNone if no file there has the rank.
func (s Store) loadFrom(dir string, rank int, libraries *Modules, force bool) (*predictor.Trained, *Origin, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNone
	}
	if err != nil {
		return nil, nil, err
	}
	var infos []fs.FileInfo
	for _, e := range entries {
		if ranks, ok := ranksOf(e.Name()); ok && ranks(rank) {
			if info, err := e.Info(); err == nil {
				infos = append(infos, info)
			}
		}
	}
	newestFirst(infos)
	err = ErrNone
	for _, info := range infos[:min(len(infos), mostOpened)] {
		path := filepath.Join(dir, info.Name())
		l, e := load(path, rank, libraries, force)
		if e == nil {
			return l, &Origin{path, info}, nil
		}
		if !errors.Is(e, ErrNoRank) {
			err = e
		}
	}
	return nil, nil, err
}

func load(path string, rank int, libraries *Modules, force bool) (*predictor.Trained, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	if libraries != nil && !force {
		if name := libraries.changed(f.Modules); name != "" {
			return nil, fmt.Errorf("%w: %s has changed", ErrOtherJob, console.Printable(name))
		}
	}
	l, err := f.Trained(rank)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return l, err
}

// Save writes what ranks of this node have learned. The file lists the modules of all of them.
func (s Store) Save(k Key, parts []Part) error {
	ranks, modules := make([]int, len(parts)), make([][]Module, len(parts))
	for i, p := range parts {
		ranks[i], modules[i] = p.Rank, p.Modules
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	if len(ranks) == 0 {
		return nil
	}
	dir, name := filepath.Join(s.Dir, k.directory()), fileName(ranks)
	if err := Write(filepath.Join(dir, name), k, union(modules...), parts); err != nil {
		return err
	}
	s.removeCovered(dir, name, ranks)
	if ranks[0] == 0 { // one node of the job is enough
		s.trim(filepath.Base(dir))
	}
	return nil
}

// Used notes that a job was run again, so that its profile is not the next to go. Its rank 0 does so.
func (s Store) Used(k Key) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(s.Dir, k.directory()), now, now) // else it goes earlier
}

// mostRanksInName is how long a list of ranks may be in the name of a file.
const mostRanksInName = 120

// fileName is that of a profile of these ranks, in ascending order: a list of ranks, or else the first, the last and
// how many.
func fileName(ranks []int) string {
	if list := cpulist.Format(ranks); len(list) <= mostRanksInName {
		return list + extension
	}
	return fmt.Sprintf("%d-%d~%d%s", ranks[0], ranks[len(ranks)-1], len(ranks), extension)
}

// ranksOf returns which ranks a file of this name may have; ok is false if it is no name of a profile.
func ranksOf(name string) (has func(rank int) bool, ok bool) {
	list, ok := strings.CutSuffix(name, extension)
	if !ok {
		return nil, false
	}
	list, _, _ = strings.Cut(list, "~")
	spans, err := cpulist.Spans(list)
	return func(rank int) bool {
		return slices.ContainsFunc(spans, func(s cpulist.Span) bool { return rank >= s.First && rank <= s.Last })
	}, err == nil
}

// removeCovered removes files of the job that a new one makes useless: a job that runs with other numbers of ranks on
// its nodes leaves files of other names.
func (s Store) removeCovered(dir, name string, ranks []int) {
	entries, _ := os.ReadDir(dir) // what stays does no harm: the newest file counts
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, ok := ranksOf(e.Name()); !ok || e.Name() == name {
			if info, err := e.Info(); err == nil && isLeftOver(info) {
				_ = os.Remove(path)
			}
			continue
		}
		f, err := Open(path)
		if err != nil {
			continue
		}
		covered := !slices.ContainsFunc(f.ranks, func(r int) bool { _, ok := slices.BinarySearch(ranks, r); return !ok })
		_ = f.Close() // only read from
		if covered {
			_ = os.Remove(path)
		}
	}
}

// isLeftOver reports whether a file was left by a process that was killed while it wrote.
func isLeftOver(info fs.FileInfo) bool {
	const writing = time.Hour // nobody takes as long
	return strings.HasSuffix(info.Name(), ".partial") && time.Since(info.ModTime()) > writing
}

// jobPattern is what the name of a job's directory looks like. trim touches no other.
var jobPattern = regexp.MustCompile(`-[0-9a-f]{16}$`)

// jobs returns the directories of the jobs of a program, or of all programs without a prefix, the last used first.
func (s Store) jobs(prefix string) (dirs []string) {
	entries, _ := os.ReadDir(s.Dir) // of a directory that can't be read nothing is known
	var infos []fs.FileInfo
	for _, e := range entries {
		at := jobPattern.FindStringIndex(e.Name())
		if at == nil || !e.IsDir() || prefix != "" && e.Name()[:at[0]+1] != prefix {
			continue
		}
		if info, err := e.Info(); err == nil {
			infos = append(infos, info)
		}
	}
	newestFirst(infos)
	for _, info := range infos {
		dirs = append(dirs, filepath.Join(s.Dir, info.Name()))
	}
	return dirs
}

func newestFirst(infos []fs.FileInfo) {
	slices.SortStableFunc(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
}

// trim removes the jobs that were used least recently until the directory is within its limit. That of the
// name stays.
func (s Store) trim(name string) {
	if s.LimitBytes <= 0 {
		return
	}
	var sum int64
	for _, dir := range s.jobs("") {
		files, err := ours(dir)
		if err != nil {
			continue
		}
		for _, f := range files {
			sum += f.Size()
		}
		if sum <= s.LimitBytes || filepath.Base(dir) == name {
			continue
		}
		for _, f := range files {
			_ = os.Remove(filepath.Join(dir, f.Name())) // another process may have removed it
		}
		_ = unix.Rmdir(dir) // what others have put there keeps it
	}
}

// ours returns the files of a job's directory that this package has made.
func ours(dir string) (files []fs.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		_, ok := ranksOf(e.Name())
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && (ok || isLeftOver(info)) {
			files = append(files, info)
		}
	}
	return files, err
}
