package node

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// peerEnv makes the test binary another process of a job: MODE JOB ARGUMENTS.
const peerEnv = "PINWHEEL_TEST_NODE_PEER"

var peers = map[string]func(args []string) error{
	"join": func(args []string) error {
		rank, _ := strconv.Atoi(args[1])
		_, err := Join(Options{Job: args[0], Rank: rank, BudgetBytes: 64 << 20, Ranks: 4})
		return err
	},
	"claim": func(args []string) error {
		m, err := Join(Options{Job: args[0], Rank: 1})
		if err != nil {
			return err
		}
		return m.UpdateClaims(func(all []Claim) []Claim {
			return append(all, Claim{Owner: m.Owner(), CPU: 1, Bytes: 1 << 30})
		})
	},
	"lock": func(args []string) error {
		m, err := Join(Options{Job: args[0], Rank: 1})
		if err != nil {
			return err
		}
		return m.UpdateClaims(func(all []Claim) []Claim { testwait.Ready(); return all })
	},
	"member": hammer,
}

func TestMain(m *testing.M) {
	args := strings.Fields(os.Getenv(peerEnv))
	if len(args) == 0 {
		os.Exit(m.Run())
	}
	if err := peers[args[0]](args[1:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	testwait.Ready()
}

// startPeer starts a peer. kill ends it with SIGKILL.
func startPeer(t *testing.T, args ...string) (pid int, kill func()) {
	t.Helper()
	return testwait.Peer(t, peerEnv+"="+strings.Join(args, " "))
}

// jobOf names a job of a test's own.
func jobOf(t *testing.T) string {
	t.Helper()
	job := fmt.Sprintf("test-%d-%d", os.Getpid(), instances.Inc())
	t.Cleanup(func() { checkNothingLeft(t, job) })
	return job
}

// checkNothingLeft fails if a socket or a memfd of a job is there.
func checkNothingLeft(t *testing.T, job string) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "/"+job+"/") {
			t.Errorf("socket left: %s", line)
		}
	}
}

func join(t *testing.T, o Options) *Member {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(err error) { t.Error(err) }
	}
	m, err := Join(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestMembersSeeWhatOthersPublish(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	a := join(t, Options{Job: job, Rank: 0, Program: "first"})
	pid, kill := startPeer(t, "join", job, "3")
	want := State{
		Rank: 0, Program: "first", PinnedBytes: 1, PeakBytes: 2, DemandNs: 3, Hits: 4, First: 5, Late: 6, StallNs: 7,
		Predicted: 8, Within05: 1, Within5: 9, PID: os.Getpid(),
		Helper: Helper{CPU: 3, Parked: true, Shared: true, ShareLimit: 0.05, CPUNs: 10, ActionNs: 11,
			Wakeups: 12, Registers: 13, Deregs: 14},
		Cost: Cost{Share: .005, AgainNs: 15, WaitNs: 16, DemandNs: 17, HelperNs: 18, PriceNs: 19},
	}
	a.Publish(want)
	all := a.seg.members()
	if len(all) != 2 || all[1].PID != pid || all[1].Rank != 3 || all[1].Helper.CPU != -1 || all[1].ShareBytes != 16<<20 {
		t.Fatalf("members %+v", all)
	}
	if all[0].StartNs == 0 || all[0].AtNs < all[0].StartNs {
		t.Errorf("started %d, published %d", all[0].StartNs, all[0].AtNs)
	}
	all[0].StartNs, all[0].AtNs, all[0].Instance = 0, 0, 0
	if all[0] != want {
		t.Errorf("published %+v, want %+v", all[0], want)
	}
	v, err := Open(job)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if seen := v.Members(); len(seen) != 2 || seen[0].Program != "first" {
		t.Errorf("from outside: %+v", seen)
	}
	if budget, granted := v.BudgetBytes(); budget != 64<<20 || granted != 16<<20 {
		t.Errorf("budget %d, granted %d", budget, granted)
	}
	if jobs, err := Jobs(); err != nil || !slices.Contains(jobs, job) {
		t.Errorf("jobs %v, %v", jobs, err)
	}
	kill()
	if all := a.seg.members(); len(all) != 1 {
		t.Errorf("after one was killed: %+v", all)
	}
}

func TestJobsDoNotMeet(t *testing.T) {
	one, other := jobOf(t), jobOf(t)
	a, b := join(t, Options{Job: one}), join(t, Options{Job: other})
	if len(a.seg.members()) != 1 || len(b.seg.members()) != 1 {
		t.Errorf("%+v, %+v", a.seg.members(), b.seg.members())
	}
}

func TestNothingIsLeftOfAJob(t *testing.T) {
	testwait.Bound(t)
	before := openFiles(t)
	job := jobOf(t)
	a := join(t, Options{Job: job})
	_, kill := startPeer(t, "join", job, "1")
	a.Close()
	if v, err := Open(job); err != nil {
		t.Errorf("after the first has left: %v", err)
	} else {
		v.Close()
	}
	kill()
	if _, err := Open(job); !errors.Is(err, ErrNone) {
		t.Errorf("after the last was killed: %v", err)
	}
	if jobs, err := Jobs(); err != nil || slices.Contains(jobs, job) {
		t.Errorf("jobs %v, %v", jobs, err)
	}
	if now := openFiles(t); now > before+3 { // pipes of the peer
		t.Errorf("%d files open, %d before", now, before)
	}
	if err := a.UpdateClaims(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	a.Publish(State{})
	if a.Close() != nil {
		t.Error("a closed member does something")
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestNamesOfJobsAreChecked(t *testing.T) {
	for _, job := range []string{"", "a/b", "a b", "@", "a\x00b", strings.Repeat("x", maxJob+1)} {
		if _, err := Join(Options{Job: job}); err == nil {
			t.Errorf("%q was accepted", job)
		}
		if _, err := Open(job); err == nil {
			t.Errorf("%q was opened", job)
		}
	}
}

// Anyone may bind names that look like ours.
func TestSocketsOfOthersAreIgnored(t *testing.T) {
	job := jobOf(t)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, b := range []beacon{
		{job, 1 << 22, 3, 1},               // nobody
		{job, os.Getppid(), 1<<20 - 1, 1},  // no such descriptor
		{job, os.Getpid(), int(f.Fd()), 1}, // another file by now
	} {
		fd, err := bind(b.name())
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	join(t, Options{Job: job})
	for _, rest := range []string{"", "///", job + "/1/1", job + "/x/1/1", job + "/1/x/1", job + "/1/1/x", job + "/-1/1/1",
		job + "/1/1/1/1", job + "/0/1/1"} {
		if b, ok := parseBeacon(rest); ok {
			t.Errorf("%q was taken for %+v", rest, b)
		}
	}
	for what, fd := range map[string]int{"a file": int(f.Fd()), "an unsealed memfd": memfd(t, sizeBytes, 0),
		"another size": memfd(t, 4096, seals)} {
		if _, err := mapSegment(fd, true); err == nil {
			t.Errorf("%s was mapped", what)
		}
	}
}

// A process without memory whose socket is still bound: a member between the two steps of its end. To
// users its descriptors are forbidden, not missing.
func TestMemberThatEndsIsNone(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	var err error
	testwait.OnThreadOfItsOwn(func() { // and its user
		err = func() error {
			cmd := exec.Command("true")
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				if err := cmd.Start(); err != nil {
					return err
				}
				if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); failed != 0 {
					return failed
				}
			} else if err := cmd.Start(); err != nil {
				return err
			}
			if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
				return err
			}
			fd, err := bind(beacon{job, cmd.Process.Pid, 3, 1}.name())
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = findSegment(job, true)
			return errors.Join(cmd.Wait(), err)
		}()
	})
	if !errors.Is(err, ErrNone) {
		t.Errorf("a zombie's segment: %v, want %v", err, ErrNone)
	}
}

func memfd(t *testing.T, size int64, seal int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seal); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestClaimsAreThoseOfTheLiving(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	a := join(t, Options{Job: job})
	claims := func() (all []Claim) {
		t.Helper()
		if err := a.UpdateClaims(func(now []Claim) []Claim { all = slices.Clone(now); return now }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	pid, kill := startPeer(t, "claim", job)
	if all := claims(); len(all) != 1 || int(all[0].Owner.PID) != pid || all[0].CPU != 1 || all[0].Bytes != 1<<30 {
		t.Fatalf("claims %+v", all)
	}
	err := a.UpdateClaims(func(all []Claim) []Claim { // takes the processor
		all[0].CPU = -1
		return append(all, Claim{Owner: a.Owner(), CPU: 1, Bytes: 2 << 30})
	})
	if err != nil {
		t.Fatal(err)
	}
	if all := claims(); len(all) != 2 || all[0].CPU+all[1].CPU != 0 {
		t.Errorf("claims %+v", all)
	}
	kill()
	if all := claims(); len(all) != 1 || all[0].Owner != a.Owner() {
		t.Errorf("claims %+v after the other was killed", all)
	}
	if err := a.UpdateClaims(func([]Claim) []Claim { return nil }); err != nil || len(claims()) != 0 {
		t.Errorf("claims %+v after it was withdrawn, %v", claims(), err)
	}
}

func TestLockOfAKilledMemberIsFree(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	a := join(t, Options{Job: job})
	_, kill := startPeer(t, "lock", job)
	if err := a.UpdateClaims(func(all []Claim) []Claim { return all }); !errors.Is(err, ErrBusy) {
		t.Errorf("with a member that is stuck: %v", err)
	}
	kill()
	if err := a.UpdateClaims(func(all []Claim) []Claim { return all }); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}

func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	testwait.Bound(t)
	job := jobOf(t)
	const rounds = 50
	var wg sync.WaitGroup
	for range 4 {
		m := join(t, Options{Job: job})
		wg.Go(func() {
			for i := range rounds {
				err := m.UpdateClaims(func(all []Claim) []Claim {
					at := slices.IndexFunc(all, func(c Claim) bool { return c.Owner == m.Owner() })
					if has := at >= 0; has != (i > 0) || has && all[at].Bytes != int64(i) {
						t.Errorf("round %d: %+v", i, all)
					}
					if at >= 0 {
						all = slices.Delete(all, at, at+1)
					}
					return append(all, Claim{Owner: m.Owner(), CPU: 0, Bytes: int64(i + 1)})
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestMembersWithoutBudgetAreNotBounded(t *testing.T) {
	m := join(t, Options{Job: jobOf(t), BudgetBytes: mem.Unlimited})
	ceiling, keep := m.Settle(1 << 40)
	if m.Grow(1<<40) != math.MaxInt64 || m.Shrink(0) != math.MaxInt64 || ceiling != math.MaxInt64 ||
		keep != math.MaxInt64 || !m.Await(1<<40) {
		t.Error("a share without a budget")
	}
}
