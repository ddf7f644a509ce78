package files

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// cacheOf returns mappings that stay within most, and how often one was unmapped.
func cacheOf(t *testing.T, most int) (ms *mappings, unmapped *int) {
	unmapped = new(int)
	ms = &mappings{most: most, forget: func(mem.Range) { *unmapped++ }, of: map[fileKey]*mapping{}}
	t.Cleanup(ms.close)
	return ms, unmapped
}

func fileOf(t testing.TB, bytes int) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, random(bytes), 0o644); err != nil {
		t.Fatal(err)
	}
	settle(t, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func stampNow(t *testing.T, f *os.File) stamp {
	t.Helper()
	s, err := stampOf(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMappingStaysAndIsFoundAgain(t *testing.T) {
	ms, unmapped := cacheOf(t, 2)
	f := fileOf(t, 10_000)
	s := stampNow(t, f)
	m, err := ms.get(f, s)
	if err != nil || len(m.data) != 10_000 {
		t.Fatal(len(m.data), err)
	}
	ms.put(m)
	if again := ms.find(s); again != m {
		t.Error("it was not found")
	} else {
		ms.put(again)
	}
	if n, hits := ms.count(); n != 1 || hits != 1 || *unmapped != 0 {
		t.Errorf("%d mappings, %d hits, %d unmapped", n, hits, *unmapped)
	}
}

// Two transfers of a file begin at the same time: what one of them registers, the other one and all later ones find.
func TestTransfersThatMapAFileAtOnceShareAMapping(t *testing.T) {
	ms, unmapped := cacheOf(t, 2)
	f := fileOf(t, 10_000)
	s := stampNow(t, f)
	both := make([]*mapping, 2)
	for k := range both { // neither has found one
		data, err := mapFile(f, s.size)
		if err != nil {
			t.Fatal(err)
		}
		both[k] = ms.add(&mapping{stamp: s, settled: true, refs: 1, data: data})
	}
	if both[0] != both[1] || both[0].refs != 2 || *unmapped != 1 {
		t.Errorf("they share one: %v; it has %d users, %d were unmapped", both[0] == both[1], both[0].refs, *unmapped)
	}
	for _, m := range both {
		ms.put(m)
	}
	if n, _ := ms.count(); n != 1 || *unmapped != 1 {
		t.Errorf("%d mappings, %d unmapped", n, *unmapped)
	}
}

// A large mapping that nobody can find any more is unmapped while the next one is used. A second one is waited for.
func TestNobodyWaitsForTheEndOfALargeMapping(t *testing.T) {
	testwait.Bound(t)
	files := []*os.File{fileOf(t, largeMapping), fileOf(t, largeMapping), fileOf(t, largeMapping)}
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		release := make(chan struct{})
		ms := &mappings{most: 1, of: map[fileKey]*mapping{}, forget: func(mem.Range) {
			begun.Inc()
			<-release
		}}
		got := 0
		go func() {
			for _, f := range files {
				m, err := ms.get(f, stampNow(t, f))
				if err != nil {
					t.Error(err)
					return
				}
				ms.put(m)
				got++
			}
		}()
		synctest.Wait()
		if got != 2 || begun.Load() != 2 {
			t.Errorf("%d files are mapped, and %d mappings are being unmapped", got, begun.Load())
		}
		close(release)
		synctest.Wait()
		ms.close()
		if got != 3 || begun.Load() != 3 {
			t.Errorf("%d files were mapped, %d mappings unmapped", got, begun.Load())
		}
	})
}

func TestMappingOfAnotherContentIsNotUsed(t *testing.T) {
	for what, change := range map[string]func(f *os.File) error{
		"truncated": func(f *os.File) error { return f.Truncate(10) },
		"grown":     func(f *os.File) error { return f.Truncate(20_000) },
		"written":   func(f *os.File) error { _, err := f.WriteAt([]byte("x"), 5); return err },
		"punched": func(f *os.File) error {
			return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 8192)
		},
	} {
		ms, unmapped := cacheOf(t, 2)
		f := fileOf(t, 10_000)
		used, err := ms.get(f, stampNow(t, f))
		if err != nil {
			t.Fatal(err)
		}
		if err := change(f); err != nil {
			t.Fatal(what, err)
		}
		s := stampNow(t, f)
		if ms.find(s) != nil {
			t.Errorf("%s: the old mapping was found", what)
		}
		m, err := ms.get(f, s)
		if err != nil || m == used {
			t.Error(what, err)
		}
		if *unmapped != 0 {
			t.Errorf("%s: what is in use was unmapped", what)
		}
		ms.put(used)
		if *unmapped != 1 {
			t.Errorf("%s: %d were unmapped", what, *unmapped)
		}
		ms.put(m)
	}
}

func TestMappingThatWasNotUsedForLongestGoes(t *testing.T) {
	ms, unmapped := cacheOf(t, 2)
	var stamps []stamp
	var inUse *mapping
	for i := range 4 {
		f := fileOf(t, 100)
		s := stampNow(t, f)
		stamps = append(stamps, s)
		m, err := ms.get(f, s)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			inUse = m
			continue
		}
		ms.put(m)
	}
	if n, _ := ms.count(); n != 2 || *unmapped != 2 {
		t.Errorf("%d mappings, %d unmapped", n, *unmapped)
	}
	for i, want := range []bool{true, false, false, true} {
		m := ms.find(stamps[i])
		if (m != nil) != want {
			t.Errorf("file %d: found %v", i, m != nil)
		}
		if m != nil {
			ms.put(m)
		}
	}
	ms.put(inUse)
}

func TestFileThatJustChangedIsMappedAnew(t *testing.T) {
	ms, _ := cacheOf(t, 2)
	f := fileOf(t, 100)
	s := stampNow(t, f)
	s.chgNs = 1 << 62 // a change from now on may have the same stamp
	m, err := ms.get(f, s)
	if err != nil {
		t.Fatal(err)
	}
	ms.put(m)
	if ms.find(s) != nil {
		t.Error("it was found")
	}
}
