package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
)

// must fails the test for an error that no part of it is about.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// holds checks what a file has, and that nothing else is in its directory.
func holds(t *testing.T, path, want string, others ...string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, %v, want %q", path, got, err, want)
	}
	var names []string
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	expect := append(others, filepath.Base(path))
	slices.Sort(expect)
	if !slices.Equal(names, expect) {
		t.Errorf("the directory has %q, want %q", names, expect)
	}
}

func TestRegularFileIsReplacedWholeAndKeepsItsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(path, []byte("old"), 0o600), os.Chmod(path, 0o640))
	f, err := Create(path)
	must(t, err, text("new")(f))
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("before Commit the file has %q", got)
	}
	must(t, f.Commit(), f.Commit(), f.Discard())
	holds(t, path, "new")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	old := unix.Umask(0o027)
	err = Write(fresh, text(""))
	unix.Umask(old)
	must(t, err)
	if info, err := os.Stat(fresh); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode of a new file %v, %v, want what the umask leaves", info.Mode(), err)
	}
}

func TestOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file away")
	}
	path := filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(path, nil, 0o644), os.Chown(path, 12, 34))
	must(t, Write(path, text("new")))
	info, err := os.Stat(path)
	must(t, err)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 12 || st.Gid != 34 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

func TestDiscardAndFailureLeaveWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	must(t, os.WriteFile(path, []byte("old"), 0o666))
	f, err := Create(path)
	must(t, err, text("new")(f), f.Discard(), f.Discard(), f.Commit())
	holds(t, path, "old")
	broken := errors.New("broken")
	if err := Write(path, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	holds(t, path, "old")
	if err := Write(filepath.Join(dir, "a/b/c"), func(io.Writer) error { return broken }); err == nil {
		t.Error("no error")
	}
	holds(t, path, "old") // and no directory a
}

func TestMissingDirectoriesAreMade(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("elsewhere", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "elsewhere"), 0o777))
	path := filepath.Join(dir, "link", "b", "c")
	must(t, Write(path, text("new")), Write(path, text("newer")))
	holds(t, filepath.Join(dir, "elsewhere", "b", "c"), "newer")
}

func TestSymbolicLinksAreFollowed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("real/deep"), 0o777), os.WriteFile(at("real/there"), []byte("old"), 0o666),
		os.Symlink("real/deep", at("dir")), // so that dir/.. is real
		os.Symlink("dir/../there", at("a")), os.Symlink("a", at("toThere")),
		os.Symlink(at("dir")+"/../notYet", at("dangling")), os.Symlink("new/file", at("nowhere")),
		os.Symlink("loop", at("loop")))
	for link, target := range map[string]string{"toThere": "real/there",
		"dangling": "real/notYet", "nowhere": "new/file"} {
		must(t, Write(at(link), text("new")))
		if got, err := os.ReadFile(at(target)); err != nil || string(got) != "new" {
			t.Errorf("%s: %s has %q, %v", link, target, got, err)
		}
		if info, err := os.Lstat(at(link)); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s is no link any more: %v, %v", link, info, err)
		}
	}
	if err := Write(at("loop"), text("")); !errors.Is(err, unix.ELOOP) ||
		!strings.HasPrefix(err.Error(), at("loop")+": ") {
		t.Errorf("loop: %v", err)
	}
}

func TestWhatIsNoRegularFileIsWrittenTo(t *testing.T) {
	testwait.Bound(t)
	null, full := outfiletest.Device(t, outfiletest.Null), outfiletest.Device(t, outfiletest.Full)
	dir, base := filepath.Split(null)
	for _, name := range []string{null, dir + "../" + filepath.Base(dir) + "/" + base} {
		must(t, Write(name, text("x")))
	}
	if info, err := os.Stat(null); err != nil || info.Mode().Type() != fs.ModeDevice|fs.ModeCharDevice {
		t.Fatalf("%s is now %v, %v", null, info, err)
	}
	if err := Write(full, text("x")); !errors.Is(err, unix.ENOSPC) || err.Error() != full+": no space left on device" {
		t.Errorf("full device: %v", err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o666))
	read := make(chan string)
	go func() { b, _ := os.ReadFile(fifo); read <- string(b) }()
	must(t, Write(fifo, text("through")))
	if got := <-read; got != "through" {
		t.Errorf("the reader of the FIFO got %q", got)
	}
	if info, err := os.Lstat(fifo); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the FIFO is now %v, %v", info, err)
	}
}

func TestNobodyIsWaitedForInAProgramThatIsNotOurs(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o666))
	if err := Write(fifo, text("x"), NoWait); err == nil || err.Error() != fifo+": nobody reads it" {
		t.Errorf("without a reader: %v", err)
	}
	r, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer r.Close()
	err = Write(fifo, text(strings.Repeat("x", 1<<20)), NoWait)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with a reader that sleeps: %v", err)
	}
}

func TestOpenDescriptorsAreWrittenWhereTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	must(t, err, text("before ")(out))
	defer out.Close()
	name := "/proc/self/fd/" + strconv.Itoa(int(out.Fd()))
	must(t, Write(name, text("in ")), Write("/dev/fd/"+strconv.Itoa(int(out.Fd())), text("through ")), text("after")(out))
	holds(t, path, "before in through after")
	for name, want := range map[string]bool{"-": true, "/dev/stdout": true, "/proc/self/fd/1": true,
		"/proc/thread-self/fd/1": true,
		"/dev/stderr":            false, name: false, path: false, "/dev/null": false, "./-": false, "": false} {
		if ToStdout(name) != want {
			t.Errorf("ToStdout(%q) is %v", name, !want)
		}
	}
}

func TestErrorsNameTheFileAsItWasGiven(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	for path, want := range map[string]error{
		"": nil, dir: unix.EISDIR, dir + "/": unix.EISDIR, dir + "/new/": unix.EISDIR, dir + "/file/x": unix.ENOTDIR,
		dir + "/file/":                       unix.ENOTDIR,
		dir + "/" + strings.Repeat("n", 300): unix.ENAMETOOLONG, "/proc/self/fd/x": nil,
		"/proc/self/fd/77777": unix.EBADF, "/proc/none": nil,
	} {
		err := Write(path, text(""))
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || want != nil && !errors.Is(err, want) ||
			strings.Contains(err.Error(), "partial") {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
		if checked := Check(path); checked == nil || checked.Error() != err.Error() {
			t.Errorf("%q: Check says %v, Create %v", path, checked, err)
		}
	}
	fifo := filepath.Join(t.TempDir(), "fifo") // which nobody reads
	must(t, unix.Mkfifo(fifo, 0o666), Check(fifo), Check(filepath.Join(dir, "new", "file")),
		Check(filepath.Join(dir, "file")), Check("-"), Check("/dev/stdout"))
	holds(t, filepath.Join(dir, "file"), "")
	long := filepath.Join(dir, strings.Repeat("n", 255))
	must(t, Write(long, text("fits")))
	holds(t, long, "fits", "file")
}
