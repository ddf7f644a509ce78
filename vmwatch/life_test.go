package vmwatch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// childVar names what a child process of these tests does.
const childVar = "VMWATCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if f, ok := children[os.Getenv(childVar)]; ok {
		f()
		return
	}
	os.Exit(m.Run())
}

// children are programs in which a Watcher meets the end or the stopping of its process.
var children = map[string]func(){
	"scavenge": func() {
		w, p := watchHeap()
		debug.FreeOSMemory() // stops the scheduler and gives the watched pages back
		fmt.Println(w.Generation() != 0, p != 0)
	},
	"exec": func() {
		watchHeap()
		err := syscall.Exec("/bin/echo", []string{"echo", "true true"}, nil)
		fmt.Println(err)
	},
	"killed": func() {
		w, _ := watchHeap()
		for _, p := range w.source.note.(*bpfNotifier).coll.Programs {
			if info, err := p.Info(); err == nil {
				if id, ok := info.ID(); ok {
					fmt.Println(id)
				}
			}
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	},
}

// watchHeap watches Go heap memory that nothing refers to any more.
func watchHeap() (*Watcher, mem.Addr) {
	debug.SetGCPercent(-1)
	w, err := Open(Options{Mechanism: os.Getenv("VMWATCH_TEST_MECHANISM")})
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	b := make([]uint64, 1<<20) // 8 MiB
	b[0] = 1
	r := mem.Range{Start: mem.Addr(addressOf(b)), End: mem.Addr(addressOf(b)) + 8<<20}
	for i := range b {
		b[i] = 1
	}
	if _, _, err := w.Watch(r); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	runtime.KeepAlive(b)
	return w, r.Start
}

// child runs one of children on a single processor, within a time in which it can only fail to end by a deadlock.
func child(t *testing.T, name, mechanism string) (string, error) {
	t.Helper()
	need(t, mechanism)
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+name, "VMWATCH_TEST_MECHANISM="+mechanism, "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatal("deadlock: ", ctx.Err())
	}
	return strings.TrimSpace(string(out)), err
}

func TestScavengingWatchedHeapOnOneProcessorDoesNotDeadlock(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd"} {
		t.Run(m, func(t *testing.T) {
			if out, err := child(t, "scavenge", m); err != nil || out != "true true" {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

func TestExecLeavesNothingInTheWay(t *testing.T) {
	for _, m := range []string{"tps", "uffd"} {
		t.Run(m, func(t *testing.T) {
			if out, err := child(t, "exec", m); err != nil || out != "true true" {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

func TestKilledProcessLeavesNoPrograms(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp"} {
		t.Run(m, func(t *testing.T) {
			out, err := child(t, "killed", m)
			if err == nil {
				t.Fatalf("the child wasn't killed: %q", out)
			}
			ids := strings.Fields(out)
			programs := map[string]bool{"inspect": true}
			for _, h := range bpfHooks[choices[m][0]][0] {
				programs[h.program] = true
			}
			if want := len(programs); len(ids) != want {
				t.Fatalf("the child had %d programs, want %d: %q", len(ids), want, out)
			}
			eventually(t, "programs", func() (left int) {
				for _, id := range ids {
					n, err := strconv.Atoi(id)
					if err != nil {
						t.Fatal(err)
					}
					if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(n)); err == nil {
						p.Close()
						left++
					}
				}
				return left
			}, 0)
		})
	}
}

// eventually waits for a count that the kernel lowers in its own time: programs are freed after a grace period of RCU
// tasks, which was 30 s once.
func eventually(t *testing.T, what string, count func() int, want int) {
	t.Helper()
	var got int
	testwait.Until(t, fmt.Sprintf("at most %d %s left", want, what), func() bool {
		got = count()
		return got <= want
	}, func() any { return got })
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	all, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func mappings(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// TestStartsAndStopsLeaveNothingBehind does 5 rounds, or as many as
// VMWATCH_TEST_STARTS says: detaching waits for the kernel.
func TestStartsAndStopsLeaveNothingBehind(t *testing.T) {
	rounds := 5
	if s := os.Getenv("VMWATCH_TEST_STARTS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []string{"fentry", "tps", "tp", "uffd", "pfn", "none"} {
		t.Run(m, func(t *testing.T) {
			need(t, m)
			fds, threads, maps := entries(t, "/proc/self/fd"), entries(t, "/proc/self/task"), mappings(t)
			for range rounds {
				w, err := Open(Options{Mechanism: m})
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "descriptors", func() int { return entries(t, "/proc/self/fd") }, fds)
			// The Go runtime may start a few threads and map a few heaps meanwhile.
			eventually(t, "threads", func() int { return entries(t, "/proc/self/task") }, threads+4)
			// The page of the word goes with its Watcher.
			eventually(t, "mappings", func() int { runtime.GC(); return mappings(t) }, maps+16)
		})
	}
}

// A hit may have loaded the address of the word when its Watcher is closed.
func TestWordStaysReadableAfterClose(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd", "pfn", "none"} {
		t.Run(m, func(t *testing.T) {
			need(t, m)
			w, err := Open(Options{Mechanism: m})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("the word can't be read: %v", p)
				}
			}()
			w.Generation()
			runtime.KeepAlive(w)
		})
	}
}
