package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	maxLineBytes       = 64 << 10
	maxCSVWindowBytes  = 32 << 20 // zstd -19 needs 8 MiB
	maxRequestsPending = 1 << 20  // of one rank at a time
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd} // RFC 8878, section 3.1.1

// ImportOptions say how to import CSV.
type ImportOptions struct {
	Program string // becomes Header.Program
	Source  string // becomes Header.Source
	// AcceptCut takes a file whose last line is cut off, without that line,
	// as a killed recorder leaves it. Otherwise it is an error.
	AcceptCut bool
	// Progress, if set, is called now and then with the bytes of input read since its last call.
	Progress func(bytes int)
}

// ImportResult says what was imported.
type ImportResult struct {
	Header  Header
	Records uint64
	Bytes   int64    // of the trace
	Cut     []string // FILE:LINE of each last line that was left out
}

// LineError is a fault in an imported file.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// ErrCut is the fault of a line that ends before its newline.
var ErrCut = errors.New("last line is cut off (recorder was killed?)")

// Import converts the recorder's CSV files, one per rank of the same run, in
// plain text or zstd, with lines that end in LF or CRLF, to the trace at path out. On any fault it returns one
// error, a *LineError where a line is to blame, and leaves nothing at out.
func Import(out string, files []string, o ImportOptions) (ImportResult, error) {
	var res ImportResult
	var w *Writer
	for _, name := range files {
		im := importer{file: name, o: &o, res: &res}
		if err := im.run(&w, out); err != nil {
			if w != nil {
				_ = w.Abort() // err is the cause
			}
			return ImportResult{}, err
		}
	}
	if w == nil {
		return res, errors.New("no CSV file to import")
	}
	res.Header = w.Header()
	err := w.Close()
	res.Bytes = w.offset
	return res, err
}

// importer reads one CSV file.
type importer struct {
	file    string
	o       *ImportOptions
	res     *ImportResult
	line    int
	rw      *RankWriter
	pending map[uint32]int // line of each request that was not waited for
	frames  []uint64
}

func (im *importer) run(w **Writer, out string) error {
	f, err := os.Open(im.file)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	in, err := decompress(&meter{f, im.o.Progress})
	if err != nil {
		return fmt.Errorf("%s: %w", im.file, err)
	}
	defer in.Close()
	br := bufio.NewReaderSize(in, maxLineBytes)
	im.pending = map[uint32]int{}
	for {
		line, err := br.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		im.line++
		if err != nil && (len(line) > 0 || err == io.ErrUnexpectedEOF) && im.cut(err) {
			break
		}
		if err == nil {
			err = im.oneLine(w, out, bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}))
		}
		if err != nil {
			return &LineError{im.file, im.line, lineFault(err)}
		}
	}
	if im.rw == nil {
		return fmt.Errorf("%s: no header: a rank's CSV begins with \"# mpitrace\" and \"# rank N of M min_bytes B\"", im.file)
	}
	return nil
}

// cut reports whether the file ends in the middle of a line and that is accepted.
func (im *importer) cut(err error) bool {
	if !im.o.AcceptCut || im.rw == nil || err != io.EOF && err != io.ErrUnexpectedEOF {
		return false
	}
	im.res.Cut = append(im.res.Cut, fmt.Sprintf("%s:%d", im.file, im.line))
	return true
}

// lineFault translates the errors of reading a line.
func lineFault(err error) error {
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return ErrCut
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("line is longer than %d bytes", maxLineBytes)
	}
	return err
}

func (im *importer) oneLine(w **Writer, out string, line []byte) error {
	if len(line) > 0 && line[0] == '#' {
		return im.comment(w, out, line)
	}
	if im.rw == nil {
		return errors.New("record before the line \"# rank N of M min_bytes B\"")
	}
	var r Record
	stack, err := parseCSVLine(&r, line)
	if err != nil {
		return err
	}
	if im.frames, err = parseStack(im.frames[:0], stack); err != nil {
		return err
	}
	if r.Stack, err = im.rw.Stack(im.frames); err != nil {
		return err
	}
	if im.rw.tables.comms[r.Comm].members == nil && r.Op != OpFinalize {
		return fmt.Errorf("unknown communicator %d (no \"# comm %d ...\" line before)", r.Comm, r.Comm)
	}
	if err := im.request(&r); err != nil {
		return err
	}
	r.Line = uint32(im.line)
	im.res.Records++
	return im.rw.Append(&r)
}

// comment handles a line that begins with #. Unknown ones are skipped.
func (im *importer) comment(w **Writer, out string, line []byte) error {
	words := bytes.Fields(line[1:])
	switch {
	case len(words) == 0:
		return nil
	case string(words[0]) == "mpitrace" && im.line == 1:
		if len(words) != 2 || string(words[1]) != "2" {
			return fmt.Errorf("unknown version of the CSV: %q (2 is known)", clip(line))
		}
	case string(words[0]) == "rank":
		return im.rankLine(w, out, words)
	case string(words[0]) == "comm":
		return im.commLine(words[1:])
	}
	return nil
}

// rankLine handles "rank N of M min_bytes B"; the first one creates the trace.
func (im *importer) rankLine(w **Writer, out string, words [][]byte) error {
	var rank, ranks, minBytes int64
	ok := len(words) == 6 && string(words[2]) == "of" && string(words[4]) == "min_bytes"
	for i, v := range []*int64{&rank, &ranks, &minBytes} {
		if ok {
			*v, ok = parseInt(words[2*i+1])
		}
	}
	if !ok || im.rw != nil || ranks > MaxRanks || minBytes < 0 {
		return errors.New("expected one line \"# rank N of M min_bytes B\"")
	}
	h := Header{Program: im.o.Program, Ranks: int(ranks), ThresholdBytes: uint64(minBytes), Source: im.o.Source}
	var err error
	if *w == nil {
		if *w, err = Create(out, h); err != nil {
			return err
		}
	}
	if have := (*w).Header(); have.Ranks != h.Ranks || have.ThresholdBytes != h.ThresholdBytes {
		return fmt.Errorf("run of %d ranks, min_bytes %d; the files before are of %d ranks, min_bytes %d",
			h.Ranks, h.ThresholdBytes, have.Ranks, have.ThresholdBytes)
	}
	if (*w).ranks[int(rank)] != nil {
		return fmt.Errorf("rank %d was imported before, from another file", rank)
	}
	if im.rw, err = (*w).Rank(int(rank)); err != nil {
		return err
	}
	return im.rw.Unseen(Unseen{What: unseenBefore})
}

// commLine handles "comm ID members...".
func (im *importer) commLine(words [][]byte) error {
	if im.rw == nil || len(words) < 2 {
		return errors.New("expected \"# comm ID MEMBERS...\" after \"# rank\"")
	}
	var ids []int32
	for _, word := range words {
		v, ok := parseInt(word)
		if !ok || v < 0 || v > 1<<31-1 {
			return fmt.Errorf("%q is not a communicator or rank", clip(word))
		}
		ids = append(ids, int32(v))
	}
	return im.rw.DefineComm(ids[0], 0, ids[1:])
}

// request follows nonblocking requests from post to wait.
func (im *importer) request(r *Record) error {
	switch r.Op {
	case OpIsend, OpIrecv:
		if r.Req == 0 {
			return fmt.Errorf("%s without a request number", r.Op)
		}
		if posted, ok := im.pending[r.Req]; ok {
			return fmt.Errorf("request %d overlaps: posted in line %d and not waited for", r.Req, posted)
		}
		if len(im.pending) >= maxRequestsPending {
			return fmt.Errorf("%w: %d requests pending", ErrLimit, len(im.pending))
		}
		im.pending[r.Req] = im.line
	case OpWait:
		if _, ok := im.pending[r.Req]; !ok {
			return fmt.Errorf("wait for request %d, which is not pending", r.Req)
		}
		delete(im.pending, r.Req)
	default:
		if r.Req != 0 {
			return fmt.Errorf("%s with request number %d", r.Op, r.Req)
		}
	}
	return nil
}

// decompress returns the content of a stream that may be zstd, as its first bytes tell.
func decompress(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReader(r)
	if b, _ := br.Peek(len(zstdMagic)); !bytes.Equal(b, zstdMagic) {
		return io.NopCloser(br), nil
	}
	dec, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxCSVWindowBytes))
	if err != nil {
		return nil, err
	}
	return dec.IOReadCloser(), nil
}

// meter reports how much was read.
type meter struct {
	r      io.Reader
	report func(bytes int)
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if m.report != nil {
		m.report(n)
	}
	return n, err
}

// ProgramFromPath guesses the program of a trace from its file name: "ft.B.4" from "results/ft.B.4.pwt".
func ProgramFromPath(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
