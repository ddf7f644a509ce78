package profile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"path"
	"slices"
	"strings"

	"pinwheel/trace"
)

// OfTrace returns the key of the job that a trace was recorded from, replayed with these settings. A trace of an older
// recorder has no build ID. Then a hash of the call sites of large messages stands for it: another build calls from
// elsewhere.
func OfTrace(f *trace.File, thresholdBytes uint64, window int) (Key, error) {
	h := f.Header()
	program, arguments, _ := strings.Cut(h.Program, " ")
	k := Key{Program: path.Base(program), Arguments: arguments, Ranks: h.Ranks, ThresholdBytes: thresholdBytes, Window: window}
	sites := sha256.New()
	for _, rank := range f.Ranks() {
		r, err := f.Rank(rank)
		if err != nil {
			return k, err
		}
		if build, known := buildOf(r); known {
			k.Build = build
			return k, nil
		}
		if err := addSites(sites, r, thresholdBytes); err != nil {
			return k, err
		}
	}
	k.Build = "sites-" + hex.EncodeToString(sites.Sum(nil)[:8])
	return k, nil
}

func buildOf(r *trace.RankReader) (build string, known bool) {
	for _, m := range r.Modules() {
		if m.Tag == 0 && m.Build != "" {
			return m.Build, true
		}
	}
	return "", false
}

// addSites adds to sum the call sites of buffers of at least this many bytes.
func addSites(sum hash.Hash, r *trace.RankReader, bytes uint64) error {
	large := map[uint32]bool{}
	var rec trace.Record
	var err error
	for err = r.Next(&rec); err == nil; err = r.Next(&rec) {
		if rec.Bytes >= bytes {
			large[rec.Stack] = true
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	var stacks [][]uint64
	for stack := range large {
		stacks = append(stacks, r.Frames(stack))
	}
	slices.SortFunc(stacks, slices.Compare[[]uint64])
	for _, s := range stacks {
		for _, frame := range append([]uint64{uint64(len(s))}, s...) {
			sum.Write(binary.LittleEndian.AppendUint64(nil, frame))
		}
	}
	return nil
}
