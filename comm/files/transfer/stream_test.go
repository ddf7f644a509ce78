package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pinwheel/comm/files"
	"pinwheel/internal/testwait"
)

func TestStreamsArriveWholeBothWays(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	for _, sum := range []files.Sum{files.NoSum, files.CRC32C, files.SHA256} {
		for _, n := range append(sizes, streamBlock-1, streamBlock, streamBlock+1) {
			content, name := random(n), fmt.Sprintf("%s-%d", sum, n)
			want := Result{Files: 1, Bytes: int64(n)}
			for _, r := range []io.Reader{bytes.NewReader(content), iotest.HalfReader(bytes.NewReader(content))} {
				if got, err := PutFrom(t.Context(), c, r, name, Options{Verify: sum}); err != nil || got != want {
					t.Errorf("put %s: %+v, %v", name, got, err)
				}
			}
			if got, err := os.ReadFile(filepath.Join(there, name)); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s has %d bytes, %v", name, len(got), err)
			}
			var w bytes.Buffer
			var m Meter
			got, err := GetTo(t.Context(), c, "/"+name, &w, Options{Verify: sum, Meter: &m})
			if err != nil || got != want || !bytes.Equal(w.Bytes(), content) || m.Bytes.Load() != int64(n) {
				t.Errorf("get %s: %+v, %d bytes, %v", name, got, w.Len(), err)
			}
		}
	}
	if left, _ := filepath.Glob(there + "/.*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestHolesAreStreamedAsZeros(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	f, err := os.Create(filepath.Join(there, "f"))
	must(t, err)
	defer f.Close()
	want := make([]byte, 5<<20)
	copy(want[1<<20:], "data")
	_, err = f.WriteAt([]byte("data"), 1<<20)
	must(t, err, f.Truncate(int64(len(want))))
	var w bytes.Buffer
	if _, err := GetTo(t.Context(), c, "f", &w, Options{}); err != nil || !bytes.Equal(w.Bytes(), want) {
		t.Errorf("%d bytes, %v", w.Len(), err)
	}
}

// during calls f after the first bytes were written.
type during struct {
	io.Writer
	f func() error
}

func (d *during) Write(b []byte) (int, error) {
	n, err := d.Writer.Write(b)
	if f := d.f; f != nil {
		d.f = nil
		err = f()
	}
	return n, err
}

// What was written can't be taken back: whatever goes wrong is an error.
func TestStreamThatCannotBeCompletedIsAnError(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	path := filepath.Join(there, "f")
	put(t, path, random(8<<20), 0o644)
	full := errors.New("full")
	_, err := GetTo(t.Context(), c, "f", &during{io.Discard, func() error { return full }}, Options{})
	if !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	_, err = GetTo(t.Context(), c, "f", &during{io.Discard, func() error {
		put(t, path, random(7<<20), 0o644)
		return nil
	}}, Options{})
	if err == nil || !strings.Contains(err.Error(), "f: changed while it was copied") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"", ".", "none"} {
		if _, err := GetTo(t.Context(), c, name, io.Discard, Options{}); err == nil {
			t.Errorf("get %q: no error", name)
		}
	}
	for _, name := range []string{"", ".", "none/", "none/f"} {
		if _, err := PutFrom(t.Context(), c, strings.NewReader("x"), name, Options{}); err == nil {
			t.Errorf("put %q: no error", name)
		}
	}
	if _, err := PutFrom(t.Context(), c, iotest.ErrReader(full), "f", Options{}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	is(t, "left", list(t, there), []string{"f"})
}

// A stream goes on where it was when the server is back, and its checksum is that of all of it.
func TestStreamGoesOnAfterTheServerWasLost(t *testing.T) {
	testwait.Bound(t)
	dir, address := serveAt(t)
	content := random(8 << 20)
	put(t, filepath.Join(dir, "f"), content, 0o644)
	for _, changed := range []bool{false, true} {
		o := Options{Retry: time.Minute, Redial: func(context.Context) (*files.Client, error) {
			if changed {
				put(t, filepath.Join(dir, "f"), random(9<<20), 0o644)
			}
			return dial(t, address), nil
		}}
		var w bytes.Buffer
		r, err := GetTo(t.Context(), dial(t, address), "f", &during{&w, func() error { return errLost }}, o)
		switch {
		case changed && (err == nil || !strings.Contains(err.Error(), "f: changed while it was copied")):
			t.Errorf("changed: %+v, %v", r, err)
		case !changed && (err != nil || r != (Result{Files: 1, Bytes: 8 << 20, Reconnects: 1}) || !bytes.Equal(w.Bytes(), content)):
			t.Errorf("%+v, %d bytes, %v", r, w.Len(), err)
		}
	}
}
