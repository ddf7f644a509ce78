package files

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/crc32"
)

// Sum is a kind of checksum.
type Sum string

// The kinds of checksums.
const (
	NoSum  Sum = "none"
	CRC32C Sum = "crc32c" // Castagnoli; finds what went wrong by chance
	SHA256 Sum = "sha256"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// New returns a hash of this kind. It is nil for NoSum. It fails for a kind that is none.
func (s Sum) New() (hash.Hash, error) {
	switch s {
	case NoSum:
		return nil, nil
	case CRC32C:
		return crc32.New(castagnoli), nil
	case SHA256:
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("files: %q is no kind of checksum: none, crc32c or sha256", string(s))
}
