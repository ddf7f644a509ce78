package launch

import (
	"slices"
	"strings"
	"testing"
)

func TestScanFindsTheProgramBehindTheOptions(t *testing.T) {
	for _, c := range []struct {
		values map[string]int
		line   string
		want   string // the commands
	}{
		{openMPIValues, "-n 4 app -n 5", "app -n 5"},
		{openMPIValues, "--np 4 --bind-to core --oversubscribe -mca a b -x A=1 -H h1,h2 app", "app"},
		{openMPIValues, "-n 1 app : -n 2 other :", "app|other|"},
		{openMPIValues, "-n 4", ""},
		{hydraValues, "-genv A 1 -ppn 2 -genvall -bind-to core app", "app"},
		{slurmValues, "-N2 --ntasks=4 -n 4 --mpi pmix -l --kill-on-bad-exit=1 app", "app"},
		{slurmValues, "--exclusive -c 2 -- app", "app"},
	} {
		var commands []string
		for _, s := range scan(strings.Fields(c.line), c.values) {
			commands = append(commands, strings.Join(s.command, " "))
		}
		if got := strings.Join(commands, "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
}

func FuzzJoinUndoesScan(f *testing.F) {
	f.Add("-n 4 app : -n 2 other :")
	f.Add(": : --  - -x")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		if got := join(scan(args, openMPIValues)); !slices.Equal(got, args) {
			t.Errorf("%q became %q", args, got)
		}
	})
}

// Whatever is preloaded already stays, in its order, and the library is there once.
func FuzzPreloadKeepsWhatIsThere(f *testing.F) {
	f.Add("a.so:/x/libpinwheel.so b.so", "/lib/libpinwheel.so")
	f.Add("libasan.so.8", "/lib/libpinwheel.so")
	f.Fuzz(func(t *testing.T, value, dir string) {
		if strings.ContainsAny(dir, ": ") {
			return
		}
		library := dir + "/" + libraryName
		got := withLibrary(value, library)
		if withoutLibrary(got) != withoutLibrary(value) || !namesLibrary(got) {
			t.Errorf("%q became %q", value, got)
		}
		if again := withLibrary(got, library); again != got || slices.Index(SplitPreload(got), library) < 0 {
			t.Errorf("%q, and again %q", got, again)
		}
	})
}
