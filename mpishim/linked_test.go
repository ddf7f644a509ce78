package mpishim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pinwheel/verbs/verbstest"
)

// linkedPrograms are the transports of testing/standin that use pinwheel.h.
var linkedPrograms = []string{"linked", "linkedlife", "prepared", "both"}

// linkedMemlock is more than these programs lock at one time, in bytes.
const linkedMemlock = 4 << 20

// buildLinked builds libpinwheel-api.so of its objects and programs into dir, with flags for both.
func buildLinked(dir string, objects, programs []string, flags ...string) error {
	library := filepath.Join(dir, "libpinwheel-api.so.0")
	args := append([]string{"-shared", "-Wl,-z,nodelete", "-Wl,-soname,libpinwheel-api.so.0",
		"-Wl,--version-script=api/api.map", "-o", library}, objects...)
	args = append(args, flags...)
	if err := compile("cc", append(args, "-ldl", "-lpthread")...); err != nil {
		return err
	}
	for _, p := range programs {
		args := append([]string{"-O2", "-g", "-std=gnu11", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror", "-Iinclude",
			"-o", filepath.Join(dir, p), "testing/standin/" + p + ".c", library}, flags...)
		if p == "both" {
			args = append(args, filepath.Join(dir, "libmpi.so.40"))
		}
		if err := compile("cc", append(args, "-lpthread", "-Wl,-rpath,"+dir, "-Wl,-rpath-link,"+dir)...); err != nil {
			return err
		}
	}
	return nil
}

func compile(compiler string, args ...string) error {
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", compiler, strings.Join(args, " "), err, out)
	}
	return nil
}

var buildLinkedOnce sync.Once
var errLinked error

// theLinkedStage is theStage with libpinwheel-api.so and what uses it.
func theLinkedStage(t *testing.T) string {
	t.Helper()
	dir := theStage(t)
	objects, _ := build() // of which theStage has told the error
	buildLinkedOnce.Do(func() { errLinked = buildLinked(dir, objectsOf(objects, "core", "api"), linkedPrograms) })
	if errLinked != nil {
		t.Fatal(errLinked)
	}
	return dir
}

// playLinked runs a program that links Pinwheel: nothing is preloaded.
func playLinked(t *testing.T, environ []string, program string, args ...string) (status int, said string) {
	t.Helper()
	dir := theLinkedStage(t)
	verbstest.NeedMemlock(t, linkedMemlock)
	return play(t, dir, append([]string{"LD_PRELOAD="}, environ...), program, args...)
}

// unwatched is said where the kernel has nothing to watch mappings with: then nothing is cached.
const unwatched = "(pinwheel doctor says why): nothing is cached"

// expectLinked runs a program that must meet its own expectations and say nothing.
func expectLinked(t *testing.T, environ []string, program string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := playLinked(t, append([]string{"PINWHEEL_STATS=" + file}, environ...), program, args...)
	if why := inapplicable(t, said, file, args[0]); why != "" {
		t.Skip(why)
	}
	if status != 0 || said != "" {
		t.Errorf("status %d, said %q", status, said)
	}
}

// inapplicable says why a program can't have met its expectations here, or "".
// file has its report.
func inapplicable(t *testing.T, said, file, mode string) string {
	t.Helper()
	if strings.Contains(said, unwatched) {
		return said
	}
	if mode == "first-uses" && strings.Contains(said, "first uses ask\n") {
		if r := readReport(t, file); !slices.Contains([]string{"fentry", "tps", "tp"}, r.Mapping) {
			return fmt.Sprintf("C code can't have %s watch memory", r.Mapping)
		}
	}
	if mode == "accounting" || mode == "query" || mode == "kept" {
		if r := readReport(t, file); verified(r) {
			return fmt.Sprintf("%s counts hits, and watched by %s a use may be a registration", mode, r.Mapping)
		}
	}
	return ""
}

func TestAPICountsAnswersAndRefusesAsDocumented(t *testing.T) {
	for _, mode := range []string{"accounting", "query", "limits", "process-limits", "arguments"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			expectLinked(t, []string{"PINWHEEL_POLICY=leave-pinned"}, "linked", mode)
		})
	}
}

func TestAPIRefusesWhatNobodyCanRegister(t *testing.T) {
	for _, watch := range []string{"auto", "uffd", "pfn", "none"} {
		t.Run(watch, func(t *testing.T) {
			t.Parallel()
			status, said := playLinked(t, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch}, "linked", "huge")
			if strings.Contains(said, "mechanism not available") {
				t.Skip(said)
			}
			if status != 0 || said != "" && !strings.Contains(said, unwatched) {
				t.Errorf("status %d, said %q", status, said)
			}
		})
	}
}

func TestAPIThreadsShareAndReleaseForEachOther(t *testing.T) {
	for _, policy := range []string{"pinwheel", "leave-pinned", "on-demand"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			expectLinked(t, []string{"PINWHEEL_POLICY=" + policy}, "linked", "threads")
		})
	}
}

func TestAPIRegistrationsLiveAsDocumented(t *testing.T) {
	for _, mode := range []string{"fork", "closing", "last-release", "refused", "cycles"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			expectLinked(t, []string{"PINWHEEL_POLICY=leave-pinned"}, "linkedlife", mode)
		})
	}
}

func TestAPIFirstUsesDoNotWaitForTheServer(t *testing.T) {
	for _, policy := range []string{"leave-pinned", "pinwheel"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			// No helper: a release of memory that it did not expect would be right, too.
			expectLinked(t, []string{"PINWHEEL_POLICY=" + policy, "PINWHEEL_IDLE_POLICY=off"}, "linkedlife", "first-uses")
		})
	}
}

func TestAPINeverServesWhatWasUnmapped(t *testing.T) {
	for _, watch := range []string{"auto", "uffd", "pfn", "none"} {
		t.Run(watch, func(t *testing.T) {
			status, said := playLinked(t, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch}, "linkedlife", "renewed")
			if strings.Contains(said, "mechanism not available") {
				t.Skip(said)
			}
			if status != 0 {
				t.Errorf("status %d, said %q", status, said)
			}
		})
	}
}

func TestAPIPreparesPoolsAndLeavesNothingIfItFails(t *testing.T) {
	for _, mode := range []string{"kept", "refused", "cancelled", "together"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			expectLinked(t, []string{"PINWHEEL_POLICY=leave-pinned"}, "prepared", mode)
		})
	}
}

func TestAPIPreparesNothingThatIsNotKept(t *testing.T) {
	for _, how := range []string{"PINWHEEL_DISABLE=y", "PINWHEEL_POLICY=on-demand"} {
		t.Run(how, func(t *testing.T) { expectLinked(t, []string{how}, "prepared", "plain") })
	}
}

func TestAPIHelperDeregistersBehindAUse(t *testing.T) {
	for _, policy := range []string{"pinwheel", "paper"} {
		t.Run(policy, func(t *testing.T) {
			expectLinked(t, []string{"PINWHEEL_POLICY=" + policy, "PINWHEEL_IDLE_POLICY=aggressive"}, "linkedlife", "periodic")
		})
	}
}

func TestAPIMoreDomainsThanAreManagedRegisterPlainly(t *testing.T) {
	status, said := playLinked(t, nil, "linkedlife", "domains")
	if status != 0 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "more than 16 domains") {
		t.Errorf("status %d, said %q", status, said)
	}
}

func TestAPIWithoutCacheRegistersForEachUse(t *testing.T) {
	for how, mode := range map[string]string{"PINWHEEL_DISABLE=y": "plain", "PINWHEEL_POLICY=on-demand": "plain", "PINWHEEL_WATCH=none": "unwatched"} {
		t.Run(how, func(t *testing.T) { expectLinked(t, []string{how}, "linkedlife", mode) })
	}
}

func TestAPIWithoutGoSideOneLineAndPlain(t *testing.T) {
	dir, alone := theLinkedStage(t), t.TempDir()
	if err := os.Link(filepath.Join(dir, "libpinwheel-api.so.0"), filepath.Join(alone, "libpinwheel-api.so.0")); err != nil {
		t.Skipf("the library alone in a directory: %v", err)
	}
	// rpath is DT_RUNPATH or DT_RPATH by the linker's default; preloading goes before either.
	status, said := playLinked(t, []string{"LD_PRELOAD=" + filepath.Join(alone, "libpinwheel-api.so.0"), "LD_LIBRARY_PATH="}, "linkedlife", "plain")
	if status != 0 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "libpinwheel-go.so") || !strings.Contains(said, "without Pinwheel") {
		t.Errorf("status %d, said %q", status, said)
	}
}

func TestAPIFindsItsGoSideInADirectoryBelow(t *testing.T) {
	dir, public := theLinkedStage(t), t.TempDir()
	below := filepath.Join(public, "pinwheel")
	if err := os.Mkdir(below, 0o777); err != nil {
		t.Fatal(err)
	}
	for lib, to := range map[string]string{"libpinwheel-api.so.0": public, "libpinwheel-go.so": below} {
		if err := os.Link(filepath.Join(dir, lib), filepath.Join(to, lib)); err != nil {
			t.Skipf("the libraries in two directories: %v", err)
		}
	}
	file := filepath.Join(public, "stats.json")
	status, said := playLinked(t, []string{"LD_PRELOAD=" + filepath.Join(public, "libpinwheel-api.so.0"), "LD_LIBRARY_PATH=",
		"PINWHEEL_STATS=" + file}, "linkedlife", "domains")
	if status != 0 || strings.Contains(said, "libpinwheel-go.so") {
		t.Errorf("status %d, said %q", status, said)
	}
	if _, err := os.Stat(file); err != nil { // the Go side writes it
		t.Error(err)
	}
}

func TestAPIBesidePreloadedLibrary(t *testing.T) {
	dir := theLinkedStage(t)
	for _, order := range []string{"mpi-first", "api-first"} {
		for _, policy := range []string{"pinwheel", "leave-pinned", "on-demand"} {
			t.Run(order+" "+policy, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "stats.json")
				status, said := play(t, dir, []string{"PINWHEEL_POLICY=" + policy, "PINWHEEL_STATS=" + file}, "both", order)
				if status != 0 || said != "" {
					t.Errorf("status %d, said %q", status, said)
				}
				if status, said = play(t, dir, []string{"PINWHEEL_WATCH_WAIT=n", "PINWHEEL_POLICY=" + policy}, "both", order); status != 0 || said != "" {
					t.Errorf("while the watch is being opened: status %d, said %q", status, said)
				}
				r := readReport(t, file) // of whichever ended last
				if r.Library != "stand-in" || r.Policy != policy {
					t.Errorf("report of %q with policy %s", r.Library, r.Policy)
				}
			})
		}
	}
}

func TestAPIFromAnotherDirectoryUsesTheGoSideThatIsLoaded(t *testing.T) {
	dir, other := theLinkedStage(t), t.TempDir()
	for _, lib := range []string{"libpinwheel.so", "libpinwheel-go.so"} {
		data, err := os.ReadFile(filepath.Join(dir, lib))
		if err == nil {
			err = os.WriteFile(filepath.Join(other, lib), data, 0o755) // another file, not a link
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The program counts the libraries that are mapped.
	status, said := play(t, dir, []string{"LD_PRELOAD=" + filepath.Join(other, "libpinwheel.so")}, "both", "api-first")
	if status != 0 || said != "" {
		t.Errorf("status %d, said %q", status, said)
	}
}

func TestAPIHeaderIsC99AndCxx98(t *testing.T) {
	dir := theLinkedStage(t)
	const program = `#include <pinwheel.h>
static int reg(void *arg, void *addr, size_t len, unsigned access, struct pinwheel_region *region)
{
	(void)arg; (void)len; (void)access;
	region->handle = addr;
	region->lkey = region->rkey = 1;
	return 0;
}
static int dereg(void *arg, void *handle) { (void)arg; (void)handle; return 0; }
int main(void)
{
	static char memory[1 << 16];
	struct pinwheel_ops ops;
	struct pinwheel_use use;
	struct pinwheel_domain *domain;
	struct pinwheel *pw;
	ops.size = sizeof ops;
	ops.reg = reg;
	ops.dereg = dereg;
	return pinwheel_init(NULL, &pw) || pinwheel_domain_open(pw, &ops, NULL, &domain) ||
		pinwheel_acquire(domain, memory, sizeof memory, PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_READ, 1, &use) ||
		pinwheel_release(&use) || pinwheel_domain_close(domain) || pinwheel_fini(pw);
}
`
	strict := []string{"-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-Iinclude"}
	for _, l := range []struct{ compiler, standard, file string }{{"cc", "c99", "strict.c"}, {"c++", "c++98", "strict.cc"}} {
		t.Run(l.standard, func(t *testing.T) {
			if _, err := exec.LookPath(l.compiler); err != nil {
				t.Skip(err)
			}
			source := filepath.Join(t.TempDir(), l.file)
			if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-std=" + l.standard, "-o", filepath.Join(dir, l.file+".out"), source,
				filepath.Join(dir, "libpinwheel-api.so.0"), "-Wl,-rpath," + dir}, strict...)
			if err := compile(l.compiler, args...); err != nil {
				t.Fatal(err)
			}
			if status, said := playLinked(t, nil, l.file+".out"); status != 0 {
				t.Errorf("status %d, said %q", status, said)
			}
			verbs := append([]string{"-std=" + l.standard, "-fsyntax-only", source}, strict...)
			if err := compile(l.compiler, append(verbs, "-include", "infiniband/verbs.h")...); err != nil {
				t.Skipf("pinwheel_verbs.h needs the header of libibverbs: %v", err)
			}
			if err := compile(l.compiler, append(verbs, "-include", "pinwheel_verbs.h")...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPIExportsNothingElse(t *testing.T) {
	if _, err := exec.LookPath("nm"); err != nil {
		t.Skip(err)
	}
	out, err := exec.Command("nm", "-D", "--defined-only", filepath.Join(theLinkedStage(t), "libpinwheel-api.so.0")).Output()
	if err != nil {
		t.Fatal(err)
	}
	header, err := os.ReadFile("include/pinwheel.h")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		symbol, version, _ := strings.Cut(line[strings.LastIndex(line, " ")+1:], "@@")
		if symbol == "PINWHEEL_0" {
			continue
		}
		n++
		if version != "PINWHEEL_0" || !strings.Contains(string(header), "int "+symbol+"(") {
			t.Errorf("%s is exported, but no function of pinwheel.h", line)
		}
	}
	if want := strings.Count(string(header), "\nint pinwheel_"); n != want {
		t.Errorf("%d functions are exported, pinwheel.h has %d", n, want)
	}
}

func TestAPIPagesNameEveryFunctionAndRender(t *testing.T) {
	function := regexp.MustCompile(`(?m)^(int|size_t) (pinwheel_[a-z_]+)\(`)
	for _, name := range []string{"pinwheel", "pinwheel_vmmc"} {
		t.Run(name, func(t *testing.T) {
			file := "include/" + name + ".3"
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			header, err := os.ReadFile("include/" + name + ".h")
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(page), ".SH SYNOPSIS")
			functions := function.FindAllStringSubmatch(string(header), -1)
			if len(functions) < 10 {
				t.Errorf("%d functions", len(functions))
			}
			for _, f := range functions {
				if !strings.Contains(string(page), ".BI \""+f[0]) || !regexp.MustCompile(`\b`+f[2]+`\b`).MatchString(head) {
					t.Errorf("no synopsis, or no name, of %s", f[2])
				}
			}
			if _, err := exec.LookPath("groff"); err != nil {
				t.Skip(err)
			}
			if out, err := exec.Command("groff", "-man", "-Tutf8", "-ww", "-z", file).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("groff: %v: %s", err, out)
			}
		})
	}
}
