package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pinwheel/internal/testwait"
)

func TestPatternsStandForWhatIsThere(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	for _, name := range []string{
		"a.log", "b.log", "\xff.log", ".hidden.log", "d/x.log", "d/y", "e/x.log", "[a].log", "c*", "c\n",
	} {
		put(t, filepath.Join(there, name), nil, 0o644)
	}
	for pattern, want := range map[string][]string{
		"*.log": {"[a].log", "a.log", "b.log", "\xff.log"}, "?.log": {"a.log", "b.log", "\xff.log"}, ".*": {".hidden.log"},
		"[ab].log": {"a.log", "b.log"}, "[a].log": {"[a].log"}, "c*": {"c*"}, `\[*`: {"[a].log"}, "*/x.log": {"d/x.log", "e/x.log"},
		"d/*": {"d/x.log", "d/y"}, "*/y": {"d/y"}, "a.log/*": nil, "none/*": nil, "*/none": nil, "[": {"["}, "a.log": {"a.log"},
	} {
		got, err := expand(t.Context(), c, pattern)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v; want %q", pattern, got, err, want)
		}
	}
}

// Several sources go into a directory, and one that fails keeps none from it.
func TestSeveralSourcesGoIntoADirectory(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	for _, dir := range []string{there, here} {
		for _, name := range []string{"a", "b", "t/x", "t/u/y", "tt/z"} {
			put(t, filepath.Join(dir, name), []byte(name), 0o644)
		}
	}
	var told []string
	o := Options{Recursive: true, Failed: func(err error) { told = append(told, err.Error()) }}
	want := []string{"a", "b", "t/", "t/u/", "t/u/y", "t/x", "tt/", "tt/z"}
	to := filepath.Join(t.TempDir(), "no", "dir")
	if _, err := GetAll(t.Context(), c, []string{"a", "t*"}, to, o); err == nil || !strings.Contains(err.Error(), "--parents") {
		t.Errorf("%v", err)
	}
	o.Parents = true
	for range 2 { // again into what is there
		r, err := GetAll(t.Context(), c, []string{"/a", "b", "none", "n*", "t*/"}, to, o)
		if err != nil || r.Files+r.Unchanged != 5 || r.Directories != 3 || r.Failed != 2 || len(told) != 2 {
			t.Errorf("%+v, %v, %q", r, err, told)
		}
		told = nil
		is(t, "got", list(t, to), want)
	}
	from := func(names ...string) (paths []string) {
		for _, n := range names {
			paths = append(paths, filepath.Join(here, n))
		}
		return paths
	}
	o.Parents = false
	if _, err := PutAll(t.Context(), c, from("a", "b"), "no/dir", o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := PutAll(t.Context(), c, from("a", "b"), "a", o); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("%v", err)
	}
	o.Parents = true
	for range 2 {
		r, err := PutAll(t.Context(), c, from("a", "b", "none", "t", "tt"), "no/dir", o)
		if err != nil || r.Files+r.Unchanged != 5 || r.Directories != 3 || r.Failed != 1 || len(told) != 1 {
			t.Errorf("%+v, %v, %q", r, err, told)
		}
		told = nil
		is(t, "put", list(t, filepath.Join(there, "no/dir")), want)
	}
	for _, err := range []error{
		second(GetAll(t.Context(), c, []string{"t/x", "no/dir/t/x"}, to, o)),
		second(PutAll(t.Context(), c, from("t/x", "../"+filepath.Base(here)+"/t/x"), "no/dir", o)),
	} {
		if err == nil || !strings.Contains(err.Error(), "would both be ") {
			t.Errorf("%v", err)
		}
	}
}

func second(_ Result, err error) error { return err }

func TestParentsAreMadeIfAskedFor(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	put(t, filepath.Join(there, "f"), []byte("f"), 0o644)
	for _, local := range []string{"a/b/", "c/d/g"} {
		local := here + "/" + local
		if _, err := Get(t.Context(), c, "f", local, Options{}); err == nil {
			t.Errorf("get to %s: no error", local)
		}
		if _, err := Get(t.Context(), c, "f", local, Options{Parents: true}); err != nil {
			t.Error(err)
		}
	}
	is(t, "got", list(t, here), []string{"a/", "a/b/", "a/b/f", "c/", "c/d/", "c/d/g"})
	for _, name := range []string{"a/b/", "c/d/g"} {
		_, err := Put(t.Context(), c, filepath.Join(there, "f"), name, Options{})
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "at the server (--parents makes that directory)") {
			t.Errorf("%v", err)
		}
		if _, err := Put(t.Context(), c, filepath.Join(there, "f"), name, Options{Parents: true}); err != nil {
			t.Error(err)
		}
	}
	if _, err := PutFrom(t.Context(), c, strings.NewReader("x"), "e/f", Options{Parents: true}); err != nil {
		t.Error(err)
	}
	is(t, "put", list(t, there), []string{"a/", "a/b/", "a/b/f", "c/", "c/d/", "c/d/g", "e/", "e/f", "f"})
	if _, err := Get(t.Context(), c, "f", filepath.Join(here, "a/b/f/x"), Options{Parents: true}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(here, "a/b/f")); err != nil {
		t.Error(err)
	}
}
