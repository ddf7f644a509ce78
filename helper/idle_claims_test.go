package helper

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pinwheel/internal/testwait"
)

// peerEnv makes the test binary a peer, given as DIRECTORY:MODE. It claims
// processor 1 in the directory, or locks the table there, and then waits to be
// killed; or it prints the processors that its helper may use.
const peerEnv = "PINWHEEL_TEST_PEER_DIR"

func init() {
	dir, mode, ok := strings.Cut(os.Getenv(peerEnv), ":")
	if !ok {
		return
	}
	if mode == "allowed" {
		fmt.Println(AllowedCPUs())
		os.Exit(0)
	}
	owner, err := newOwner()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	say := func() {
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
		os.Exit(0)
	}
	err = newClaimTable(dir).update(func(all []Claim) []Claim {
		if mode == "locked" {
			say()
		}
		return append(all, Claim{Owner: owner, CPU: 1, Bytes: 1 << 30})
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	say()
}

// startPeer starts a peer and waits until it is ready. It is killed, with
// SIGKILL, when kill is called.
func startPeer(t *testing.T, dir, mode string) (pid int, kill func()) {
	t.Helper()
	cmd := testwait.Command(t, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), peerEnv+"="+dir+":"+mode)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		stdin.Close()
	})
	t.Cleanup(kill)
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("peer says %q, %v", line, err)
	}
	return cmd.Process.Pid, kill
}

func readClaims(t *testing.T, table *claimTable) (claims []Claim) {
	t.Helper()
	err := table.update(func(all []Claim) []Claim { claims = slices.Clone(all); return all })
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestClaimOfKilledProcessIsDropped(t *testing.T) {
	dir := t.TempDir()
	table := newClaimTable(dir)
	pid, kill := startPeer(t, dir, "claimed")
	if claims := readClaims(t, table); len(claims) != 1 || claims[0].Owner.PID != int32(pid) || claims[0].CPU != 1 || claims[0].Bytes != 1<<30 {
		t.Fatalf("claims %v, want that of process %d", claims, pid)
	}
	kill()
	if claims := readClaims(t, table); len(claims) != 0 {
		t.Errorf("claims %v after process %d was killed", claims, pid)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestClaimOfReusedProcessNumberIsDropped(t *testing.T) {
	self, err := newOwner()
	if err != nil {
		t.Fatal(err)
	}
	former := self
	former.Start-- // a process of this number that started earlier
	got := decodeClaims(encodeClaims([]Claim{{Owner: former, CPU: 1}, {Owner: self, CPU: AnyCPU, Bytes: 5}}))
	if want := []Claim{{Owner: self, CPU: AnyCPU, Bytes: 5}}; !slices.Equal(got, want) {
		t.Errorf("claims %v, want %v", got, want)
	}
}

func TestTableIsUsableAfterItsHolderWasKilled(t *testing.T) {
	dir := t.TempDir()
	table := newClaimTable(dir)
	_, kill := startPeer(t, dir, "locked")
	if err := table.update(func(all []Claim) []Claim { return all }); !errors.Is(err, errClaimsBusy) {
		t.Errorf("update of a locked table: %v, want %v", err, errClaimsBusy)
	}
	kill()
	if claims := readClaims(t, table); len(claims) != 0 {
		t.Errorf("claims %v", claims)
	}
}

func TestTornTableHeals(t *testing.T) {
	self, err := newOwner()
	if err != nil {
		t.Fatal(err)
	}
	table := newClaimTable(t.TempDir())
	one := encodeClaims([]Claim{{Owner: self, CPU: 1, Bytes: 7}})
	// A shorter list was written over a longer one and not cut; the tail is
	// half a record.
	torn := append(append(slices.Clone(one), one...), one[:claimBytes/2]...)
	if err := os.WriteFile(table.path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if claims := readClaims(t, table); len(claims) != 1 || claims[0].Bytes != 7 {
		t.Errorf("claims %v, want one", claims)
	}
	if info, err := os.Stat(table.path); err != nil || info.Size() != claimBytes {
		t.Errorf("size %d, %v after an update, want %d", info.Size(), err, claimBytes)
	}
}

func TestTableIsNotFollowedThroughSymbolicLink(t *testing.T) {
	table := newClaimTable(t.TempDir())
	target := table.path + ".victim"
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, table.path); err != nil {
		t.Fatal(err)
	}
	if err := table.update(func([]Claim) []Claim { return nil }); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("update through a symbolic link: %v, want ELOOP", err)
	}
	if text, _ := os.ReadFile(target); string(text) != "precious" {
		t.Errorf("the file behind the link now holds %q", text)
	}
}

// Updates must exclude each other, and emptying the table must not lose the
// claim of somebody who opened it before it was removed.
func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	testwait.Bound(t)
	dir := t.TempDir()
	const helpers, rounds = 4, 50
	var wg sync.WaitGroup
	for range helpers {
		wg.Go(func() {
			table := newClaimTable(dir)
			self, err := newOwner()
			if err != nil {
				t.Error(err)
				return
			}
			for range rounds {
				err := table.update(func(all []Claim) []Claim { return append(all, Claim{Owner: self, CPU: 0}) })
				if err != nil {
					t.Error(err)
				}
				err = table.update(func(all []Claim) []Claim {
					i := slices.IndexFunc(all, func(c Claim) bool { return c.Owner == self })
					if i < 0 {
						t.Error("the claim is lost")
						return all
					}
					return slices.Delete(all, i, i+1)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestClaimsListsTheLivingWithoutTouchingTheTable(t *testing.T) {
	dir := t.TempDir()
	if all, err := Claims(dir); err != nil || len(all) != 0 {
		t.Fatalf("without a table: %v, %v", all, err)
	}
	pid, kill := startPeer(t, dir, "claim")
	all, err := Claims(dir)
	if err != nil || len(all) != 1 || int(all[0].Owner.PID) != pid || all[0].CPU != 1 || all[0].Bytes != 1<<30 {
		t.Errorf("with a peer: %+v, %v, want one claim of %d", all, err, pid)
	}
	kill()
	if all, err := Claims(dir); err != nil || len(all) != 0 {
		t.Errorf("with a dead peer: %v, %v", all, err)
	}
}
