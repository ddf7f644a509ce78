package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"pinwheel/internal/outfile"
	"pinwheel/predictor"
)

// Errors of files.
var (
	// ErrDamaged: the file is cut off, was altered, or is none of ours.
	ErrDamaged = errors.New("no intact profile")
	// ErrVersion: another version of Pinwheel has written the file.
	ErrVersion = errors.New("a profile of another version of Pinwheel")
	// ErrNoRank: the profile has nothing of the rank.
	ErrNoRank = errors.New("the profile lacks the rank")
)

// Version of the format. It also counts the ways in which frames and contexts were hashed, so that nobody looks in
// vain for those of another version.
const Version = 3

const (
	magic        = "\x89PWL\r\n\x1a\n" // as PNG: damaged by any transfer that alters text
	preludeBytes = 20
	maxHead      = 4 << 20 // bytes
	maxRanks     = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Part is what one rank has learned.
type Part struct {
	Rank    int
	Modules []Module // that its call sites are in
	packed  []byte
}

// NewPart packs the trained entries of a rank.
func NewPart(rank int, l *predictor.Trained) (Part, error) {
	packed, err := pack(l)
	return Part{Rank: rank, packed: packed}, err
}

// Bytes is how large the part is in a file.
func (p Part) Bytes() int { return len(p.packed) }

// Module is a library, or the program, that call sites are in.
type Module struct {
	Name  string // of its file, without directories
	Build string // build ID in hexadecimal
	Tag   uint16 // what Modules.Frame puts above the offsets in it; 0: the program. It is not in a file.
}

// Write writes a file whole or not at all. Of several parts of one rank it keeps the first.
func Write(path string, k Key, modules []Module, parts []Part) error {
	content := encode(k, modules, parts)
	if err := fits(len(content)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return outfile.Write(path, func(w io.Writer) error { _, err := w.Write(content); return err }, outfile.NoWait)
}

func encode(k Key, modules []Module, parts []Part) []byte {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Rank - b.Rank })
	parts = slices.CompactFunc(parts, func(a, b Part) bool { return a.Rank == b.Rank })
	head := k.encode(nil)
	head = appendModules(head, modules)
	head = binary.AppendUvarint(head, uint64(len(parts)))
	var body []byte
	for _, p := range parts {
		head = binary.AppendUvarint(head, uint64(p.Rank))
		head = binary.AppendUvarint(head, uint64(len(p.packed)))
		head = binary.AppendUvarint(head, uint64(crc32.Checksum(p.packed, castagnoli)))
		body = append(body, p.packed...)
	}
	b := binary.LittleEndian.AppendUint32([]byte(magic), Version)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(head, castagnoli))
	return append(append(b, head...), body...)
}

func appendModules(b []byte, modules []Module) []byte {
	b = binary.AppendUvarint(b, uint64(len(modules)))
	for _, m := range modules {
		b = appendText(appendText(b, m.Name), m.Build)
	}
	return b
}

func (c *cursor) modules() []Module {
	modules := make([]Module, c.count(2))
	for i := range modules {
		modules[i] = Module{Name: c.text(), Build: c.text()}
	}
	return modules
}

func (k Key) encode(b []byte) []byte {
	for _, s := range []string{k.Program, k.Build, k.Arguments} {
		b = appendText(b, s)
	}
	for _, n := range []uint64{uint64(k.Ranks), k.ThresholdBytes, uint64(k.Window)} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// File is a profile that was opened to be read. It is for one goroutine.
type File struct {
	Key     Key
	Modules []Module

	in     io.ReaderAt
	closer io.Closer
	ranks  []int // ascending
	parts  map[int]place
}

// place is where a part is.
type place struct {
	at, bytes int64
	sum       uint32
}

// Open reads the head of a file.
func Open(path string) (*File, error) {
	in, err := outfile.OpenInput(path)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err == nil {
		var f *File
		if f, err = read(in, info.Size()); err == nil {
			f.closer = in
			return f, nil
		}
	}
	_ = in.Close() // err is the cause
	return nil, fmt.Errorf("%s: %w", path, err)
}

// read reads the head of a file of this many bytes.
func read(in io.ReaderAt, size int64) (*File, error) {
	var prelude [preludeBytes]byte
	if n, err := in.ReadAt(prelude[:], 0); n < preludeBytes {
		if errors.Is(err, io.EOF) {
			err = ErrDamaged
		}
		return nil, err
	}
	if !bytes.HasPrefix(prelude[:], []byte(magic)) {
		return nil, ErrDamaged
	}
	if v := binary.LittleEndian.Uint32(prelude[8:]); v != Version {
		return nil, fmt.Errorf("%w (%d, not %d)", ErrVersion, v, Version)
	}
	headBytes := int64(binary.LittleEndian.Uint32(prelude[12:]))
	if headBytes > maxHead || headBytes > size-preludeBytes {
		return nil, ErrDamaged
	}
	head := make([]byte, headBytes)
	if _, err := in.ReadAt(head, preludeBytes); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if crc32.Checksum(head, castagnoli) != binary.LittleEndian.Uint32(prelude[16:]) {
		return nil, fmt.Errorf("%w: checksum", ErrDamaged)
	}
	f := &File{in: in, parts: map[int]place{}}
	c := cursor{b: head}
	if f.head(&c, preludeBytes+headBytes, size); c.bad || len(c.b) > 0 {
		return nil, ErrDamaged
	}
	return f, nil
}

func (f *File) head(c *cursor, at, size int64) {
	f.Key = Key{Program: c.text(), Build: c.text(), Arguments: c.text()}
	f.Key.Ranks, f.Key.ThresholdBytes, f.Key.Window = int(c.upTo(maxRanks)), c.upTo(math.MaxInt64), int(c.upTo(predictor.MaxWindow))
	f.Modules = c.modules()
	last := -1
	for range c.count(3) {
		rank := int(c.upTo(maxRanks - 1))
		p := place{at, int64(c.upTo(uint64(size))), c.uint32()}
		if at += p.bytes; rank <= last || at > size || p.bytes > maxPart {
			c.fail()
			return
		}
		last = rank
		f.ranks = append(f.ranks, rank)
		f.parts[rank] = p
	}
	if at != size {
		c.fail()
	}
}

// Ranks returns the ranks that the file has trained entries of, in ascending order.
func (f *File) Ranks() []int { return slices.Clone(f.ranks) }

// Trained reads what a rank has learned. It fails with ErrNoRank or ErrDamaged.
func (f *File) Trained(rank int) (*predictor.Trained, error) {
	p, ok := f.parts[rank]
	if !ok {
		return nil, fmt.Errorf("%w %d", ErrNoRank, rank)
	}
	packed := make([]byte, p.bytes)
	if _, err := f.in.ReadAt(packed, p.at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if crc32.Checksum(packed, castagnoli) != p.sum {
		return nil, fmt.Errorf("%w: checksum of rank %d", ErrDamaged, rank)
	}
	return unpack(packed)
}

// Close closes the file.
func (f *File) Close() error { return f.closer.Close() }
