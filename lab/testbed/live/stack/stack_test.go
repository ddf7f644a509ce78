package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const programs = "../../programs"

// need returns the device and the stack's halo program, or skips.
func need(t *testing.T, s Stack) (Device, string) {
	t.Helper()
	d, err := OpenDevice("../../../../out/softverbs")
	if err != nil {
		t.Skip(err)
	}
	if why := s.Missing(d); why != "" {
		t.Skip(why)
	}
	program := filepath.Join(t.TempDir(), "halo")
	if err := s.Compile(program, filepath.Join(programs, "halo.c")); err != nil {
		t.Fatal(err)
	}
	return d, program
}

// limit is for a job of a second on a machine that does much else.
const limit = time.Minute

func registrations(t *testing.T, j Job) (n uint64) {
	t.Helper()
	res, err := j.Run(limit)
	if err != nil || res.Status != 0 || res.Late || !strings.Contains(res.Output, "data right") {
		t.Fatalf("status %d, late %v, %v\n%s", res.Status, res.Late, err, res.Output)
	}
	if len(res.Uses) != j.Ranks {
		t.Fatalf("%d of %d ranks opened the device", len(res.Uses), j.Ranks)
	}
	for _, u := range res.Uses {
		if u.Large == 0 || u.LargeBytes == 0 || u.RegionBytes < u.Regions {
			t.Errorf("%+v", u)
		}
		n += u.Regions
	}
	return n
}

// The settings for the transport's cache do what they say: without it, each of
// the 40 exchanges of every rank registers two buffers that it sends from and two
// that it receives into. With it they stay registered.
func TestCachesAreOnAndOff(t *testing.T) {
	const steps, buffers = 40, 4
	for _, s := range All {
		t.Run(s.Name, func(t *testing.T) {
			d, program := need(t, s)
			j := Job{Stack: s, Device: d, Ranks: 2, Program: []string{program, "40", "1048576", "0"}}
			on := registrations(t, j)
			j.NoCache = true
			off := registrations(t, j)
			if more := int(off) - int(on); more < (steps-5)*buffers*j.Ranks {
				t.Errorf("%d registrations with the cache, %d without", on, off)
			}
		})
	}
}

// What ranks preload stands before the device's own, and the launcher does not get it.
func TestRanksPreload(t *testing.T) {
	for _, s := range All {
		j := Job{Stack: s, Device: "/device", Ranks: 2, Program: []string{"/app"}, Preload: []string{"/a.so", "/b.so"}}
		args, environ := j.Command("/stats")
		line := strings.ReplaceAll(strings.Join(args, " "), "LD_PRELOAD=", "LD_PRELOAD ")
		if want := "LD_PRELOAD /a.so:/b.so:/device/lib/softverbs-preload.so "; !strings.Contains(line, want) {
			t.Errorf("%s: %q is not in %q", s.Name, want, line)
		}
		for _, v := range environ {
			if strings.HasPrefix(v, "LD_PRELOAD=") {
				t.Errorf("%s: the launcher has %s", s.Name, v)
			}
		}
	}
}

func TestSharedMemoryIsSeen(t *testing.T) {
	for _, s := range All {
		t.Run(s.Name, func(t *testing.T) {
			d, program := need(t, s)
			res, err := Job{Stack: s, Device: d, Ranks: 2, Program: []string{program}, Environ: s.OverSharedMemory()}.Run(limit)
			if err != nil || res.Status != 0 {
				t.Fatalf("status %d, %v\n%s", res.Status, err, res.Output)
			}
			for _, u := range res.Uses {
				if u.Large != 0 {
					t.Errorf("%+v", u)
				}
			}
		})
	}
}

func TestStatusIsThatOfAShell(t *testing.T) {
	for script, want := range map[string]int{"exit 3": 3, "kill -9 $$": 137} {
		cmd := exec.Command("sh", "-c", script)
		_ = cmd.Run() // its status is what counts
		if got := statusOf(cmd.ProcessState); got != want {
			t.Errorf("%q: %d, want %d", script, got, want)
		}
	}
}

func TestOnlyRanksGetTheDevice(t *testing.T) {
	t.Setenv("LD_PRELOAD", "")
	t.Setenv("UCX_TLS", "tcp")
	for _, s := range All {
		j := Job{
			Stack: s, Device: "/device", Ranks: 3, Program: []string{"/program", "5"}, Under: []string{"pinwheel", "run"},
			Options: []string{"-v"}, NoCache: true, Environ: []string{"FI_UNIVERSE_SIZE=3"},
		}
		args, environ := j.Command("/stats")
		head := []string{"pinwheel", "run", "mpirun." + s.MPI, "-n", "3", "-v"}
		if !slices.Equal(args[:len(head)], head) || !slices.Equal(args[len(args)-2:], j.Program) {
			t.Errorf("%s: %q", s.Name, args)
		}
		line := strings.ReplaceAll(strings.Join(args, " "), "-genv ", "-x ")
		for _, want := range []string{"-x LD_LIBRARY_PATH", "-x LD_PRELOAD", "-x SOFTVERBS_STATS"} {
			if !strings.Contains(line, want) {
				t.Errorf("%s: no %q in %q", s.Name, want, line)
			}
		}
		for _, entry := range environ {
			if strings.HasPrefix(entry, "LD_") || strings.HasPrefix(entry, "SOFTVERBS_") || entry == "UCX_TLS=tcp" {
				t.Errorf("%s: the launcher has %s", s.Name, entry)
			}
		}
		for _, want := range []string{"UCX_IB_REG_METHODS=direct", "FI_MR_CACHE_MAX_COUNT=0", "FI_UNIVERSE_SIZE=3"} {
			if !slices.Contains(environ, want) {
				t.Errorf("%s: no %s", s.Name, want)
			}
		}
	}
}

func TestWhatAStackNeedsIsNamed(t *testing.T) {
	libfabric, err := Named("openmpi-libfabric")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := OpenDevice(dir); err == nil {
		t.Error("an empty directory is a device")
	}
	lib := filepath.Join(dir, "lib")
	if err := os.Mkdir(lib, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, verbsLibrary), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDevice(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := libfabric.Missing(d), lib+" has no librdmacm.so.1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := Named("lam"); err == nil || !strings.Contains(err.Error(), "mpich-ucx") {
		t.Errorf("%v", err)
	}
}

func TestUsesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats")
	if uses, err := ReadUses(path); err != nil || len(uses) != 0 {
		t.Errorf("%v, %v", uses, err)
	}
	text := "pid 7 regions 1 region_bytes 4096 requests 3 large 2 large_bytes 131072\npid 8 regions 0 more 1\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	uses, err := ReadUses(path)
	if want := []Use{{7, 1, 4096, 3, 2, 131072}, {PID: 8}}; err != nil || !slices.Equal(uses, want) {
		t.Errorf("%v, %v, want %v", uses, err, want)
	}
}

func TestDescendants(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	_, _ = out.Read(make([]byte, 1)) // sleep has been started
	below := Descendants(cmd.Process.Pid)
	if len(below) != 1 {
		t.Fatalf("below a shell that has started one process: %v", below)
	}
	if !slices.Contains(Descendants(os.Getpid()), below[0]) {
		t.Error("a child's child is not below this process")
	}
	for _, pid := range []int{below[0], cmd.Process.Pid} {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}
