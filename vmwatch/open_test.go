package vmwatch

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// open returns a Watcher, or skips where the kernel's refusal is the expected
// one; any other refusal fails.
func open(t testing.TB, mechanism string) *Watcher {
	t.Helper()
	w, err := Open(Options{Mechanism: mechanism})
	if err != nil {
		root := os.Geteuid() == 0
		switch {
		case !errors.Is(err, ErrUnavailable):
		case mechanism == "fentry" &&
			(strings.Contains(err.Error(), unix.EPERM.Error()) || strings.Contains(err.Error(), errPreemptible.Error())),
			mechanism == "tps" && strings.Contains(err.Error(), errPreemptible.Error()):
			t.Skip("this kernel allows no such BPF programs:", err)
		case mechanism != "uffd" && !root:
			t.Skip("needs root:", err)
		case mechanism == "uffd" &&
			(strings.Contains(err.Error(), "needs Linux 6.7") || strings.Contains(err.Error(), unix.ENOSYS.Error())):
			t.Skip(err)
		}
		t.Fatal(err)
	}
	return w
}

// openOrExplain is open, closed with the test.
func openOrExplain(t testing.TB, mechanism string) *Watcher {
	t.Helper()
	w := open(t, mechanism)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return w
}

// need skips unless the mechanism works here.
func need(t testing.TB, mechanism string) {
	t.Helper()
	if err := open(t, mechanism).Close(); err != nil {
		t.Fatal(err)
	}
}

// underEach runs a test for each mechanism that lets anything be cached.
func underEach(t *testing.T, test func(t *testing.T, w *Watcher)) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd", "pfn"} {
		t.Run(m, func(t *testing.T) { test(t, openOrExplain(t, m)) })
	}
}

func TestChoiceIsReportedWithItsGaps(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		r := w.Report()
		if r.Chosen != w.Mechanism() || len(r.Tested) < 15 {
			t.Errorf("chosen %v, %d kinds of change tested, want 15 or more:\n%v", r.Chosen, len(r.Tested), r)
		}
		if r.Chosen != Fentry && len(r.Gaps) == 0 {
			t.Errorf("%v has no gaps?", r.Chosen)
		}
	})
}

func TestAutomaticChoiceNeverFails(t *testing.T) {
	w, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, a := range w.Report().Attempts {
		if (a.Err == nil) != (a.Mechanism == w.Mechanism()) {
			t.Errorf("%v: %v, but %v was chosen", a.Mechanism, a.Err, w.Mechanism())
		}
	}
}

func TestUnknownMechanismIsRefusedWithTheKnownOnes(t *testing.T) {
	if _, err := Open(Options{Mechanism: "ebpf"}); err == nil || !strings.Contains(err.Error(), "uffd") {
		t.Errorf("got %v", err)
	}
}

func TestSelfTestRefusesAMechanismThatMissesAChange(t *testing.T) {
	need(t, "tps")
	s, err := load(TPS)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	n := s.note.(*bpfNotifier)
	for _, l := range n.links {
		l.Close()
	}
	n.links = nil
	if _, _, err := selfTest(newWatcher(s), change.Kinds); err == nil {
		t.Error("detached programs passed")
	}
}

func TestNothingIsCacheableWithoutMechanism(t *testing.T) {
	w := openOrExplain(t, "none")
	r, free, err := scratch(4 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	if _, _, err := w.Watch(r); !errors.Is(err, ErrNotCacheable) {
		t.Errorf("got %v, want ErrNotCacheable", err)
	}
}
