package vmwatch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/internal/testwait"
)

// board is a Board of one process.
type board struct{ words [BoardWords]uint64 }

func (b *board) UpdateBoard(_ time.Duration, update func(*[BoardWords]uint64)) error {
	update(&b.words)
	return nil
}

const boardVar = "VMWATCH_TEST_BOARD"

func init() {
	// It opens what another process has loaded, says so, and when its input ends tests it whole.
	children["join"] = func() {
		var words [BoardWords]uint64
		err := json.Unmarshal([]byte(os.Getenv(boardVar)), &words)
		m := choices[os.Getenv("VMWATCH_TEST_MECHANISM")][0]
		var s *source
		if err == nil {
			s, err = join(m, &words)
		}
		fmt.Println("joined:", err)
		if err != nil {
			os.Exit(2)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		w := newWatcher(s)
		tested, _, err := selfTest(w, change.Kinds)
		fmt.Println("tested:", len(tested) > 10, err, s.close())
	}
}

// joiner starts a child that joins, and returns a function that lets it go on and returns what it says at its end.
func joiner(t *testing.T, mechanism string, b *board) (goOn func() string) {
	t.Helper()
	words, err := json.Marshal(b.words)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=join", "VMWATCH_TEST_MECHANISM="+mechanism, boardVar+"="+string(words))
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	if lines.Text() != "joined: <nil>" {
		t.Fatalf("the child says %q", lines.Text())
	}
	return func() string {
		in.Close()
		lines.Scan()
		return lines.Text()
	}
}

// Two processes use what a third has loaded, each with a log of its own, and after the third has closed it.
func TestProcessesOfAJobShareProgramsBeyondTheLifeOfTheOneThatLoadedThem(t *testing.T) {
	testwait.Bound(t)
	for _, m := range []string{"fentry", "tps", "tp"} {
		t.Run(m, func(t *testing.T) {
			need(t, m)
			b := &board{}
			w, err := Open(Options{Mechanism: m, Board: b})
			if err != nil {
				t.Fatal(err)
			}
			if b.words[boardKey] == 0 {
				t.Skip("this kernel does not say the numbers of all links")
			}
			one, two := joiner(t, m, b), joiner(t, m, b)
			if _, _, err := selfTest(w, change.Kinds[:2]); err != nil {
				t.Errorf("the first process misses changes now: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for _, goOn := range []func() string{one, two} {
				if said := goOn(); !strings.HasPrefix(said, "tested: true <nil> <nil>") {
					t.Errorf("a process that joined says %q", said)
				}
			}
		})
	}
}

// linked counts the links of a board that the kernel still has.
func linked(b *board) (n int) {
	for _, id := range b.words[boardFirstLink:][:b.words[boardLinks]] {
		if fd, err := openBPFObject(unix.BPF_LINK_GET_FD_BY_ID, uint32(id)); err == nil {
			unix.Close(fd)
			n++
		}
	}
	return n
}

// To detach a program takes the kernel up to some 200 ms. No process has a link that it would wait for when it ends.
func TestNoProcessWaitsForDetachments(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp"} {
		t.Run(m, func(t *testing.T) {
			need(t, m)
			b := &board{}
			w, err := Open(Options{Mechanism: m, Board: b})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			n := w.source.note.(*bpfNotifier)
			if b.words[boardKey] == 0 {
				t.Skip("this kernel does not say the numbers of all links")
			}
			if len(n.links) != 1 || linked(b) != int(b.words[boardLinks]) {
				t.Errorf("the process has %d descriptors, and the kernel %d links of %d", len(n.links), linked(b), b.words[boardLinks])
			}
			if _, _, err := selfTest(w, change.Kinds[:2]); err != nil {
				t.Errorf("changes are missed: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "links", func() int { return linked(b) }, 0)
		})
	}
}

// What a board says of programs that are gone, or are others, is ignored and replaced.
func TestProgramsThatNobodyHasAreLoadedAnew(t *testing.T) {
	need(t, "tps")
	b := &board{}
	for range 2 {
		before := b.words
		w, err := Open(Options{Mechanism: "tps", Board: b})
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Report().Tested) < 15 {
			t.Errorf("only %d kinds of change were tested", len(w.Report().Tested))
		}
		if slices.Equal(before[:], b.words[:]) {
			t.Error("the board still says the same")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "links", func() int { return linked(b) }, 0)
	}
	b.words[boardKey]++
	if _, err := join(TPS, &b.words); !errors.Is(err, errNothingToJoin) {
		t.Errorf("joined other programs: %v", err)
	}
	b.words[boardKey], b.words[boardLinks] = sharedKey()+uint64(TPS), BoardWords
	if _, err := join(TPS, &b.words); !errors.Is(err, errNothingToJoin) {
		t.Errorf("joined %d links: %v", BoardWords, err)
	}
}

// A board that another process keeps does not keep this one from loading its own.
func TestABoardThatIsKeptIsDoneWithout(t *testing.T) {
	need(t, "tps")
	w, err := Open(Options{Mechanism: "tps", Board: kept{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

type kept struct{}

func (kept) UpdateBoard(time.Duration, func(*[BoardWords]uint64)) error { return errors.New("kept") }
