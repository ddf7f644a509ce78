package profile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/predictor"
)

func someKey() Key {
	return Key{Program: "ft.B.x", Build: "0123abcd", Arguments: "-n 3 input", Ranks: 64, ThresholdBytes: 16 << 10, Window: 2}
}

// someTrained returns trained entries with times that survive a file unchanged.
func someTrained(seed uint64, trained int) *predictor.Trained {
	r := rand.New(rand.NewPCG(seed, 1))
	times := func() (ns []int64) {
		for range r.IntN(33) {
			ns = append(ns, int64(r.IntN(256))<<r.IntN(30))
		}
		return ns
	}
	l := &predictor.Trained{Buffers: []predictor.Buffer{}, Entries: []predictor.TrainedEntry{}}
	for i := range trained/2 + 1 {
		l.Buffers = append(l.Buffers, predictor.Buffer{Site: r.Uint64(), Ordinal: uint32(i), Uses: r.Uint64(), Bytes: r.Uint64N(1 << 30)})
	}
	for range trained {
		l.Entries = append(l.Entries, predictor.TrainedEntry{
			Context: r.Uint64(), GapsNs: times(), Steps: r.Uint32(), Trigger: r.Uint64(), Confidence: r.Uint32N(65),
			AfterNs: append(times(), 1),
		})
	}
	return l
}

func partOf(t testing.TB, rank int, l *predictor.Trained) Part {
	t.Helper()
	p, err := NewPart(rank, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFileReturnsWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "x.profile")
	modules := []Module{{Name: "ft.B.x", Build: "0123abcd"}, {Name: "libsolver.so.2", Build: ""}}
	first, second := someTrained(1, 40), someTrained(2, 0)
	if err := Write(path, someKey(), modules, []Part{partOf(t, 7, second), partOf(t, 3, first), partOf(t, 7, first)}); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Key != someKey() || !reflect.DeepEqual(f.Modules, modules) || !reflect.DeepEqual(f.Ranks(), []int{3, 7}) {
		t.Errorf("got %+v", f)
	}
	for rank, want := range map[int]*predictor.Trained{3: first, 7: second} {
		if got, err := f.Trained(rank); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d: %v, %+v, want %+v", rank, err, got, want)
		}
	}
	if _, err := f.Trained(4); !errors.Is(err, ErrNoRank) {
		t.Errorf("a rank that is not there: %v", err)
	}
}

func TestTimesLoseLessThanAPercentAndNeverGrow(t *testing.T) {
	for _, ns := range []int64{-5, 0, 1, 255, 256, 257, 999_999_999, 1<<62 - 1, 1<<63 - 1} {
		in := cursor{b: appendTimes(nil, []int64{ns})}
		got := in.times()
		if want := max(ns, 0); in.bad || len(in.b) > 0 || len(got) != 1 || got[0] > want || float64(got[0]) < 0.99*float64(want) {
			t.Errorf("%d became %v", ns, got)
		}
	}
}

// Every byte counts: whichever is altered, and wherever the file is cut, nothing is loaded that was not written.
func TestDamageIsFound(t *testing.T) {
	want := someTrained(3, 20)
	whole := encode(someKey(), []Module{{Name: "ft.B.x", Build: "0123abcd"}}, []Part{partOf(t, 0, want)})
	check := func(b []byte, what string, at int) {
		f, err := read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Fatalf("%s at %d: %v", what, at, err)
			}
			return
		}
		if _, err := f.Trained(0); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s at %d was not noticed: %v", what, at, err)
		}
	}
	for at := range whole {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		check(b, "change", at)
		check(whole[:at], "cut", at)
	}
	check(append(bytes.Clone(whole), 0), "a byte too many", len(whole))
}

func TestFileOfAnotherVersionIsToldApart(t *testing.T) {
	b := encode(someKey(), nil, nil)
	b[8]++
	if _, err := read(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
}

func TestWhatIsNoFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir, empty, filepath.Join(dir, "absent"), "/dev/zero"} {
		if f, err := Open(path); err == nil {
			t.Errorf("%s is the profile %+v", path, f)
		}
	}
}

// Beyond ulimit -f the kernel would end the program with SIGXFSZ.
func TestFileBeyondTheLimitIsAnErrorAndNoSignal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.profile")
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 50, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	err := Write(path, someKey(), nil, []Part{partOf(t, 0, someTrained(1, 9))})
	if e := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); e != nil {
		t.Fatal(e)
	}
	if _, statErr := os.Stat(path); !errors.Is(err, unix.EFBIG) || !errors.Is(statErr, os.ErrNotExist) {
		t.Errorf("%v, %v", err, statErr)
	}
}

func TestFullDiskLeavesTheOldProfile(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small file system needs root: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	path := filepath.Join(dir, "x.profile")
	if err := Write(path, someKey(), nil, []Part{partOf(t, 0, someTrained(1, 9))}); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, someKey(), nil, []Part{partOf(t, 0, someTrained(2, 5000))}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.Trained(0); err != nil || !reflect.DeepEqual(got, someTrained(1, 9)) {
		t.Errorf("the old profile: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestTooManyEntriesAreRefused(t *testing.T) {
	l := &predictor.Trained{Entries: make([]predictor.TrainedEntry, maxEntries+1)}
	if _, err := NewPart(0, l); err == nil {
		t.Error("they were packed")
	}
}

// What a head with a right checksum says must not matter either.
func FuzzRead(f *testing.F) {
	part, err := NewPart(0, someTrained(4, 5))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encode(someKey(), []Module{{Name: "m", Build: "1"}}, []Part{part}))
	f.Add(encode(Key{}, nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		var parts []Part
		for _, rank := range in.Ranks() {
			l, err := in.Trained(rank)
			if err != nil {
				return
			}
			parts = append(parts, partOf(t, rank, l))
		}
		// What was accepted means one thing only.
		again := encode(in.Key, in.Modules, parts)
		back, err := read(bytes.NewReader(again), int64(len(again)))
		if err != nil || back.Key != in.Key {
			t.Fatalf("read again: %v, %+v", err, back)
		}
		for _, rank := range in.Ranks() {
			first, _ := in.Trained(rank)
			second, err := back.Trained(rank)
			if err != nil || !reflect.DeepEqual(first, second) {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
	})
}

// FuzzTrained begins where the checksums have been passed.
func FuzzTrained(f *testing.F) {
	f.Add(appendTrained(nil, someTrained(5, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := cursor{b: b}
		l := in.trained()
		if in.bad {
			return
		}
		back := cursor{b: appendTrained(nil, l)}
		if again := back.trained(); back.bad || !reflect.DeepEqual(l, again) {
			t.Fatalf("%+v became %+v", l, again)
		}
	})
}

// FuzzHead begins behind the checksum of the head.
func FuzzHead(f *testing.F) {
	whole := encode(someKey(), []Module{{Name: "m", Build: "1"}}, []Part{{Rank: 1, packed: []byte("abc")}, {Rank: 2, packed: []byte("de")}})
	f.Add(whole[preludeBytes:len(whole)-5], 5)
	f.Add([]byte{1}, 5)
	f.Fuzz(func(t *testing.T, head []byte, body int) {
		if body = max(body, 0); body > 1<<40 {
			return
		}
		in := cursor{b: head}
		file := &File{parts: map[int]place{}}
		file.head(&in, 0, int64(body))
		if in.bad {
			return
		}
		var sum int64
		for _, p := range file.parts {
			sum += p.bytes
		}
		if sum != int64(body) || len(file.parts) != len(file.ranks) {
			t.Fatalf("parts of %d bytes in %d", sum, body)
		}
	})
}

func BenchmarkTrained(b *testing.B) {
	p := partOf(b, 0, someTrained(6, 200))
	content := encode(someKey(), nil, []Part{p})
	b.ReportMetric(float64(len(content)), "bytes")
	for b.Loop() {
		f, err := read(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Trained(0); err != nil {
			b.Fatal(err)
		}
	}
}
