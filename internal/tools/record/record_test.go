package record

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/trace"
)

func TestPatternMatchesOnlyTracesOfRanks(t *testing.T) {
	m, err := matcher("/x/run.7%%.%r.%h.pwt")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"run.7%.0.node1.pwt": true, "run.7%.12.a.b.pwt": true,
		"run.7%.0.node1.pwt.99.partial": true, "run.7%.x.node1.pwt": false, "run.7%.0.node1.pwt~": false,
		"runx7%.0.node1.pwt": false, "app.pwt": false,
	} {
		if m.MatchString(name) != want {
			t.Errorf("%s: match %v, want %v", name, !want, want)
		}
	}
	for _, pattern := range []string{"/x/all.pwt", "/x/%h.pwt", "/x/%j.%%r.pwt", "/x/%h/%r.pwt"} {
		if _, err := matcher(pattern); err == nil {
			t.Errorf("%s: ranks would write the same file, or into different directories", pattern)
		}
	}
}

func TestDirectoryStandsForFilesOfRanks(t *testing.T) {
	dir := t.TempDir()
	for _, out := range []string{dir, dir + "/", dir + "/new/", dir + "/a/b/new", dir + "/run.7"} {
		r, err := New(out, "", "app", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir + "/new"); err == nil && out == dir+"/new/" {
			t.Errorf("%s was made before the job is known to start", out)
		}
		if err := r.Prepare(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(out); err != nil || !info.IsDir() {
			t.Errorf("%s was not made: %v", out, err)
		}
		if !strings.HasSuffix(r.Pattern(), "/%r.pwt") ||
			filepath.Base(filepath.Dir(r.Pattern())) != filepath.Base(filepath.Clean(out)) {
			t.Errorf("%s: %s", out, r.Pattern())
		}
	}
	if _, err := New(dir+"/x.pwt", "", "app", false); err == nil {
		t.Error("a trace of all ranks was taken for a directory")
	}
}

func TestWhatIsNoFileIsLeftAloneEvenByForce(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/sub", 0o777), os.Mkdir(dir+"/one", 0o777),
		os.Mkdir(dir+"/one/0.pwt", 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, merged := range []string{outfiletest.Device(t, outfiletest.Null), dir + "/sub"} {
		if _, err := New(dir, merged, "app", true); err == nil ||
			!strings.Contains(err.Error(), merged+" is in the way of a trace, and no file") {
			t.Errorf("%s: %v", merged, err)
		}
	}
	if _, err := New(dir+"/one", "", "app", true); err == nil {
		t.Error("a directory in the way")
	}
}

func TestWorkingDirectoryMayHaveAPercentSign(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "100%h")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	r, err := New("tr/", "", "app", false)
	if err != nil || !strings.HasSuffix(r.Pattern(), "/100%%h/tr/%r.pwt") {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := r.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/tr"); err != nil {
		t.Error(err)
	}
}

func touch(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForceRemovesTracesInTheWayAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	touch(t, dir, "0.pwt", "11.pwt", "3.pwt.77.partial", "app.pwt", "other.pwt", "0.txt")
	if _, err := New(dir, "", "/bin/app", false); err == nil || !strings.Contains(err.Error(), "0.pwt exists") {
		t.Errorf("without force: %v", err)
	}
	r, err := New(dir, "", "/bin/app", true)
	if err == nil {
		err = r.Prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(dir + "/*") // app.pwt is there until it is replaced
	if err != nil || !slices.Equal(left, []string{dir + "/0.txt", dir + "/app.pwt", dir + "/other.pwt"}) {
		t.Errorf("left: %q, %v", left, err)
	}
}

// Ranks that MPI_Comm_spawn has started are numbered from 0 as well.
func TestRanksThatWereStartedByOthersHaveATraceOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	r, err := New(dir+"/%h.%r.pwt", "", "app", false)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, ranks, rank int) {
		w, err := trace.Create(filepath.Join(dir, name), trace.Header{Program: name[:1], Ranks: ranks})
		if err != nil {
			t.Fatal(err)
		}
		rw, err := w.Rank(rank)
		if err == nil {
			err = rw.Append(&trace.Record{Op: trace.OpFinalize, Peer: -2})
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("a.0.pwt", 2, 0)
	write("a.1.pwt", 2, 1)
	write("a.2-0.pwt", 1, 0)
	write("a.13-0.pwt", 3, 0)
	write("a.13-1.pwt", 3, 1)
	res, err := r.Merge()
	if err != nil || res.Files != 2 || res.Ranks != 2 || len(res.Started) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	for i, want := range []Result{{Path: "app-2.pwt", Files: 1, Ranks: 1, Records: 1},
		{Path: "app-13.pwt", Files: 2, Ranks: 3, Records: 2}} {
		s := res.Started[i]
		if filepath.Base(s.Path) != want.Path || s.Files != want.Files || s.Ranks != want.Ranks || s.Records != want.Records {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	if err := os.Remove(res.Path); err != nil {
		t.Fatal(err)
	}
	res, err = r.Merge() // the traces of those started are in the way now
	if err == nil || res.Files != 2 || len(res.Started) != 0 || strings.Count(err.Error(), "--force") != 2 {
		t.Errorf("over what is there: %+v, %v", res, err)
	}
}

func TestMergeTellsNothingFromTornFromDamaged(t *testing.T) {
	dir := t.TempDir()
	r, err := New(dir, "", "app", false)
	if err != nil {
		t.Fatal(err)
	}
	touch(t, dir, "0.pwt.5.partial") // opened, and nothing came
	if _, err := r.Merge(); !errors.Is(err, ErrNothing) {
		t.Errorf("without traces: %v", err)
	}
	w, err := trace.Create(filepath.Join(dir, "0.pwt"), trace.Header{Ranks: 1}) // begun, and nothing came
	if err == nil {
		_, err = w.Rank(0)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Merge(); !errors.Is(err, ErrNothing) {
		t.Errorf("with an empty trace: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "app.pwt")); err == nil {
		t.Error("an empty trace was left")
	}
	if err := os.Remove(filepath.Join(dir, "0.pwt")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile("../../../results/traces/lu.B.4.pwt")
	if err != nil {
		t.Fatal(err)
	}
	cut := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), whole[:len(whole)/2], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cut("0.pwt.7.partial") // the rank was killed
	res, err := r.Merge()
	var torn *trace.TornError
	if err != nil || res.Program != "lu.B.4" || res.Files != 1 || len(res.Torn) != 1 || !errors.As(res.Torn[0], &torn) {
		t.Errorf("torn trace: %+v, %v", res, err)
	}
	cut("0.pwt") // then the partial one is of another run
	if res, err := r.Merge(); err != nil || res.Files != 1 {
		t.Errorf("whole beside partial trace: %+v, %v", res, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1.pwt"), []byte("no trace at all"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Merge(); !errors.Is(err, trace.ErrNotTrace) {
		t.Errorf("with a file that is no trace: %v", err)
	}
}
