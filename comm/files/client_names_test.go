package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Old file systems have names that are not UTF-8.
func TestNamesHaveAnyBytes(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		c := w.client()
		const dir, name = "Gr\xfc\xdfe", "a \n\x01\xff"
		if made, err := c.Mkdir(testContext(t), dir, 0o755); err != nil || !made {
			t.Fatal(made, err)
		}
		if _, err := c.WriteFile(testContext(t), dir+"/"+name, []byte("x"), CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		same(t, "the file", w.content(dir+"/"+name), []byte("x"))
		if all, err := c.ReadDir(testContext(t), dir); err != nil || len(all) != 1 || all[0].Name() != name {
			t.Errorf("%q, %v", all, err)
		}
		if i, err := c.Stat(testContext(t), dir+"/"+name); err != nil || i.Name() != name {
			t.Errorf("%q, %v", i.Name(), err)
		}
		if _, err := c.FS(testContext(t)).Open(dir); !errors.Is(err, fs.ErrInvalid) { // as package io/fs wants it
			t.Error(err)
		}
	})
}

func TestDirectoriesGetTheirAttributesInTheEnd(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		c := w.client()
		at := time.Unix(1_000_000_000, 7)
		for _, want := range []bool{true, false} {
			if made, err := c.Mkdir(testContext(t), "d/e", 0o750); err != nil || made != want {
				t.Errorf("made: %v, %v", made, err)
			}
		}
		if err := c.SetAttr(testContext(t), "d/e", Attributes{Keep: 0o577, ModTime: at}); err != nil {
			t.Error(err)
		}
		if i, err := c.Stat(testContext(t), "d/e"); err != nil || i.Mode() != fs.ModeDir|0o550 || !i.ModTime().Equal(at) {
			t.Error(i, err)
		}
		if err := c.SetAttr(testContext(t), "d/e", Attributes{Keep: 0o777}); err != nil {
			t.Error(err)
		}
		if i, err := c.Stat(testContext(t), "d/e"); err != nil || i.Mode() != fs.ModeDir|0o550 || !i.ModTime().Equal(at) {
			t.Errorf("it has changed: %v, %v", i, err)
		}
		w.write("f", nil)
		if err := c.SetAttr(testContext(t), "f", Attributes{}); !errors.Is(err, syscall.ENOTDIR) {
			t.Error(err)
		}
		if err := c.SetAttr(testContext(t), "none", Attributes{}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := c.Mkdir(testContext(t), "f", 0o755); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	})
}

func TestHolesAreTold(t *testing.T) {
	overEach(t, ServerOptions{}, func(t *testing.T, w *world) {
		const mib, size = 1 << 20, 1 << 40
		path := w.sparse("f", size)
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []Extent{{5 * mib, mib}, {900 * mib, 2 * mib}}
		for _, e := range want {
			if _, err := out.WriteAt(random(int(e.Len)), e.Off); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		f := open(t, w.client(), "f")
		if n := f.Info().Allocated(); n < 3*mib || n > 16*mib {
			t.Skipf("the file system of the test has no holes: %d bytes", n)
		}
		for skip, from := range []int64{0, 6 * mib, size} {
			var got []Extent
			for e, err := range f.Data(testContext(t), from) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if len(got) != len(want)-skip || len(got) > 0 && got[0] != want[skip] {
				t.Errorf("from %d: %v", from, got)
			}
		}
		settle(t, path)
		if err := os.Truncate(path, 2*mib); err != nil {
			t.Fatal(err)
		}
		for _, err := range f.Data(testContext(t), 0) {
			if !errors.Is(err, ErrChanged) {
				t.Errorf("of a file that was cut: %v", err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range f.Data(testContext(t), 0) {
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// More parts than one answer has.
func TestManyHolesAreTold(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	const step, parts = 64 << 10, 5000
	path := w.sparse("f", step*parts)
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(parts) {
		if _, err := out.WriteAt([]byte{1}, i*step); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, w.client(), "f")
	if f.Info().Allocated() > step*parts/2 {
		t.Skip("the file system of the test has no holes")
	}
	n := int64(0)
	for e, err := range f.Data(testContext(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Off != n*step {
			t.Fatalf("part %d begins at %d", n, e.Off)
		}
		n++
	}
	if n != parts {
		t.Errorf("%d parts of %d", n, parts)
	}
}

func TestSymbolicLinksWithinAreFollowed(t *testing.T) {
	w := ways[0].serve(t, ServerOptions{})
	w.write("d/f", []byte("content"))
	for link, to := range map[string]string{"d/near": "f", "link": "d/f", "dir": "d"} {
		if err := os.Symlink(to, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"d/near", "link", "dir/f", "dir/near", "d/f"}
	err := w.client().ReadMany(testContext(t), names, NoSum, func(i int, _ Info, content []byte, err error) error {
		if err != nil || string(content) != "content" {
			t.Errorf("%s: %q, %v", names[i], content, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
