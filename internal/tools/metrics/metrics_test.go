package metrics

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/atomic"

	"pinwheel/internal/tools/monitor"
	"pinwheel/internal/tools/monitor/monitortest"
)

var update = flag.Bool("update", false, "write testdata anew")

// of returns the text of a look.
func of(t *testing.T, l monitor.Look) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, Registry(func() (monitor.Look, error) { return l, nil })); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	l := everything()
	l.Jobs[0].Ranks[1].Program = "a\"b\\c\nd"
	got := of(t, l)
	const golden = "testdata/two-ranks.prom"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test ./internal/tools/metrics -update):\n%s", golden, got)
	}
	if escaped := `program="a\"b\\c\nd"`; !strings.Contains(got, escaped) {
		t.Errorf("no %s", escaped)
	}
	if job := "{job="; strings.Contains(got, job) {
		t.Error("a label is called job, which is Prometheus's own")
	}
}

// everything is a look at a node that has one of each metric.
func everything() monitor.Look {
	l := monitortest.Node(2, 75, 1<<30)
	l.VMMC, l.Files = monitortest.Processes(), monitortest.Servers()
	return l
}

// promtool check metrics finds the same problems.
func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(of(t, everything()))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestNodeWithoutJobsHasMetrics(t *testing.T) {
	got := of(t, monitor.Look{})
	if !strings.Contains(got, "\npinwheel_unreadable_jobs 0\n") || strings.Contains(got, "job_id") {
		t.Error(got)
	}
}

func TestLimitsThatAreNotSetAreNotThere(t *testing.T) {
	l := monitortest.Node(1, 75, 0)
	l.Jobs[0].Ranks[0].Helper = monitor.Helper{}
	got := of(t, l)
	for _, name := range []string{"budget", "helper_cpu", "helper_processor", "helper_parked"} {
		if strings.Contains(got, name) {
			t.Errorf("there is a %s in\n%s", name, got)
		}
	}
}

func TestRanksOfTheSameNumberAreTwo(t *testing.T) {
	l := monitortest.Node(2, 75, 0)
	l.Jobs[0].Ranks[1].Rank = 0 // as MPI_Comm_spawn makes them
	if n := strings.Count(of(t, l), "\npinwheel_pinned_bytes{"); n != 2 {
		t.Errorf("%d series", n)
	}
}

var errLook = errors.New("no look today")

func TestFailedLookFailsTheScrape(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, Registry(func() (monitor.Look, error) { return monitor.Look{}, errLook }))
	if err == nil || !strings.Contains(err.Error(), errLook.Error()) {
		t.Errorf("%v, %s", err, b.String())
	}
}

// A file is renewed every interval, also after a failure, and gone in the end.
func TestFileIsKeptAndThenRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pinwheel.prom")
		var looks atomic.Int64 // the registry looks in a goroutine of its own
		g := Registry(func() (monitor.Look, error) {
			n := looks.Inc()
			if n == 3 {
				return monitor.Look{}, errLook
			}
			return monitortest.Node(1, float64(n), 0), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		warned, done := 0, make(chan error)
		go func() { done <- KeepFile(ctx, path, g, 15*time.Second, func(error) { warned++ }) }()
		var before string
		for n := int64(1); n <= 5; n++ {
			synctest.Wait()
			text, err := os.ReadFile(path)
			if err != nil || looks.Load() != n || (string(text) == before) != (n == 3) {
				t.Errorf("look %d of %d: %v, the same as before: %t", looks.Load(), n, err, string(text) == before)
			}
			before = string(text)
			time.Sleep(15 * time.Second)
		}
		cancel()
		if err := <-done; err != nil || warned != 1 {
			t.Errorf("%v, %d warnings", err, warned)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the file is left")
		}
	})
}

func TestFirstFailureEndsTheFile(t *testing.T) {
	g := Registry(func() (monitor.Look, error) { return monitor.Look{}, nil })
	if err := KeepFile(t.Context(), filepath.Join(t.TempDir(), "missing", "\x00"), g, time.Hour, nil); err == nil {
		t.Error("a file that can't be")
	}
}

var _ prometheus.Collector = (*collector)(nil)
