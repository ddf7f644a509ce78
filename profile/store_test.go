package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func save(t *testing.T, s Store, k Key, trained uint64, ranks ...int) {
	t.Helper()
	var parts []Part
	for _, r := range ranks {
		parts = append(parts, partOf(t, r, someTrained(trained+uint64(r), 5)))
	}
	if err := s.Save(k, parts); err != nil {
		t.Fatal(err)
	}
}

// age makes everything below a directory look so much older.
func age(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { all = append(all, path); return err })
	for _, path := range all {
		info, statErr := os.Stat(path)
		if err = errors.Join(err, statErr); err == nil {
			err = os.Chtimes(path, time.Time{}, info.ModTime().Add(-by))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestRankFindsItsPartWhicheverNodeWroteIt(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "made", "when needed")}
	k := someKey()
	if _, _, err := s.Load(k, 0, nil, false); !errors.Is(err, ErrNone) {
		t.Errorf("before the first run: %v", err)
	}
	save(t, s, k, 0, 0, 2, 4)
	save(t, s, k, 0, 1, 3, 5)
	for rank := range 6 {
		l, _, err := s.Load(k, rank, nil, false)
		if err != nil || !reflect.DeepEqual(l, someTrained(uint64(rank), 5)) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if _, _, err := s.Load(k, 6, nil, false); !errors.Is(err, ErrNone) {
		t.Errorf("a rank that there was not: %v", err)
	}
}

func TestRankThatLearnedNothingIsNotComparedWithOtherJobs(t *testing.T) {
	s, k := Store{Dir: t.TempDir()}, someKey()
	other := k
	other.Arguments = "of another job"
	save(t, s, k, 0, 0, 1)
	save(t, s, other, 0, 0, 1, 2)
	if _, _, err := s.Load(k, 2, nil, false); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	if _, _, err := s.Load(k, 2, nil, true); err != nil {
		t.Errorf("with force: %v", err)
	}
}

// Ranks may call MPI from different libraries; whichever of them is built anew, the file is of the old one.
func TestFileListsTheLibrariesOfAllItsRanks(t *testing.T) {
	s, k := Store{Dir: t.TempDir()}, someKey()
	parts := []Part{partOf(t, 0, someTrained(1, 5)), partOf(t, 1, someTrained(2, 5)), partOf(t, 2, someTrained(3, 5))}
	for i := range parts {
		parts[i].Modules = modulesOf(i)
	}
	if err := s.Save(k, parts); err != nil {
		t.Fatal(err)
	}
	f, err := Open(filepath.Join(s.Dir, k.directory(), "0-2.profile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if want := append(modulesOf(0), modulesOf(1)[1]); !slices.Equal(f.Modules, want) {
		t.Errorf("%+v, want %+v", f.Modules, want)
	}
}

func TestOnlyTheFileThatWasLoadedIsDiscarded(t *testing.T) {
	s, k := Store{Dir: t.TempDir()}, someKey()
	for _, replaced := range []bool{false, true} {
		save(t, s, k, 1, 0, 1)
		age(t, s.Dir, time.Minute)
		_, from, err := s.Load(k, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		if replaced {
			save(t, s, k, 2, 0, 1)
		}
		for range 2 { // two ranks
			if got, err := from.Discard(); err != nil || got != replaced {
				t.Errorf("replaced: %t, said: %t, %v", replaced, got, err)
			}
		}
		if left := files(t, s.Dir); len(left) != 0 && !replaced || len(left) != 1 && replaced {
			t.Errorf("replaced: %t, left: %q", replaced, left)
		}
	}
	other := k
	other.Ranks++
	if _, from, err := s.Load(other, 0, nil, true); err != nil || from != nil {
		t.Errorf("the file of another job: %+v, %v", from, err)
	}
}

func TestNewestFileOfARankCounts(t *testing.T) {
	s, k := Store{Dir: t.TempDir()}, someKey()
	save(t, s, k, 100, 0, 1, 2, 3)
	age(t, s.Dir, time.Minute)
	save(t, s, k, 200, 0, 1, 2) // rank 3 has died
	for rank, base := range map[int]uint64{1: 200, 3: 100} {
		if l, _, err := s.Load(k, rank, nil, false); err != nil || !reflect.DeepEqual(l, someTrained(base+uint64(rank), 5)) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	save(t, s, k, 300, 0, 1, 2, 3, 4)
	if names := files(t, s.Dir); !slices.Equal(names, []string{"0-4.profile"}) {
		t.Errorf("left: %q", names)
	}
}

func TestDamagedFileDoesNotHideAnOlderOne(t *testing.T) {
	s, k := Store{Dir: t.TempDir()}, someKey()
	save(t, s, k, 1, 0, 1)
	age(t, s.Dir, time.Minute)
	if err := os.WriteFile(filepath.Join(s.Dir, k.directory(), "0-7.profile"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Load(k, 0, nil, false); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Load(k, 5, nil, false); !errors.Is(err, ErrDamaged) {
		t.Errorf("nothing else has rank 5: %v", err)
	}
}

func TestOtherJobIsNotLoadedAndSaysWhy(t *testing.T) {
	s, k := Store{Dir: t.TempDir()}, someKey()
	save(t, s, k, 1, 0)
	for want, change := range map[string]func(*Key){
		"of a run of 64 ranks":            func(k *Key) { k.Ranks = 8 },
		`with the arguments "-n 3 input"`: func(k *Key) { k.Arguments = "-n 4" },
		"another build":                   func(k *Key) { k.Build = "" },
		"threshold of 16.0 KiB":           func(k *Key) { k.ThresholdBytes = 1 },
		"context window of 2":             func(k *Key) { k.Window = 0 },
	} {
		other := k
		change(&other)
		_, _, err := s.Load(other, 0, nil, false)
		if !errors.Is(err, ErrOtherJob) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
		if l, _, err := s.Load(other, 0, nil, true); err != nil || !reflect.DeepEqual(l, someTrained(1, 5)) {
			t.Errorf("%s, with force: %v", want, err)
		}
	}
	other := k
	other.Program = "ft" // whose name begins in the same way
	if _, _, err := s.Load(other, 0, nil, true); !errors.Is(err, ErrNone) {
		t.Errorf("another program: %v", err)
	}
}

func TestLeastRecentlyUsedJobsGo(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	keys := make([]Key, 5)
	for i := range keys {
		keys[i] = someKey()
		keys[i].Arguments = strings.Repeat("x", i)
		save(t, s, keys[i], 0, 0, 1)
		age(t, s.Dir, time.Minute)
	}
	foreign := filepath.Join(s.Dir, "notes-0123456789abcdef", "keep")
	mine := filepath.Join(s.Dir, keys[1].directory(), "keep")
	for _, path := range []string{foreign, mine} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	age(t, filepath.Join(s.Dir, keys[1].directory()), time.Hour)
	s.Used(keys[0])
	one, err := os.Stat(filepath.Join(s.Dir, keys[0].directory(), "0-1.profile"))
	if err != nil {
		t.Fatal(err)
	}
	s.LimitBytes = 3*one.Size() + one.Size()/2
	save(t, s, keys[4], 0, 0, 1) // which is used now
	var left []int
	for i, k := range keys {
		if _, _, err := s.Load(k, 0, nil, false); err == nil {
			left = append(left, i)
		}
	}
	if !slices.Equal(left, []int{0, 3, 4}) {
		t.Errorf("left are %v", left)
	}
	for _, path := range []string{foreign, mine} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a file of somebody else: %v", err)
		}
	}
}

func TestLimitBelowOneProfileLeavesTheLast(t *testing.T) {
	s, k := Store{Dir: t.TempDir(), LimitBytes: 1}, someKey()
	save(t, s, k, 0, 0)
	if _, _, err := s.Load(k, 0, nil, false); err != nil {
		t.Error(err)
	}
}

func TestManyRanksOfANodeHaveAFileName(t *testing.T) {
	var ranks []int
	for r := 5; r < 5000; r += 7 {
		ranks = append(ranks, r)
	}
	name := fileName(ranks)
	has, ok := ranksOf(name)
	if !ok || len(name) > 64 || !has(5) || !has(4996) || has(4) || has(5001) {
		t.Errorf("name %s", name)
	}
	for _, bad := range []string{"0", "x.profile", ".profile", "3-1.profile", "-1.profile", "0-3.profile.12.partial"} {
		if _, ok := ranksOf(bad); ok {
			t.Errorf("%s is a name", bad)
		}
	}
}

func TestProgramOfAnyNameHasADirectory(t *testing.T) {
	for _, program := range []string{"", "../../etc", "a b\n/c", strings.Repeat("ö", 300), ".hidden", "-rf"} {
		dir := Key{Program: program}.directory()
		if dir != filepath.Base(dir) || len(dir) > 200 || !jobPattern.MatchString(dir) || strings.ContainsAny(dir[:1], "-.") {
			t.Errorf("%q has the directory %q", program, dir)
		}
	}
}

func TestSavingWhereNothingCanBeWrittenIsAnError(t *testing.T) {
	s := Store{Dir: "/proc/self/nowhere"}
	if err := s.Save(someKey(), []Part{partOf(t, 0, someTrained(1, 1))}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if _, _, err := (Store{Dir: "/proc/self/status"}).Load(someKey(), 0, nil, false); err == nil || errors.Is(err, ErrOtherJob) {
		t.Error(err)
	}
}
