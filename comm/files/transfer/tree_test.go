package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// aTree makes directories and files of all kinds, and returns what of it is copied.
func aTree(t *testing.T, dir string) (copied []string, bytes int64) {
	t.Helper()
	for i := range 300 {
		name := fmt.Sprintf("many/%03d", i)
		put(t, filepath.Join(dir, name), random(i), 0o644)
		copied = append(copied, name)
		bytes += int64(i)
	}
	for name, n := range map[string]int{"empty": 0, "a/b/c/deep": 5, "a/large": 3 << 20, "strange \n\x7f\xff name": 1} {
		put(t, filepath.Join(dir, name), random(n), 0o600)
		copied = append(copied, name)
		bytes += int64(n)
	}
	must(t, os.Mkdir(filepath.Join(dir, "nothing"), 0o755), os.Symlink("empty", filepath.Join(dir, "link")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "a/out")), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	copied = append(copied, "a/", "a/b/", "a/b/c/", "many/", "nothing/")
	for _, d := range []string{"a/b/c", "a/b", "a", "many", "nothing"} {
		must(t, os.Chtimes(filepath.Join(dir, d), longAgo, longAgo))
	}
	slices.Sort(copied)
	return copied, bytes
}

func sameTrees(t *testing.T, from, to string, names []string) {
	t.Helper()
	for _, name := range names {
		a, err := os.Lstat(filepath.Join(from, name))
		b, err2 := os.Lstat(filepath.Join(to, name))
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
			continue
		}
		if a.Mode() != b.Mode() || !a.ModTime().Equal(b.ModTime()) {
			t.Errorf("%s: %v %v, want %v %v", name, b.Mode(), b.ModTime(), a.Mode(), a.ModTime())
		}
		if !a.IsDir() {
			content, err := os.ReadFile(filepath.Join(from, name))
			must(t, err)
			holds(t, filepath.Join(to, name), content, a.Mode())
		}
	}
}

func TestTreesArriveBothWays(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := filepath.Join(t.TempDir(), "copy")
	source := filepath.Join(there, "source")
	copied, bytes := aTree(t, source)
	want := Result{Files: 304, Directories: 6, Bytes: bytes, Skipped: 3}
	o := Options{Recursive: true, Failed: func(err error) { t.Error(err) }}
	if r, err := Get(t.Context(), c, "source", here, o); err != nil || r != want {
		t.Errorf("get: %+v, %v, want %+v", r, err, want)
	}
	is(t, "got", list(t, here), copied)
	sameTrees(t, source, here, copied)
	want.Skipped = 0
	if r, err := Put(t.Context(), c, here, "back", o); err != nil || r != want {
		t.Errorf("put: %+v, %v, want %+v", r, err, want)
	}
	is(t, "put", list(t, filepath.Join(there, "back")), copied)
	sameTrees(t, source, filepath.Join(there, "back"), copied)

	// What is there stays alone.
	must(t, os.Remove(filepath.Join(here, "many/007")), os.WriteFile(filepath.Join(here, "own"), nil, 0o600))
	if r, err := Get(t.Context(), c, "source", here, o); err != nil || r.Files != 1 || r.Unchanged != 303 {
		t.Errorf("get again: %+v, %v", r, err)
	}
	if r, err := Put(t.Context(), c, here, "back", o); err != nil || r.Files != 1 || r.Unchanged != 304 {
		t.Errorf("put again: %+v, %v", r, err)
	}
}

func TestClosedDirectoriesAreCopied(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := filepath.Join(t.TempDir(), "copy")
	put(t, filepath.Join(there, "d/f"), []byte("f"), 0o400)
	must(t, os.Chmod(filepath.Join(there, "d"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(there, "d"), 0o700); _ = os.Chmod(filepath.Join(here, "d"), 0o700) })
	if r, err := Get(t.Context(), c, "/", here, Options{Recursive: true}); err != nil || r.Files != 1 || r.Failed != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Put(t.Context(), c, here, "back", Options{Recursive: true}); err != nil || r.Files != 1 || r.Failed != 0 {
		t.Errorf("back: %+v, %v", r, err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(there, "back/d"), 0o700) })
	for _, dir := range []string{here, filepath.Join(there, "back")} {
		holds(t, filepath.Join(dir, "d/f"), []byte("f"), 0o400)
		if info, err := os.Stat(filepath.Join(dir, "d")); err != nil || info.Mode().Perm() != 0o500 {
			t.Error(info, err)
		}
	}
}

// What can't be copied keeps nothing else from it.
func TestOneFileThatFailsIsOneError(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	outside := t.TempDir()
	for _, name := range []string{"a", "b", "dir/c", "link/d", "way/e"} {
		put(t, filepath.Join(there, name), []byte(name), 0o644)
	}
	must(t, os.MkdirAll(filepath.Join(here, "a/full"), 0o755), os.Symlink(outside, filepath.Join(here, "link")),
		os.WriteFile(filepath.Join(here, "way"), nil, 0o600))
	var mu sync.Mutex
	var failed []string
	r, err := Get(t.Context(), c, ".", here, Options{Recursive: true, Failed: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, err.Error())
	}})
	if err != nil || r.Files != 2 || r.Failed != 3 || len(failed) != 3 {
		t.Errorf("%+v, %v, %q", r, err, failed)
	}
	for _, where := range []string{"/a: ", "/link: is in the way", "/way: is in the way"} {
		if !slices.ContainsFunc(failed, func(s string) bool { return strings.Contains(s, where) }) {
			t.Errorf("no line about %s in %q", where, failed)
		}
	}
	is(t, "outside", list(t, outside), nil)
	is(t, "got", list(t, here), []string{"a/", "a/full/", "b", "dir/", "dir/c", "link", "way"})
}

// A tree of very many small files.
func TestManySmallFiles(t *testing.T) {
	testwait.SkipUnderRace(t, "other trees are copied by as many threads")
	n := 2000
	if s := os.Getenv("PINWHEEL_SMALL_FILES"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		must(t, err)
	}
	testwait.BoundAt(t, testwait.Limit+time.Duration(n)*10*time.Millisecond)
	there, c := serve(t)
	source, here := filepath.Join(there, "d"), filepath.Join(t.TempDir(), "d")
	for i := range n {
		put(t, filepath.Join(source, strconv.Itoa(i%100), strconv.Itoa(i)), random(i%5000), 0o644)
	}
	o := Options{Recursive: true, Failed: func(err error) { t.Error(err) }}
	began := time.Now()
	if r, err := Get(t.Context(), c, "d", here, o); err != nil || r.Files != int64(n) {
		t.Errorf("get: %+v, %v", r, err)
	}
	got := time.Now()
	if r, err := Put(t.Context(), c, here, "e", o); err != nil || r.Files != int64(n) {
		t.Errorf("put: %+v, %v", r, err)
	}
	t.Logf("%d files: get %v, put %v", n, got.Sub(began), time.Since(got))
	want := list(t, source)
	is(t, "got", list(t, here), want)
	is(t, "put", list(t, filepath.Join(there, "e")), want)
}

func TestServersNameNoFilesElsewhere(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "a/b", "a\x00b", strings.Repeat("n", 256)} {
		if checkName(name) == nil {
			t.Errorf("%.20q is accepted", name)
		}
	}
	for _, name := range []string{"...", "..x", "a b", "\xff\n", strings.Repeat("n", 255)} {
		if err := checkName(name); err != nil {
			t.Error(err)
		}
	}
}

func TestLinksAtTheDestinationLeadNowhere(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	d, err := openFolder(dir)
	must(t, err)
	defer d.drop()
	secret := filepath.Join(outside, "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(secret, filepath.Join(dir, partialName("f", newKey))),
		os.Symlink(outside, filepath.Join(dir, "d")), os.Symlink(secret, filepath.Join(dir, "g")))
	if _, err := d.create("f", newKey, 0o600, false); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("a link for a partial file: %v", err)
	}
	if _, err := d.enter("d", 0o755); err == nil {
		t.Error("a link for a directory is entered")
	}
	p, err := d.create("g", newKey, 0o600, false)
	must(t, err, p.write([]byte("new")))
	p.modified = longAgo
	must(t, p.finish(), p.commit())
	holds(t, filepath.Join(dir, "g"), []byte("new"), 0o600)
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("%q, %v", b, err)
	}
	is(t, "outside", list(t, outside), []string{"secret"})
}

func TestTwoCopiesToOneFileDoNotMix(t *testing.T) {
	dir := t.TempDir()
	d, err := openFolder(dir)
	must(t, err)
	defer d.drop()
	first, err := d.create("f", newKey, 0o600, false)
	must(t, err)
	if _, err := d.create("f", newKey, 0o600, false); !errors.Is(err, errBusy) {
		t.Errorf("the second: %v", err)
	}
	must(t, first.write([]byte("x")), first.keep())
	second, err := d.create("f", newKey, 0o600, true)
	must(t, err)
	if second.bytes != 1 {
		t.Errorf("%d bytes are left", second.bytes)
	}
	must(t, second.discard())
	is(t, "left", list(t, dir), nil)
}

func TestNamesOfPartialFilesFitAndDiffer(t *testing.T) {
	long := strings.Repeat("é", 127)
	names := map[string]bool{}
	for _, target := range []string{"f", long, long + "x"} {
		for _, key := range []string{newKey, resumeKey("f", 1, "a"), resumeKey("f", 1, "b"), resumeKey("f", 2, "a")} {
			n := partialName(target, key)
			if len(n) > unix.NAME_MAX || !isPartial(n) || names[n] {
				t.Errorf("%q", n)
			}
			names[n] = true
		}
	}
	for _, n := range []string{
		"f", ".f", "f.partial", ".f.partial", ".f.0123456789abcdeg.partial", "..0123456789abcdef.partial",
	} {
		if isPartial(n) {
			t.Errorf("%q looks like one", n)
		}
	}
}

func TestBlocksOfZerosBecomeHoles(t *testing.T) {
	dir := t.TempDir()
	d, err := openFolder(dir)
	must(t, err)
	defer d.drop()
	content := make([]byte, 20*holeBytes+5)
	copy(content[holeBytes-1:], "xy")
	copy(content[5*holeBytes:], "z")
	p, err := d.create("f", newKey, 0o644, false)
	must(t, err)
	for rest := content; len(rest) > 0; { // in pieces that are no blocks
		n := min(len(rest), 5*holeBytes+1)
		must(t, p.write(rest[:n]))
		rest = rest[n:]
	}
	p.modified = longAgo
	must(t, p.finish(), p.commit())
	holds(t, filepath.Join(dir, "f"), content, 0o644)
	if n := used(t, filepath.Join(dir, "f")); n > 10*holeBytes {
		t.Errorf("it takes %d bytes", n)
	}
}

// As cp(1) has it: all else is copied, and one line says what is not.
func TestNoTreeIsCopiedIntoItself(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	put(t, filepath.Join(there, "d/f"), []byte("f"), 0o644)
	copies := map[string]func(to string, o Options) (Result, error){
		"get": func(to string, o Options) (Result, error) {
			return Get(t.Context(), c, "/", filepath.Join(there, to), o)
		},
		"put": func(to string, o Options) (Result, error) { return Put(t.Context(), c, there, to, o) },
	}
	for way, run := range copies {
		for _, to := range []string{"d/" + way, way} { // deep, and at its top
			var failed []error
			r, err := run(to, Options{Recursive: true, Failed: func(err error) { failed = append(failed, err) }})
			if err != nil || r.Failed != 1 || len(failed) != 1 || !errors.Is(failed[0], errSamePlace) {
				t.Errorf("%s to %s: %+v, %v, %v", way, to, r, err, failed)
			}
			holds(t, filepath.Join(there, to, "d/f"), []byte("f"), 0o644)
			must(t, os.RemoveAll(filepath.Join(there, to)))
		}
		r, err := run("", Options{Recursive: true})
		if !errors.Is(err, errSamePlace) && r.Failed == 0 {
			t.Errorf("%s onto itself: %+v, %v", way, r, err)
		}
		is(t, "there is", list(t, there), []string{"d/", "d/f"})
	}
}
