package main

import (
	"os"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command"
	"pinwheel/verbs/verbstest"
)

// userLimit is the RLIMIT_MEMLOCK that systemd gives by default, in bytes.
const userLimit = 8 << 20

// unprivileged is the command of a user with that limit, as a child of verbstest.
func unprivileged() error {
	if err := verbstest.LimitMemlock(userLimit); err != nil {
		return err
	}
	os.Exit(command.Run(spec(), os.Args[1:], os.Stdout, os.Stderr))
	return nil
}

// asUser runs the command as unprivileged does. Traces are handed over open,
// since their directory may be closed to that user.
func asUser(t *testing.T, paths []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	verbstest.NeedMemlock(t, userLimit)
	cmd := verbstest.Child(t, "unprivileged")
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		args = append(args, "/proc/self/fd/"+string(rune('3'+i)))
	}
	cmd.Args = append(cmd.Args, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestTraceThatExceedsTheLimitOfAUserIsOneLineAndTheOthersAreReplayed(t *testing.T) {
	testwait.SkipUnderRace(t, singleThreaded)
	real := []string{"compare", "--mode", "real", "--provider", "mlock", "--scale", "0.01", "--policy", "leave-pinned,pinwheel"}
	paths := []string{ftB4, traces + "lu.B.4.pwt"}
	for _, tc := range []struct {
		paths  []string
		flags  []string
		status int
		fits   bool
	}{
		{paths, nil, 1, true},
		{paths, []string{"--skip-too-large"}, 0, true},
		{paths[:1], []string{"--skip-too-large"}, 0, false},
	} {
		stdout, stderr, status := asUser(t, tc.paths, append(real, tc.flags...)...)
		if status != tc.status || strings.Contains(stdout, "lu.B.4") != tc.fits || strings.Contains(stdout, "ft.B.4") {
			t.Errorf("%q: status %d, stdout %q", tc.flags, status, stdout)
		}
		oneLine(t, stderr, "ft.B.4: rank 0: leave-pinned pins 288.0 MiB here (ulimit -l 294924 suffices), RLIMIT_MEMLOCK allows 8.0 MiB")
	}
}

func TestCalibrationIsBoundedByWhatAUserMayPinAndSaysSo(t *testing.T) {
	testwait.SkipUnderRace(t, singleThreaded)
	_, stderr, status := asUser(t, nil, "calibrate", "--provider", "mlock", "--rounds", "3")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	oneLine(t, stderr, "lowered to 1.0 MiB: RLIMIT_MEMLOCK allows 8.0 MiB")
}
