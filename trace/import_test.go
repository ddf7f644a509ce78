package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// goodCSV is rank 1 of a run of two, in the recorder's format, with every kind of line.
const goodCSV = `# mpitrace 2
# rank 1 of 2 min_bytes 1
# start_ns,end_ns,start_cpu_ns,end_cpu_ns,op,dir,addr,bytes,peer,tag,comm,req,stack
# comm 0 0 1
100,110,50,60,bcast,s,7ffe833e5a38,4,0,0,0,0,244d;22bf
120,130,70,80,irecv,r,7f2107527ce0,208080,-1,-1,0,1,d46e;c5fb
# comm 1 1 0
140,150,90,100,isend,s,7f21074f5010,208080,0,2000,1,2,d4cb;c5fb
160,170,110,120,wait,,0,0,-2,0,0,1,d4f0
160,170,110,120,wait,,0,0,-2,0,0,2,d4f0
180,190,130,140,barrier,,0,0,-2,0,0,0,b356
200,210,150,160,alltoall,s,7ff1bbfff010,1024,2,0,1,0,4758
200,210,150,160,alltoall,r,7ff1b3ffe010,1024,2,0,1,0,4758
220,230,170,180,irecv,r,7f2107527ce0,16,0,5,0,1,d46e;c5fb
240,250,190,200,wait,,0,0,-2,0,0,1,d4f0
300,300,200,200,finalize,,,,,,,,
`

// importText imports one file with the given content.
func importText(t testing.TB, text string, o ImportOptions) (ImportResult, string, error) {
	t.Helper()
	dir := t.TempDir()
	csv, out := filepath.Join(dir, "rank1.csv"), filepath.Join(dir, "out.pwt")
	if err := os.WriteFile(csv, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	res, err := Import(out, []string{csv}, o)
	return res, out, err
}

func TestImportKeepsEveryField(t *testing.T) {
	res, out, err := importText(t, goodCSV, ImportOptions{Program: "x.A.2", Source: "here"})
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, out)
	if h := f.Header(); h != res.Header || h.Program != "x.A.2" || h.Ranks != 2 ||
		h.ThresholdBytes != 1 || h.Source != "here" {
		t.Errorf("header %+v", h)
	}
	if !slices.Equal(f.Ranks(), []int{1}) || res.Records != 11 || f.Records(1) != 11 {
		t.Errorf("ranks %v, %d records imported, %d in the index", f.Ranks(), res.Records, f.Records(1))
	}
	rr, err := f.Rank(1)
	if err != nil {
		t.Fatal(err)
	}
	recs := drain(t, rr)
	want := Record{StartNs: 120, EndNs: 130, StartCPUNs: 70, EndCPUNs: 80, Op: OpIrecv,
		Dir: DirWrite, Addr: 0x7f2107527ce0,
		Bytes: 208080, Peer: AnySource, Tag: AnyTag, Req: 1, Stack: recs[1].Stack, Line: 6}
	if recs[1] != want || !slices.Equal(rr.Frames(want.Stack), []uint64{0xd46e, 0xc5fb}) {
		t.Errorf("irecv read back as %+v at %x", recs[1], rr.Frames(recs[1].Stack))
	}
	if r := recs[2]; r.Comm != 1 || r.Line != 8 || r.Req != 2 || !slices.Equal(rr.Comm(1), []int32{1, 0}) {
		t.Errorf("isend read back as %+v with members %v", r, rr.Comm(1))
	}
	if r := recs[10]; r.Op != OpFinalize || r.Peer != NoPeer || r.Stack != 0 || r.StartNs != 300 {
		t.Errorf("finalize read back as %+v", r)
	}
	if recs[4].Stack != recs[3].Stack || recs[8].Stack != recs[1].Stack {
		t.Error("the same call site got two numbers")
	}
}

func TestLinesMayEndInCRLF(t *testing.T) {
	res, out, err := importText(t, strings.ReplaceAll(goodCSV, "\n", "\r\n"), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, plain, err := importText(t, goodCSV, ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := readRank(t, open(t, out), 1), readRank(t, open(t, plain), 1); res.Records == 0 ||
		!slices.Equal(got, want) {
		t.Errorf("with CRLF:\n%v\nwith LF:\n%v", got, want)
	}
}

func TestImportReadsZstdByContentNotByName(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll([]byte(goodCSV), nil)
	if res, _, err := importText(t, string(packed), ImportOptions{}); err != nil || res.Records != 11 {
		t.Fatalf("%d records, %v", res.Records, err)
	}
	_, _, err = importText(t, string(packed[:len(packed)-20]), ImportOptions{})
	if le := (*LineError)(nil); !errors.As(err, &le) || !errors.Is(err, ErrCut) {
		t.Errorf("cut zstd: %v, want ErrCut with a line", err)
	}
}

func TestEachFaultIsOneErrorWithFileAndLine(t *testing.T) {
	replace := func(old, new string) string {
		if strings.Count(goodCSV, old) != 1 {
			t.Fatalf("%q is not unique", old)
		}
		return strings.Replace(goodCSV, old, new, 1)
	}
	for name, tc := range map[string]struct {
		text string
		line int
		says string
	}{
		"unknown op":          {replace("barrier", "barier"), 11, `unknown op "barier"`},
		"overlapping request": {replace("1,2,d4cb", "1,1,d4cb"), 8, "request 1 overlaps: posted in line 6"},
		"wait for nothing":    {replace("0,0,2,d4f0", "0,0,3,d4f0"), 10, "wait for request 3"},
		"request number of a send": {replace("barrier,,0,0,-2,0,0,0", "barrier,,0,0,-2,0,0,9"), 11,
			"barrier with request number 9"},
		"nonblocking without request": {replace("1,2,d4cb", "1,0,d4cb"), 8, "isend without a request number"},
		"time running backwards":      {replace("180,190,130", "169,190,130"), 11, "time runs backwards"},
		"processor time backwards":    {replace("180,190,130", "180,190,119"), 11, "time runs backwards"},
		"end before start":            {replace("180,190,130", "180,179,130"), 11, "time runs backwards"},
		"too few fields": {replace("180,190,130,140,barrier,,0,0,-2,0,0,0,b356", "180,190,130,140,barrier,,0"),
			11, "line has 7 fields"},
		"too many fields":             {replace("b356", "b356,7"), 11, "line has 14 fields"},
		"empty line":                  {replace("180,190", "\n180,190"), 11, "line has 1 fields"},
		"bad number":                  {replace("180,190", "18O,190"), 11, `start_ns "18O" is not a number`},
		"negative time":               {replace("180,190", "-180,190"), 11, "start_ns"},
		"number that overflows":       {replace("180,190", "180,99999999999999999999"), 11, "end_ns"},
		"bad address":                 {replace("7f21074f5010", "7g21074f5010"), 8, "address"},
		"bad call site":               {replace("b356", "b3;;56"), 11, "return address"},
		"bad direction":               {replace("bcast,s", "bcast,x"), 5, "direction"},
		"no direction":                {replace("bcast,s", "bcast,"), 5, "direction"},
		"peer outside of the run":     {replace("208080,0,2000", "208080,5,2000"), 8, "peer 5"},
		"unknown communicator":        {replace("2000,1,2,", "2000,2,2,"), 8, "unknown communicator 2"},
		"communicator defined twice":  {replace("# comm 1 1 0", "# comm 0 1 0"), 7, "defined twice"},
		"member outside of the run":   {replace("# comm 1 1 0", "# comm 1 1 2"), 7, "member 2"},
		"bad communicator line":       {replace("# comm 1 1 0", "# comm 1 1 x"), 7, `"x"`},
		"unknown version":             {replace("mpitrace 2", "mpitrace 3"), 1, "unknown version"},
		"bad rank line":               {replace("# rank 1 of 2", "# rank 1 von 2"), 2, "rank N of M"},
		"rank outside of the run":     {replace("# rank 1 of 2", "# rank 2 of 2"), 2, "rank 2"},
		"second rank line":            {replace("# comm 1 1 0", "# rank 1 of 2 min_bytes 1"), 7, "one line"},
		"record before the rank line": {replace("# rank 1 of 2 min_bytes 1\n", ""), 3, "expected"},
		"line cut off":                {goodCSV[:len(goodCSV)-10], 16, "cut off"},
		"newline cut off":             {goodCSV[:len(goodCSV)-1], 16, "cut off"},
		"endless line":                {goodCSV + strings.Repeat("1", 2*maxLineBytes), 17, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, err := importText(t, tc.text, ImportOptions{})
			var le *LineError
			if !errors.As(err, &le) || le.Line != tc.line || filepath.Base(le.File) != "rank1.csv" {
				t.Fatalf("got %v, want an error at line %d", err, tc.line)
			}
			if !strings.HasPrefix(err.Error(), fmt.Sprintf("%s:%d: ", le.File, tc.line)) ||
				!strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("message %q does not say %q on one line", err, tc.says)
			}
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Errorf("failed import left %v", left)
			}
		})
	}
}

func TestCutTailIsAcceptedOnlyWhenAskedAndReported(t *testing.T) {
	res, out, err := importText(t, goodCSV[:len(goodCSV)-10], ImportOptions{AcceptCut: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Cut) != 1 || !strings.HasSuffix(res.Cut[0], "rank1.csv:16") || res.Records != 10 {
		t.Errorf("cut %v, %d records", res.Cut, res.Records)
	}
	if n := len(readRank(t, open(t, out), 1)); n != 10 {
		t.Errorf("%d records read back", n)
	}
	broken := strings.Replace(goodCSV, "180,190", "18", 1)
	if _, _, err := importText(t, broken, ImportOptions{AcceptCut: true}); err == nil {
		t.Error("a short line in the middle was accepted as a cut tail")
	}
}

func TestFilesOfOneImportMustBeOfOneRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := file("one", goodCSV)
	for want, files := range map[string][]string{
		"two:2: rank 1 was imported before": {one, file("two", goodCSV)},
		"three:2: run of 3 ranks":           {one, file("three", strings.Replace(goodCSV, "1 of 2", "0 of 3", 1))},
		"min:2: run of 2 ranks, min_bytes 9": {one,
			file("min", strings.Replace(goodCSV, "1 of 2 min_bytes 1", "0 of 2 min_bytes 9", 1))},
		"empty: no header":      {one, file("empty", "")},
		"missing: no such file": {one, filepath.Join(dir, "missing")},
		"no CSV file":           nil,
	} {
		out := filepath.Join(dir, "out.pwt")
		if _, err := Import(out, files, ImportOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("a failed import left a trace")
		}
	}
	zero := file("zero", strings.Replace(goodCSV, "1 of 2", "0 of 2", 1))
	out := filepath.Join(dir, "both.pwt")
	if _, err := Import(out, []string{one, zero}, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := open(t, out).Ranks(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("ranks %v", got)
	}
}
