package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// The soak kills members at random moments, which start again at once, and looks at what all of
// them really have locked in memory. PINWHEEL_NODE_KILLS says how many it kills.
const (
	soakBudget = 4 * mib // of which an unprivileged process may lock all
	soakRanks  = 6
	soakPiece  = 64 << 10
	soakLife   = 60 * time.Millisecond // at most, but on a machine that takes as long to start a process
)

// hammer is such a member: it joins and leaves, locks memory within its share, and moves shares.
// It writes a byte into descriptor 3 for each time that it has joined.
func hammer(args []string) error {
	rank, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	pieces := make([][]byte, soakBudget/soakPiece)
	for i := range pieces {
		if pieces[i], err = unix.Mmap(-1, 0, soakPiece, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			return err
		}
	}
	joined := os.NewFile(3, "joined")
	for {
		m, err := Join(Options{
			Job: args[0], Rank: rank, BudgetBytes: soakBudget, Ranks: soakRanks,
			Warn: func(err error) { fmt.Fprintln(os.Stderr, err) },
		})
		if err != nil {
			return err
		}
		if _, err := joined.Write([]byte{'j'}); err != nil {
			return err
		}
		if err := hammerOnce(m, pieces); err != nil {
			return err
		}
		if err := m.Close(); err != nil {
			return err
		}
	}
}

func hammerOnce(m *Member, pieces [][]byte) error {
	locked := 0
	bytes := func() int64 { return int64(locked) * soakPiece }
	unlockTo := func(n int) error {
		for ; locked > n; locked-- {
			if err := unix.Munlock(pieces[locked-1]); err != nil {
				return err
			}
		}
		return nil
	}
	for range 20 + rand.IntN(200) {
		var err error
		switch rand.IntN(8) {
		case 0, 1, 2:
			want := rand.IntN(len(pieces) + 1)
			for locked < want && m.Grow(bytes()+soakPiece) >= bytes()+soakPiece && err == nil {
				if err = unix.Mlock(pieces[locked]); err == nil {
					locked++
				}
			}
		case 3:
			err = unlockTo(rand.IntN(locked + 1))
		case 4:
			err = unlockTo(rand.IntN(locked + 1))
			m.Shrink(bytes())
		case 5:
			m.Publish(State{PinnedBytes: bytes(), DemandNs: rand.Int64N(1e8)})
			ceiling, keep := m.Settle(bytes())
			err = unlockTo(int(min(int64(locked), ceiling/soakPiece)))
			m.Shrink(max(bytes(), keep))
		case 6:
			err = m.UpdateClaims(func(all []Claim) []Claim {
				return append(all, Claim{Owner: m.Owner(), CPU: rand.IntN(4) - 1, Bytes: bytes()})
			})
			if errors.Is(err, ErrBusy) { // on a busy machine
				err = nil
			}
		case 7:
			time.Sleep(time.Duration(rand.IntN(int(200 * time.Microsecond))))
		}
		if err != nil {
			return err
		}
	}
	return unlockTo(0)
}

// soaked is one process of the soak.
type soaked struct {
	cmd    *exec.Cmd
	end    time.Time
	stderr bytes.Buffer
}

type soak struct {
	t        *testing.T
	job      string
	joined   *os.File
	peers    [soakRanks]*soaked
	life     time.Duration // a process lives that long at most
	observed int
	most     int64
}

func (s *soak) start(rank int) {
	p := &soaked{cmd: exec.Command(os.Args[0], "-test.run=^$"), end: time.Now().Add(rand.N(s.life))}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=member %s %d", peerEnv, s.job, rank), "GOMAXPROCS=2")
	p.cmd.ExtraFiles = []*os.File{s.joined}
	p.cmd.Stderr, p.cmd.Stdout = &p.stderr, &p.stderr
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.peers[rank] = p
}

// kill ends a process, and fails the test if it has said anything or has ended before.
func (s *soak) kill(rank int) {
	p := s.peers[rank]
	_ = p.cmd.Process.Kill()
	err := p.cmd.Wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() ||
		status.Signal() != syscall.SIGKILL || p.stderr.Len() > 0 {
		s.t.Fatalf("rank %d: %v: %s", rank, err, p.stderr.String())
	}
}

// observe looks at what the kernel has locked for all processes. Nobody can raise a share
// meanwhile, so that the sum holds although the processes are looked at one after another.
func (s *soak) observe() {
	seg, err := findSegment(s.job, true)
	if err != nil {
		return // nobody is there
	}
	defer seg.close()
	if err := seg.lock(mainLock, patience, minLockPause); err != nil {
		s.t.Fatalf("the lock is not free: %v", err)
	}
	defer seg.unlock(mainLock)
	var sum int64
	for _, p := range s.peers {
		sum += lockedBytes(s.t, p.cmd.Process.Pid)
	}
	s.observed++
	s.most = max(s.most, sum)
	if sum > soakBudget {
		s.t.Fatalf("%d bytes are locked, the budget is %d", sum, soakBudget)
	}
	if err := seg.check(); err != nil {
		s.t.Fatal(err)
	}
}

// lockedBytes is VmLck (proc_pid_status(5)); 0 for a process without memory.
func lockedBytes(t *testing.T, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err) // it was not waited for
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmLck: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}

func TestSoakBudgetHoldsWhoeverIsKilled(t *testing.T) {
	kills := 150
	if v := os.Getenv("PINWHEEL_NODE_KILLS"); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		kills = 20
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < soakBudget {
		t.Skipf("needs a limit of locked memory of %s; ulimit -l allows %s", mem.FormatBytes(soakBudget), mem.FormatBytes(limit.Cur))
	}
	testwait.BoundAt(t, testwait.Limit+time.Duration(kills)*time.Second)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{t: t, job: jobOf(t), joined: w, life: soakLife}
	begun := time.Now()
	for rank := range s.peers {
		s.start(rank)
	}
	defer func() {
		for _, p := range s.peers { // after a failure
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.life = max(soakLife, 3*time.Since(begun)) // of which a third is gone before it has joined
	joins := make(chan int)
	go func() {
		n, _ := io.Copy(io.Discard, r)
		joins <- int(n)
	}()
	for killed := 0; killed < kills; {
		s.observe()
		for rank, p := range s.peers {
			if time.Now().After(p.end) {
				s.kill(rank)
				s.start(rank)
				killed++
			}
		}
	}
	for rank := range s.peers {
		s.kill(rank)
	}
	w.Close()
	n := testwait.Receive(t, "the end of all members", joins)
	checkNothingLeft(t, s.job)
	if _, err := findSegment(s.job, false); err == nil {
		t.Error("the segment is still there")
	}
	if n == 0 || s.most == 0 {
		t.Errorf("%d joins, at most %d bytes locked: the test sees nothing", n, s.most)
	}
	t.Logf("%d kills, %d joins, %d observations; at most %d of %d bytes were locked", kills, n,
		s.observed, s.most, soakBudget)
}
