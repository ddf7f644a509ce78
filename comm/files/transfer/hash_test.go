package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"pinwheel/comm/files"
)

// ends is a file that ends a context when some of it was read.
type ends struct {
	io.ReaderAt
	after int64
	end   context.CancelCauseFunc
}

func (e ends) ReadAt(b []byte, off int64) (int, error) {
	n, err := e.ReaderAt.ReadAt(b, off)
	if off+int64(n) >= e.after {
		e.end(errTest)
	}
	return n, err
}

var errTest = errors.New("the end of a test")

func TestHashEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	h, err := files.CRC32C.New()
	must(t, err)
	content := bytes.NewReader(random(5 * hashBytes))
	if err := hashFile(ctx, h, ends{content, 2 * hashBytes, end}, content.Size()); !errors.Is(err, errTest) {
		t.Error(err)
	}
	whole, err := files.CRC32C.New()
	must(t, err)
	whole.Write(random(5 * hashBytes)[:2*hashBytes])
	if !bytes.Equal(h.Sum(nil), whole.Sum(nil)) {
		t.Error("it has hashed something else than what was read")
	}
}

func TestHashOfAFileThatIsCut(t *testing.T) {
	h, err := files.CRC32C.New()
	must(t, err)
	if err := hashFile(t.Context(), h, bytes.NewReader(random(100)), 101); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	must(t, hashFile(t.Context(), nil, nil, 1))
}
