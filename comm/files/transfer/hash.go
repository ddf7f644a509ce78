package transfer

import (
	"context"
	"hash"
	"io"
)

// hashBytes of a file are hashed at a time: the end of a context comes in between.
const hashBytes = 1 << 20 // 1 MiB

// hashFile hashes n bytes from the beginning of a file. It fails with io.EOF if there are fewer. A hash that is nil
// needs none of them.
func hashFile(ctx context.Context, h hash.Hash, f io.ReaderAt, n int64) error {
	if h == nil {
		return nil
	}
	b := make([]byte, min(hashBytes, n))
	for off := int64(0); off < n; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k, err := f.ReadAt(b[:min(int64(len(b)), n-off)], off)
		_, _ = h.Write(b[:k]) // hashes don't fail
		if off += int64(k); err != nil && off < n {
			return err
		}
	}
	return nil
}
