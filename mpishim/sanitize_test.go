package mpishim

import (
	"os"
	"path/filepath"
	"testing"

	"pinwheel/verbs/verbstest"
)

// handedOver: what Go's threads call with was written before by a thread that
// asked through a mailbox. ThreadSanitizer does not see Go's half of that.
const handedOver = "race:pw_register\nrace:pw_deregister\n"

// quick compiles what a sanitizer looks into in half of the time that -O2 -g takes; reports have their lines.
var quick = []string{"-Og", "-g1"}

// sanitized runs programs in a directory of libraries and programs that build
// makes with a flag for each sanitizer there is: a program, its argument, and settings. They must say nothing.
func sanitized(t *testing.T, build func(dir, flag string) error, runs ...[]string) {
	if os.Getenv("PINWHEEL_SANITIZE") == "" {
		t.Skip("builds the library twice more: make test-sanitize")
	}
	verbstest.NeedMemlock(t, linkedMemlock)
	for _, sanitizer := range []string{"address", "thread"} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			probe := filepath.Join(dir, "probe.c")
			if err := os.WriteFile(probe, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			flag := "-fsanitize=" + sanitizer
			err := compile("cc", flag, "-o", filepath.Join(dir, "probe"), probe)
			if err == nil {
				err = compile(filepath.Join(dir, "probe")) // it needs an address space laid out as it expects
			}
			if err != nil {
				t.Skipf("no %s: %v", flag, err)
			}
			if err := build(dir, flag); err != nil {
				t.Fatal(err)
			}
			library, err := goLibrary()
			if err == nil {
				err = os.Link(library, filepath.Join(dir, filepath.Base(library)))
			}
			if err != nil {
				t.Fatal(err)
			}
			suppressions := filepath.Join(dir, "suppressions")
			if err := os.WriteFile(suppressions, []byte(handedOver), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				report := filepath.Join(dir, "stats.json")
				environ := []string{"LD_PRELOAD=", "TSAN_OPTIONS=suppressions=" + suppressions,
					"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + report}
				status, said := play(t, dir, append(environ, run[2:]...), run[0], run[1])
				if why := inapplicable(t, said, report, run[1]); why != "" {
					t.Log(why)
					continue
				}
				if status != 0 || said != "" {
					t.Errorf("%v: status %d, said %.2000q", run, status, said)
				}
			}
		})
	}
}

func TestAPIUnderSanitizers(t *testing.T) {
	build := func(dir, flag string) error {
		objects, err := compileObjects(dir, []string{"core", "api"}, append(quick, flag)...)
		if err != nil {
			return err
		}
		return buildLinked(dir, objects, []string{"linked", "linkedlife", "prepared"}, flag)
	}
	sanitized(t, build, []string{"linked", "accounting"}, []string{"linked", "threads"}, []string{"linkedlife", "fork"},
		[]string{"linkedlife", "closing"}, []string{"linkedlife", "last-release"}, []string{"linkedlife", "refused"},
		[]string{"linkedlife", "first-uses"}, []string{"prepared", "kept"}, []string{"prepared", "cancelled"}, []string{"prepared", "together"})
}

// The library is linked before MPI here, instead of preloaded: a sanitizer wants to be the first.
func TestPreloadLibraryUnderSanitizers(t *testing.T) {
	build := func(dir, flag string) error {
		at := func(name string) string { return filepath.Join(dir, name) }
		shared := []string{flag, "-g", "-O2", "-fPIC", "-shared", "-fno-omit-frame-pointer"}
		objects, err := compileObjects(dir, []string{"core", "preload"}, append(quick, flag)...)
		if err != nil {
			return err
		}
		for _, args := range [][]string{
			append(append(shared[:len(shared):len(shared)], "-o", at("libpinwheel.so")),
				append(objects, "-ldl", "-lpthread")...),
			append(shared[:len(shared):len(shared)], "-Wl,-soname,libibverbs.so.1",
				"-Wl,--version-script=testing/standin/verbs.map", "-o", at("libibverbs.so.1"), "testing/standin/verbs.c"),
			append(shared[:len(shared):len(shared)], "-Wl,-soname,libmpi.so.40", "-o", at("libmpi.so.40"),
				"testing/standin/mpi.c", at("libibverbs.so.1")),
			{flag, "-g", "-O2", "-fno-omit-frame-pointer", "-o", at("life"), "testing/standin/life.c",
				"-Wl,--no-as-needed", at("libpinwheel.so"),
				at("libmpi.so.40"), at("libibverbs.so.1"), "-lpthread", "-Wl,-rpath," + dir, "-Wl,-rpath-link," + dir},
		} {
			if err := compile("cc", args...); err != nil {
				return err
			}
		}
		return nil
	}
	sanitized(t, build, []string{"life", ""}, []string{"life", "threads"}, []string{"life", "rereg"},
		[]string{"life", "windows"}, []string{"life", "after"}, []string{"life", "domains"},
		append([]string{"life", "threads", "PINWHEEL_POLICY=pinwheel"}, onDemand...),
		append([]string{"life", "rereg", "PINWHEEL_POLICY=pinwheel"}, onDemand...))
}
