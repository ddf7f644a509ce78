package outfile

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// childEnv makes the test binary a command: it writes BYTES bytes to FILE. With
// "wait" it first says "ready", with the partial file there, and waits for a signal.
const childEnv = "PINWHEEL_OUTFILE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	RemoveOnSignals()
	if err := child(os.Args[1], os.Args[2], len(os.Args) > 3); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(path, bytes string, wait bool) error {
	n, err := strconv.Atoi(bytes)
	if err != nil {
		return err
	}
	if limit := os.Getenv("LIMIT"); limit != "" {
		l, err := strconv.ParseUint(limit, 10, 64)
		if err == nil {
			err = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: l, Max: l})
		}
		if err != nil {
			return err
		}
	}
	f, err := Create(path)
	if err != nil {
		return err
	}
	if wait {
		fmt.Println("ready")
		time.Sleep(time.Minute) // ended by a signal
	}
	if err := text(strings.Repeat("n", n))(f); err != nil {
		_ = f.Discard()
		return err
	}
	return f.Commit()
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := testwait.Command(t, exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	return cmd
}

func TestFullDiskLeavesTheOldFileAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"old", "new", "sub/new"} {
		cmd := command(t, filepath.Join(dir, name), strconv.Itoa(2*outfiletest.FreeBytes))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		left := outfiletest.OnSmallDisk(t, cmd, dir)
		if want := filepath.Join(dir, name) + ": no space left on device\n"; cmd.ProcessState.ExitCode() != 1 ||
			errs.String() != want {
			t.Errorf("%s: %v, %q, want %q", name, cmd.ProcessState, errs.String(), want)
		}
		if !slices.Equal(left, []string{"./old old"}) {
			t.Errorf("%s: left %q", name, left)
		}
	}
	cmd := command(t, filepath.Join(dir, "old"), "5")
	if left := outfiletest.OnSmallDisk(t, cmd, dir); !slices.Equal(left, []string{"./old nnnnn"}) {
		t.Errorf("what fits: left %q, %v", left, cmd.ProcessState)
	}
}

func TestLimitOfFileSizesIsLikeAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old")
	must(t, os.WriteFile(path, []byte("old"), 0o666))
	cmd := command(t, path, "10000")
	cmd.Env = append(cmd.Env, "LIMIT=4096")
	if out, err := cmd.CombinedOutput(); err == nil || string(out) != path+": file too large\n" {
		t.Errorf("%v, %q", err, out)
	}
	holds(t, path, "old")
}

// A file that is a mount of its own, as containers have them, can't be renamed over.
func TestFileThatIsAMountIsOverwritten(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("others"), 0o666))
	script := `mount --bind "$1" "$2" || exit 99; shift; exec "$0" "$@"`
	for size, want := range map[string]string{"4": "nnnn", "40": strings.Repeat("n", 40)} {
		cmd := command(t, filepath.Join(dir, "old"), size)
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", script, cmd.Path, other}, cmd.Args[1:]...)
		left := outfiletest.OnSmallDisk(t, cmd, dir)
		if got, err := os.ReadFile(other); err != nil || string(got) != want {
			t.Errorf("the mounted file has %q, %v, want %q; %v, left %q", got, err, want, cmd.ProcessState, left)
		}
		if len(left) != 1 || !cmd.ProcessState.Success() {
			t.Errorf("%v, left %q", cmd.ProcessState, left)
		}
	}
}

func TestFileInADirectoryThatIsClosedIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	for d := dir; d != "/"; d = filepath.Dir(d) { // for the user below
		if info, err := os.Stat(d); err != nil || info.Mode()&0o001 == 0 {
			must(t, os.Chmod(d, 0o755))
		}
	}
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	must(t, os.WriteFile(open, []byte("old"), 0o666), os.WriteFile(closed, []byte("old"), 0o444),
		os.Chmod(open, 0o666), os.Chmod(dir, 0o555))
	defer os.Chmod(dir, 0o755)
	run := func(path string) (string, error) {
		cmd := command(t, path, "3")
		cmd.Dir, cmd.Path = "/", "/proc/self/exe" // the binary's directory may be closed to that user
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		cmd.Env = append(cmd.Env, "TMPDIR=/tmp")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(open); err != nil {
		t.Errorf("%v, %q", err, out)
	}
	holds(t, open, "nnn", "closed")
	for _, path := range []string{closed, filepath.Join(dir, "new")} {
		if out, err := run(path); err == nil || out != path+": permission denied\n" {
			t.Errorf("%v, %q", err, out)
		}
	}
	holds(t, closed, "old", "open")
}

func TestSignalsLeaveNothingAndEndTheCommandByThemselves(t *testing.T) {
	testwait.Bound(t)
	commandtest.NotIgnored(t, unix.SIGINT, unix.SIGHUP)
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE} {
		dir := t.TempDir()
		path := filepath.Join(dir, "old")
		must(t, os.WriteFile(path, []byte("old"), 0o666))
		for _, path := range []string{path, filepath.Join(dir, "a/b")} {
			cmd := command(t, path, "10", "wait")
			out, err := cmd.StdoutPipe()
			must(t, err, cmd.Start())
			_, err = out.Read(make([]byte, 10)) // ready
			if partial, _ := filepath.Glob(path + ".*.partial"); err != nil || len(partial) != 1 {
				t.Errorf("partial files %q, %v", partial, err)
			}
			must(t, cmd.Process.Signal(s))
			_ = cmd.Wait()
			commandtest.EndedBy(t, cmd, s)
		}
		holds(t, path, "old")
	}
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	testwait.Bound(t)
	path := filepath.Join(t.TempDir(), "out")
	cmd := command(t, path, "10", "wait")
	cmd.Path, cmd.Args = "/bin/sh",
		append([]string{"sh", "-c", `trap "" INT HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	_, err = out.Read(make([]byte, 10))
	must(t, err, cmd.Process.Signal(unix.SIGINT), cmd.Process.Signal(unix.SIGHUP), cmd.Process.Signal(unix.SIGTERM))
	_ = cmd.Wait()
	commandtest.EndedBy(t, cmd, unix.SIGTERM)
}
