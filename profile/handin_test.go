package profile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

func testNode(t *testing.T, ranks int) Node {
	return Node{Job: fmt.Sprintf("test-%d-%.20s", os.Getpid(), t.Name()), Ranks: ranks}
}

// written collects what the elected ranks write.
type written struct {
	mu    sync.Mutex
	files [][]int
	err   error
}

func (w *written) write(parts []Part) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ranks []int
	for _, p := range parts {
		if string(p.packed) != fmt.Sprintf("of %d", p.Rank) || !slices.Equal(p.Modules, modulesOf(p.Rank)) {
			return fmt.Errorf("rank %d has handed in %q of %+v", p.Rank, p.packed, p.Modules)
		}
		ranks = append(ranks, p.Rank)
	}
	slices.Sort(ranks)
	w.files = append(w.files, ranks)
	return w.err
}

// modulesOf are the libraries that a rank sends from: ranks may differ in them.
func modulesOf(rank int) []Module {
	return []Module{{Name: "app", Build: "1"}, {Name: fmt.Sprintf("lib%d.so", rank%2), Build: "2"}}
}

// handIn is what so many ranks do that end together. It returns their errors.
func (w *written) handIn(n Node, ranks ...int) (failed []error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	present := make([]*Participant, len(ranks))
	for i := range ranks {
		present[i] = n.Join(someKey())
	}
	for i, r := range ranks {
		all.Go(func() {
			defer present[i].Leave()
			if err := present[i].HandIn(Part{r, modulesOf(r), fmt.Appendf(nil, "of %d", r)}, w.write); err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return failed
}

func TestRanksOfANodeWriteOneFile(t *testing.T) {
	var w written
	ranks := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	start := time.Now()
	if failed := w.handIn(testNode(t, len(ranks)), ranks...); failed != nil {
		t.Error(failed)
	}
	if len(w.files) != 1 && time.Since(start) < quiet {
		t.Errorf("files of %v", w.files)
	}
	if got := slices.Concat(w.files...); !slices.Equal(slices.Sorted(slices.Values(got)), ranks) {
		t.Errorf("files of %v", w.files)
	}
}

func TestRankThatDoesNotComeIsNotWaitedForLong(t *testing.T) {
	testwait.Bound(t)
	var w written
	n := testNode(t, 3)
	defer n.Join(someKey()).Leave()
	before := longest
	t.Cleanup(func() { longest = before })
	longest, patience = 2*testwait.Limit, 2*testwait.Limit // who waits for that takes too long
	start := time.Now()
	if failed := w.handIn(n, 0, 2); failed != nil {
		t.Error(failed)
	}
	if took := time.Since(start); took < quiet {
		t.Errorf("after %v", took)
	}
	if got := slices.Concat(w.files...); !slices.Equal(slices.Sorted(slices.Values(got)), []int{0, 2}) {
		t.Errorf("files of %v", w.files)
	}
}

func setTimes(t *testing.T, most time.Duration) {
	before := []time.Duration{quiet, longest, patience}
	t.Cleanup(func() { quiet, longest, patience = before[0], before[1], before[2] })
	quiet, longest, patience = most, most, most
}

// The launcher tells how many ranks there are, and not which of them send large messages.
func TestNobodyWaitsForRanksThatHaveNothingToHandIn(t *testing.T) {
	testwait.Bound(t)
	setTimes(t, time.Hour)
	var w written
	n := testNode(t, 64)
	n.Join(someKey()).Leave() // a rank that came to its end before
	if failed := w.handIn(n, 5, 7, 9); failed != nil {
		t.Error(failed)
	}
	if got := slices.Concat(w.files...); !slices.Equal(slices.Sorted(slices.Values(got)), []int{5, 7, 9}) {
		t.Errorf("files of %v", w.files)
	}
}

// Another user may have the name, or a debugger the process that collects.
func TestNobodyWaitsForAProcessThatTakesNoPart(t *testing.T) {
	testwait.Bound(t)
	n := testNode(t, 2)
	door, err := listen(n.name(someKey(), ""))
	if err == nil {
		err = unix.Listen(door, 0) // with room for one
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(door)
	fd, err := socket()
	if err == nil {
		err = unix.Connect(fd, n.name(someKey(), ""))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	setTimes(t, 5*time.Millisecond)
	patience = time.Hour // not on this alone
	var w written
	if failed := w.handIn(n, 1); failed != nil || len(w.files) != 1 || !slices.Equal(w.files[0], []int{1}) {
		t.Errorf("%v, files of %v", failed, w.files)
	}
}

// A part that comes byte by byte must not take longer than one that doesn't come.
func TestSlowPartIsLeftOut(t *testing.T) {
	testwait.Bound(t)
	setTimes(t, 300*time.Millisecond) // the sender must not be interrupted for as long
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	done := make(chan error, 1)
	go func() { _, err := receive(ends[1]); unix.Close(ends[1]); done <- err }()
	header := []byte{0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0} // a part of 16 MiB
	for b := header; ; b = []byte{0} {
		if _, err := unix.SendmsgN(ends[0], b, nil, nil, unix.MSG_NOSIGNAL); err != nil {
			break // it waits no longer
		}
	}
	if err := <-done; !errors.Is(err, unix.EAGAIN) {
		t.Error(err)
	}
}

func TestFailureIsToldOnce(t *testing.T) {
	w := written{err: errors.New("disk full")}
	failed := w.handIn(testNode(t, 4), 0, 1, 2, 3)
	if len(failed) != len(w.files) {
		t.Errorf("%d files, %v", len(w.files), failed)
	}
}

func TestSingleRankNeedsNoSocket(t *testing.T) {
	w := written{err: unix.ENOSPC}
	if failed := w.handIn(Node{Job: "alone", Ranks: 1}, 0); len(failed) != 1 || !errors.Is(failed[0], unix.ENOSPC) {
		t.Error(failed)
	}
}

// The one that was elected dies with the parts of others.
func TestPartsOutliveTheirWriter(t *testing.T) {
	n := testNode(t, 2)
	door, err := listen(n.name(someKey(), ""))
	if err != nil {
		t.Fatal(err)
	}
	var w written
	done := make(chan []error, 1)
	go func() { done <- w.handIn(n, 1) }()
	fd, _, err := unix.Accept(door)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := receive(fd); err != nil || p.Rank != 1 {
		t.Error(p, err)
	}
	unix.Close(door)
	unix.Close(fd)
	if failed := <-done; failed != nil || len(w.files) != 1 || !slices.Equal(w.files[0], []int{1}) {
		t.Errorf("%v, files of %v", failed, w.files)
	}
}

func TestNonsenseFromOthersIsLeftOut(t *testing.T) {
	testwait.Bound(t)
	n := testNode(t, 3)
	name := n.name(someKey(), "")
	var w written
	done := make(chan []error, 1)
	go func() { done <- w.handIn(n, 0) }()
	for _, nonsense := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\xff", "short", ""} {
		fd, err := socket()
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(10 * time.Second)
		for err = unix.Connect(fd, name); err != nil && time.Now().Before(end) && len(w.snapshot()) == 0; err = unix.Connect(fd, name) {
			time.Sleep(time.Millisecond)
		}
		_, _ = unix.SendmsgN(fd, []byte(nonsense), nil, nil, unix.MSG_NOSIGNAL)
		unix.Close(fd)
	}
	if failed := <-done; failed != nil || len(w.files) != 1 || !slices.Equal(w.files[0], []int{0}) {
		t.Errorf("%v, files of %v", failed, w.files)
	}
}

func (w *written) snapshot() [][]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.files)
}
