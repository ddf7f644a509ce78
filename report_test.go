package pinwheel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
	"pinwheel/verbs"
)

// useFiveTimes uses one buffer five times with a Manager that simulates registrations, and closes it.
func useFiveTimes(t *testing.T, o Options) {
	t.Helper()
	o.ProviderName, o.IdlePolicy = "sim", IdleIgnore
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	th, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	site := NewSite("halo")
	for range 5 {
		var use Use
		if err := th.Acquire(&use, region(0), verbs.AccessRemoteRead, 1, &site); err != nil {
			t.Fatal(err)
		}
		th.Release(&use)
	}
	testwait.Until(t, "the helper hears of five uses", func() bool { return m.Stats().Helper.Events >= 5 })
	th.Close()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReportSaysWhatHappened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.%p")
	var informed []string
	useFiveTimes(t, Options{Report: file, Inform: func(s string) { informed = append(informed, s) }})
	if len(informed) != 1 || !strings.Contains(informed[0], "policy pinwheel, provider sim") {
		t.Errorf("New informed %q, want one line with policy and provider", informed)
	}
	matches, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "report.*"))
	if len(matches) != 1 || strings.Contains(matches[0], "%") {
		t.Fatalf("report files %v", matches)
	}
	text, err := os.ReadFile(matches[0])
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{"@ Policy pinwheel @ Provider sim @ Mappings off", "1.0 MiB",
		"@--- Call sites"} {
		if !strings.Contains(words, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	// The helper may have released the buffer between two uses: then one more was late, and no hit.
	if !regexp.MustCompile(` 5 (4 1 0|3 1 1|2 1 2|1 1 3|0 1 4) [0-9]+ `).MatchString(words) {
		t.Errorf("the report lacks five uses, the first one and four hits or late:\n%s", text)
	}
}

func TestReportThatCannotBeWrittenIsAWarning(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{outfiletest.Device(t, outfiletest.Full), t.TempDir(), fifo} { // nobody reads the FIFO
		reportThatCannotBeWritten(t, name)
	}
}

func reportThatCannotBeWritten(t *testing.T, name string) {
	var warned []string
	m, err := New(Options{ProviderName: "sim", Policy: LeavePinned, Report: name,
		Warn: func(s string) { warned = append(warned, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if len(warned) != 1 || !strings.HasPrefix(warned[0], "report: "+name+": ") {
		t.Errorf("warned %q, want one line that names the file", warned)
	}
}
