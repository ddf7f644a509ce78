package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/launch/launchtest"
)

// What a modulefile puts into PATH starts this program, which starts the launcher behind it, and not itself again.
func TestStandInForALauncherStartsTheLauncherBehindIt(t *testing.T) {
	site := launchtest.New(t)
	prefix := t.TempDir()
	launchers := filepath.Join(prefix, "libexec/pinwheel/launchers")
	script, err := os.ReadFile("../../packaging/modules/launcher.in")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(launchers, "mpirun"), filepath.Join(prefix, "bin")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	standIn := filepath.Join(launchers, "mpirun/mpirun")
	for _, err := range []error{
		os.WriteFile(filepath.Join(launchers, "pinwheel-stand-in"), []byte(strings.ReplaceAll(string(script), "@PREFIX@", prefix)), 0o777),
		os.Link(binary, filepath.Join(prefix, "bin/pinwheel")),
		os.Symlink(filepath.Dir(site.Library), filepath.Join(prefix, "lib")),
		os.Symlink("../pinwheel-stand-in", standIn),
		os.Symlink(filepath.Dir(standIn), filepath.Join(prefix, "linked")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	direct, linked := filepath.Join(launchers, "mpirun"), filepath.Join(prefix, "linked")
	t.Setenv("PATH", direct+":"+linked+":"+os.Getenv("PATH"))

	for _, command := range []string{standIn, filepath.Join(prefix, "bin/pinwheel") + " run -- mpirun"} {
		_ = os.Remove(site.Path("loaded"))
		words := strings.Fields(command + " -x OF_MINE -n 2 app exit 7")
		cmd := testwait.Command(t, words[0], words[1:]...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 || len(out) > 0 {
			t.Errorf("%s: %v, %q", command, cmd.ProcessState, out)
		}
		if got := site.Lines("loaded"); !slices.Equal(got, []string{"app"}) {
			t.Errorf("%s: loaded into %q, want app only", command, got)
		}
		argv := strings.Join(site.Lines("argv"), " ")
		if strings.Count(argv, "LD_PRELOAD=") != 1 || !strings.Contains(argv, "OF_MINE") {
			t.Errorf("%s: the launcher was given %q", command, argv)
		}
		if environ := strings.Join(site.Lines("launcher"), "\n"); strings.Contains(environ, direct) || strings.Contains(environ, linked) {
			t.Errorf("%s: PATH of the launcher still leads to the stand-in: %q", command, environ)
		}
	}
}
