package mpishim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
)

// staged is the stage: a directory with the libraries, the stand-ins and the programs. TestMain makes and removes it.
var staged string

// build fills it, and returns the objects of the libraries.
var build = sync.OnceValues(func() (objects []string, err error) {
	at := func(name string) string { return filepath.Join(staged, name) }
	var first errgroup.Group // which needs nothing that is built before
	first.Go(func() (err error) {
		objects, err = compileObjects(staged, []string{"preload", "core", "api"})
		return err
	})
	first.Go(func() error {
		_, err := goLibrary()
		return err
	})
	if err := first.Wait(); err != nil {
		return nil, err
	}
	ours := objectsOf(objects, "core", "preload")
	cc := func(args ...string) []string {
		return append([]string{"cc", "-O2", "-fno-omit-frame-pointer"}, args...)
	}
	abi := func(args ...string) []string { return append(cc("testing/standin/abi.c"), args...) }
	found := []string{"-Wl,-rpath," + staged, "-Wl,-rpath-link," + staged}
	// The commands of one step run side by side. A step links with what the steps before it made.
	for _, step := range [][][]string{
		{
			append(cc("-shared", "-Wl,-z,defs", "-o", at("libpinwheel.so")), append(ours, "-ldl", "-lpthread")...),
			cc("-fPIC", "-shared", "-Wl,-soname,libibverbs.so.1", "-Wl,--version-script=testing/standin/verbs.map",
				"-o", at("libibverbs.so.1"), "testing/standin/verbs.c"),
		},
		{
			cc("-fPIC", "-shared", "-Wl,-soname,libmlx5.so.1", "-o", at("libmlx5.so.1"), "testing/standin/mlx5.c"),
			cc("-fPIC", "-shared", "-Wl,-soname,libmpi.so.40", "-o", at("libmpi.so.40"),
				"testing/standin/mpi.c", at("libibverbs.so.1")),
			abi("-DSTANDIN_ABI=1", "-DSTANDIN_LIBRARY", "-fPIC", "-shared", "-Wl,-soname,libmpi_abi.so.0", "-o",
				at("libmpi_abi.so.0"), at("libibverbs.so.1")),
			abi("-DSTANDIN_ABI=0", "-DSTANDIN_LIBRARY", "-fPIC", "-shared", "-Wl,-soname,libmpi.so.12", "-o",
				at("libmpi.so.12"), at("libibverbs.so.1")),
			abi("-DSTANDIN_ABI=1", "-DSTANDIN_LIBRARY", "-fPIC", "-shared", "-Wl,-soname,libanother.so.1", "-o",
				at("libanother.so.1"), at("libibverbs.so.1")),
		},
		{
			append(cc("-o", at("path"), "testing/standin/path.c", at("libmpi.so.40"), at("libibverbs.so.1")), found...),
			append(abi("-DSTANDIN_ABI=1", "-o", at("standard"), at("libmpi_abi.so.0")), found...),
			append(abi("-DSTANDIN_ABI=0", "-o", at("mpich"), at("libmpi.so.12")), found...),
			append(abi("-DSTANDIN_ABI=1", "-o", at("another"), at("libanother.so.1")), found...),
			append(cc("-rdynamic", "-o", at("profiled"), "testing/standin/profiled.c", at("libmpi.so.40"),
				at("libibverbs.so.1")), found...),
			append(cc("-o", at("reload"), "testing/standin/reload.c", at("libmpi.so.40"), at("libibverbs.so.1"), "-ldl"),
				found...),
			append(cc("-fPIC", "-shared", `-DSTANDIN_PLUGIN="a"`, "-o", at("first.so"), "testing/standin/reload.c",
				at("libmpi.so.40")), found...),
			append(cc("-fPIC", "-shared", `-DSTANDIN_PLUGIN="b"`, "-o", at("second.so"), "testing/standin/reload.c",
				at("libmpi.so.40")), found...),
			append(cc("-o", at("life"), "testing/standin/life.c", at("libmpi.so.40"), at("libibverbs.so.1"), "-lpthread"),
				found...),
			append(cc("-Wall", "-Wextra", "-Werror", "-o", at("signals"), "testing/standin/signals.c", at("libmpi.so.40"),
				at("libibverbs.so.1"), "-lpthread"), found...),
			append(cc("-Wall", "-Wextra", "-Werror", "-o", at("refused"), "testing/standin/refused.c", at("libmpi.so.40"),
				at("libibverbs.so.1")), found...),
			append(cc("-Wall", "-Wextra", "-Werror", "-o", at("limits"), "testing/standin/limits.c", at("libmpi.so.40"),
				at("libibverbs.so.1"), "-lpthread"), found...),
			// The library is part of this program, whose calls come back to it (-rdynamic).
			append(append(cc("-rdynamic", "-o", at("charges"), "testing/standin/charges.c", "-Icore", "-Ipreload",
				"-I../regcache"), ours...),
				append(found, "-Wl,--no-as-needed", at("libmlx5.so.1"), at("libibverbs.so.1"), "-ldl", "-lpthread")...),
		},
	} {
		var g errgroup.Group
		for _, command := range step {
			g.Go(func() error { return compile(command[0], command[1:]...) })
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return objects, nil
})

// goLibrary builds the half of the library that is in Go, on the stage, and returns its path. Without symbols (-s, -w)
// it is linked in half the time.
var goLibrary = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(staged, "libpinwheel-go.so")
	return path, compile("go", "build", "-buildmode=c-shared", "-ldflags", "-s -w -extldflags=-Wl,-soname,libpinwheel-go.so",
		"-o", path, "./server")
})

func TestMain(m *testing.M) {
	var err error
	if staged, err = os.MkdirTemp("", "pinwheel-standin"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(staged)
	os.Exit(status)
}

// theStage builds once, or skips where there is nothing to build with.
func theStage(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"cc", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("building the preload library: %v", err)
		}
	}
	if _, err := build(); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(staged, ": ") {
		t.Skipf("LD_PRELOAD can't hold the path of %s: choose another TMPDIR", staged)
	}
	return staged
}

// play runs a program under the library and returns its status, as a shell
// has it, and what it said.
func play(t *testing.T, dir string, environ []string, program string, args ...string) (status int, said string) {
	t.Helper()
	cmd := testwait.Command(t, filepath.Join(dir, program), args...)
	cmd.Env = append([]string{"LD_LIBRARY_PATH=" + dir, "LD_PRELOAD=" + filepath.Join(dir, "libpinwheel.so"),
		"PINWHEEL_WATCH_WAIT=y"}, environ...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), out.String()
	}
	return ws.ExitStatus(), out.String()
}

// verified reports whether each hit had to be verified: then no use is without
// a question to the server, and a page fault of the process makes the next one late.
func verified(r report.Rank) bool { return r.Mapping == "uffd" || r.Mapping == "pfn" }

func readReport(t *testing.T, file string) (r report.Rank) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
