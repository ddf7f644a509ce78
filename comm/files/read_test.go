package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/internal/wire"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// sizes have the bounds of all ways: inside of an answer, of one read, of several chunks.
var sizes = []int{0, 1, 4095, SmallBytes, SmallBytes + 1, 1<<20 + 7, 5<<20 + 12345}

func TestFilesArriveWhole(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		c := w.client()
		if got := c.Transport(); got != w.name {
			t.Errorf("bytes come by %s", got)
		}
		for _, n := range sizes {
			want := random(n)
			w.write("dir/file", want)
			f := open(t, c, "dir/file")
			if i := f.Info(); i.Size() != int64(n) || i.Name() != "file" || i.IsDir() || i.ETag() == "" {
				t.Errorf("%d bytes: %v", n, i)
			}
			var got bytes.Buffer
			if k, err := f.CopyRange(testContext(t), &got, 0, int64(n)); k != int64(n) || err != nil {
				t.Errorf("CopyRange: %d of %d bytes, %v", k, n, err)
			}
			same(t, "CopyRange", got.Bytes(), want)
			all := make([]byte, n)
			if k, err := f.ReadAt(testContext(t), all, 0); k != n || err != nil {
				t.Errorf("ReadAt: %d of %d bytes, %v", k, n, err)
			}
			same(t, "ReadAt", all, want)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		if st := c.Stats(); st.BytesRead == 0 || st.Requests == 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestRangesAreThoseOfTheFile(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		want := random(3<<20 + 99)
		w.write("f", want)
		f := open(t, w.client(), "f")
		for _, r := range [][2]int{{1, 10}, {4095, 2 << 20}, {1<<20 + 1, 1 << 20}, {3 << 20, 99}, {3<<20 + 98, 1}} {
			var got bytes.Buffer
			if _, err := f.CopyRange(testContext(t), &got, int64(r[0]), int64(r[1])); err != nil {
				t.Error(r, err)
			}
			same(t, fmt.Sprint(r), got.Bytes(), want[r[0]:][:r[1]])
		}
		p := make([]byte, 100)
		if n, err := f.ReadAt(testContext(t), p, 3<<20+50); n != 49 || err != io.EOF {
			t.Errorf("ReadAt beyond the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(testContext(t), p, 4<<20); n != 0 || err != io.EOF {
			t.Errorf("ReadAt behind the end: %d, %v", n, err)
		}
		if n, err := f.CopyRange(testContext(t), io.Discard, 3<<20, 100); n != 99 || err != io.ErrUnexpectedEOF {
			t.Errorf("CopyRange beyond the end: %d, %v", n, err)
		}
		if _, err := f.ReadAt(testContext(t), p, -1); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("ReadAt before the beginning: %v", err)
		}
	})
}

func TestReadIntoAWindow(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		want := random(2 << 20)
		w.write("f", want)
		c := w.client()
		f := open(t, c, "f")
		win, err := c.NewWindow(testContext(t), 3<<20)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.ReadInto(testContext(t), win, 1000, 5, 2<<20-5); n != 2<<20-5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		same(t, "the window", win.Bytes()[1000:][:2<<20-5], want[5:])
		if !bytes.Equal(win.Bytes()[:1000], make([]byte, 1000)) {
			t.Error("something was written before the place")
		}
		if n, err := f.ReadInto(testContext(t), win, 0, 1<<20, 2<<20); n != 1<<20 || err != io.EOF {
			t.Errorf("beyond the end: %d, %v", n, err)
		}
		if _, err := f.ReadInto(testContext(t), win, 2<<20, 0, 1<<20+1); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("beyond the window: %v", err)
		}
		if err := win.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A server may say that a file has any size.
func TestReadFileTakesMemoryForWhatArrives(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	w.sparse("f", 8<<40)
	c := w.client()
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() {
		_, err := fs.ReadFile(c.FS(ctx), "f")
		ended <- err
	}()
	testwait.Until(t, "some of it has arrived", func() bool { return c.Stats().BytesRead > 2*fewBytes })
	cancel()
	if err := testwait.Receive(t, "the end of ReadFile", ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestServedTreeIsAnFS(t *testing.T) {
	testwait.SkipUnderRace(t, "it asks for each byte by itself, and other tests read")
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		w.write("a", []byte("a"))
		w.write("b/c", random(3_000)) // each of its bytes is read by itself
		w.write("b/d/e", nil)
		if err := os.Symlink("a", filepath.Join(w.dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(w.client().FS(testContext(t)), "a", "b/c", "b/d/e"); err != nil {
			t.Error(err)
		}
	})
}

func TestListHasEveryEntryOnce(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	var want []string
	for i := range 2500 { // more than two pages
		name := fmt.Sprintf("%04d", i)
		want = append(want, name)
		w.write(name, nil)
	}
	want = append(want, hidden+"x", "\xff") // what looks like our own is, only if it is
	w.write(hidden+"x", nil)
	w.write("\xff", nil)
	w.write(newHidden(), nil)
	slices.Sort(want)
	all, err := w.client().ReadDir(testContext(t), ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range all {
		got = append(got, i.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d entries of %d", len(got), len(want))
	}
	for i, err := range w.client().List(testContext(t), ".") {
		if err != nil || i.Size() != 0 {
			t.Error(i, err)
		}
		break
	}
	for _, err := range w.client().List(testContext(t), "0000") {
		if !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("a file was listed: %v", err)
		}
	}
}

func TestManySmallFilesCome(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		const files = 700
		want := map[string][]byte{}
		var names []string
		for i := range files {
			name := fmt.Sprintf("d%d/%d", i%3, i)
			want[name] = random(i * 100)
			w.write(name, want[name])
			names = append(names, name)
		}
		names = append(names, "none", "../x", "d0")
		c := w.client()
		before := c.Stats().Requests
		next := 0
		err := c.ReadMany(testContext(t), names, CRC32C, func(i int, info Info, content []byte, err error) error {
			if i != next {
				t.Fatalf("%d comes after %d", i, next-1)
			}
			next++
			name := names[i]
			switch b, there := want[name]; {
			case !there:
				if err == nil {
					t.Errorf("%s: no error", name)
				}
			case len(b) > SmallBytes:
				if !errors.Is(err, ErrNotSmall) {
					t.Errorf("%s: %v", name, err)
				}
			case err != nil:
				t.Error(err)
			default:
				same(t, name, content, b)
				if info.Size() != int64(len(b)) {
					t.Error(info)
				}
			}
			return nil
		})
		if err != nil || next != len(names) {
			t.Errorf("%d of %d files, %v", next, len(names), err)
		}
		if n := c.Stats().Requests - before; n > files/4 {
			t.Errorf("%d requests", n)
		}
		stop := errors.New("enough")
		err = c.ReadMany(testContext(t), names, NoSum, func(int, Info, []byte, error) error { return stop })
		if err != stop {
			t.Error(err)
		}
	})
}

func TestChecksumsAreThoseOfTheRange(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	b := random(1<<20 + 5)
	w.write("f", b)
	f := open(t, w.client(), "f")
	sum, err := f.Checksum(testContext(t), SHA256, 5, 1<<20)
	if want := sha256.Sum256(b[5:]); err != nil || !bytes.Equal(sum, want[:]) {
		t.Errorf("%x, %v", sum, err)
	}
	if _, err := f.Checksum(testContext(t), CRC32C, 6, 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("beyond the end: %v", err)
	}
	if _, err := f.Checksum(testContext(t), "md5", 0, 1); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}

func TestChecksumsOfHoles(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	const size = 8<<20 + 5
	path := w.sparse("f", size)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, off := range []int64{1 << 20, 3<<20 - 7, 5 << 20} {
		if _, err := file.WriteAt(random(9000), off); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, path)
	want := w.content("f")
	// Reading would bring the holes into the page cache.
	if err := errors.Join(file.Sync(), unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
		t.Fatal(err)
	}
	f := open(t, w.client(), "f")
	for _, r := range [][2]int64{{0, size}, {5, size - 9}, {1<<20 + 1, 2 << 20}, {size, 0}, {6 << 20, 1 << 20}} {
		got, err := f.Checksum(testContext(t), SHA256, r[0], r[1])
		if w := sha256.Sum256(want[r[0]:][:r[1]]); err != nil || !bytes.Equal(got, w[:]) {
			t.Errorf("%d: %x, %v", r, got, err)
		}
	}
	var cached unix.Cachestat_t
	if err := unix.Cachestat(uint(file.Fd()), &unix.CachestatRange{Len: size}, &cached, 0); err != nil {
		t.Skipf("the kernel does not say what is cached: %v", err)
	}
	if most := uint64(size / mem.PageSize / 2); cached.Cache > most {
		t.Errorf("%d pages are in the page cache, most of which are holes", cached.Cache)
	}
}

// Each takes a buffer of the server. A client may have many requests under way.
func TestFewChecksumsOfAClientAreComputedAtATime(t *testing.T) {
	f := fileOf(t, 1000)
	stamp, err := stampOf(f)
	if err != nil {
		t.Fatal(err)
	}
	v := &session{handles: handles{most: 1, of: map[uint64]opened{}}, sums: make(chan struct{}, maxSums)}
	h, err := v.handles.add(&served{name: "f", file: f, stamp: stamp})
	if err != nil {
		t.Fatal(err)
	}
	for range maxSums {
		v.sums <- struct{}{}
	}
	q := &wire.Range{Handle: h, Kind: string(CRC32C)} // of no bytes: it waits for nothing but the others
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := v.sum(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("one more is computed: %v, %v", a, err)
	}
	u := &uploading{file: newfile.Opened(fileOf(t, 0), stamp.dev)}
	if err := u.complete(ctx, &wire.Commit{Kind: string(CRC32C)}, v); !errors.Is(err, context.Canceled) {
		t.Errorf("one more is computed of an upload: %v", err)
	}
	<-v.sums
	for range 2 {
		if _, err := v.sum(t.Context(), q); err != nil {
			t.Error(err)
		}
	}
}

func TestManyReadersShareAConnection(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		want := random(2 << 20)
		w.write("f", want)
		c := w.client()
		f := open(t, c, "f")
		ended := make(chan error)
		const readers = 12
		for i := range readers {
			go func() {
				off := i * 1000
				p := make([]byte, len(want)-off)
				_, err := f.ReadAt(testContext(t), p, int64(off))
				if err == nil && !bytes.Equal(p, want[off:]) {
					err = fmt.Errorf("reader %d: other bytes", i)
				}
				ended <- err
			}()
		}
		for range readers {
			if err := testwait.Receive(t, "the end of a reader", ended); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestContextEndsARead(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		w.sparse("f", 1<<30)
		c := w.client()
		f := open(t, c, "f")
		ctx, cancel := context.WithCancel(testContext(t))
		n, err := f.CopyRange(ctx, writer(func(p []byte) error { cancel(); return nil }), 0, 1<<30)
		if !errors.Is(err, context.Canceled) || n == 1<<30 {
			t.Errorf("%d bytes, %v", n, err)
		}
		p := make([]byte, 1<<20)
		if _, err := f.ReadAt(testContext(t), p, 0); err != nil {
			t.Errorf("the connection did not survive: %v", err)
		}
		full := errors.New("full")
		_, err = f.CopyRange(testContext(t), writer(func([]byte) error { return full }), 0, 1<<30)
		if !errors.Is(err, full) {
			t.Error(err)
		}
		if _, err := f.ReadAt(testContext(t), p, 1<<29); err != nil {
			t.Errorf("the connection did not survive: %v", err)
		}
	})
}

// writer is an io.Writer that calls itself with what it gets.
type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) {
	if err := w(p); err != nil {
		return 0, err
	}
	return len(p), nil
}
