package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pinwheel/internal/tools/launch/launchtest"
	"pinwheel/trace"
)

func itoa(s syscall.Signal) string { return strconv.Itoa(int(s)) }

// writeTrace puts the trace of one rank where the stand-in program takes it from.
func writeTrace(t *testing.T, site *launchtest.Site, rank, ranks int) {
	t.Helper()
	w, err := trace.Create(site.Path(fmt.Sprintf("rank%d", rank)), trace.Header{Program: "app record", Ranks: ranks})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := w.Rank(rank)
	if err == nil {
		err = rw.DefineComm(1, 0, []int32{int32(rank)})
	}
	if err == nil {
		err = rw.Append(&trace.Record{StartNs: 1, EndNs: 2, Op: trace.OpBarrier, Comm: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRecordMergesTheRanksAndSaysWhatIsNext(t *testing.T) {
	site, dir := launchtest.New(t), t.TempDir()
	writeTrace(t, site, 0, 2)
	writeTrace(t, site, 1, 2)
	line := "record --library " + site.Library + " -o " + dir + "/%r.pwt -- mpirun -n 2 app record"
	stdout, stderr, state := pinwheel(t, line)
	if !state.Success() || stdout != "" {
		t.Fatalf("%v, stdout %q, stderr %q", state, stdout, stderr)
	}
	oneLine(t, stderr, "recorded 2 calls of 2 ranks of app record; now type: nasreplay compare ")
	fields := strings.Fields(stderr) // the command has the directory of this test, and may name the file from there
	if named, err := filepath.Abs(fields[len(fields)-1]); err != nil || named != dir+"/app.pwt" {
		t.Errorf("%q names %s: %v", stderr, named, err)
	}
	f, err := trace.Open(filepath.Join(dir, "app.pwt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !slices.Equal(f.Ranks(), []int{0, 1}) {
		t.Errorf("merged trace has the ranks %v", f.Ranks())
	}

	_, stderr, state = pinwheel(t, line)
	if state.ExitCode() != 2 {
		t.Errorf("second run: %v", state)
	}
	oneLine(t, stderr, "exists: --force replaces it")
	if err := os.Remove(site.Path("rank1")); err != nil {
		t.Fatal(err)
	}
	_, stderr, state = pinwheel(t, strings.Replace(line, "record ", "record --force ", 1))
	if !state.Success() {
		t.Errorf("forced run must not mix in the old traces: %v", state)
	}
	oneLine(t, stderr, "recorded 1 calls of 1 ranks")
	oneLine(t, stderr, "nasreplay compare needs the traces of all 2")
}

func TestRecordWithoutTracesSaysSoAndKeepsTheStatus(t *testing.T) {
	site := launchtest.New(t)
	_, stderr, state := pinwheel(t, "record --library "+site.Library+" -o "+t.TempDir()+"/new/ -- app exit 5")
	if state.ExitCode() != 5 {
		t.Errorf("%v", state)
	}
	oneLine(t, stderr, "nothing was recorded")
	if !slices.ContainsFunc(site.Lines("environ"), func(e string) bool {
		return strings.HasPrefix(e, "PINWHEEL_RECORD=/") && strings.HasSuffix(e, "/new/%r.pwt")
	}) {
		t.Errorf("environment %q", site.Lines("environ"))
	}
}

func TestRecordLeavesTracesOfRanksIfAsked(t *testing.T) {
	site, dir := launchtest.New(t), t.TempDir()
	writeTrace(t, site, 0, 1)
	_, stderr, state := pinwheel(t, "record --no-merge --library "+site.Library+" -o "+dir+"/x.%r.pwt -- app record")
	if names, _ := filepath.Glob(dir + "/*"); !state.Success() || !slices.Equal(names, []string{dir + "/x.0.pwt"}) {
		t.Errorf("%v, files %q", state, names)
	}
	oneLine(t, stderr, "nasreplay merge")
}
