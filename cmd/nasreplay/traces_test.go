package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/trace"
)

func TestBadTraceIsOneLineAndTheOthersAreStillDone(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.pwt")
	whole, err := os.ReadFile(ftB4)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.pwt")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	if err := os.WriteFile(damaged, flipped, 0o666); err != nil {
		t.Fatal(err)
	}
	fifo, empty := filepath.Join(dir, "fifo.pwt"), filepath.Join(dir, "empty.pwt")
	if err := errors.Join(unix.Mkfifo(fifo, 0o666), os.WriteFile(empty, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"info"}, {"compare", "--policy", "leave-pinned"}, {"plot", "--out", dir, "--policy", "leave-pinned"}} {
		for bad, says := range map[string]string{missing: "no such file", damaged: "damaged", "main.go": "not a pinwheel trace",
			empty: "not a pinwheel trace", fifo: "no regular file", dir: "no regular file"} {
			stdout, stderr, status := nasreplay(t, append(args, bad, isC4)...)
			if status != 1 || !strings.Contains(stdout, "is.C.4") {
				t.Errorf("%q with %s: status %d, stdout %q", args, bad, status, stdout)
			}
			oneLine(t, stderr, says)
		}
	}
	_, stderr, status := nasreplay(t, "info", "--ranks", "7", isC4)
	if status != 2 {
		t.Errorf("rank that is not there: status %d", status)
	}
	oneLine(t, stderr, "no rank 7")
}

func TestTornTraceIsUsedAndSaidToBe(t *testing.T) {
	whole, err := os.ReadFile(traces + "lu.B.4.pwt")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "torn.pwt")
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := nasreplay(t, "info", path)
	if status != 0 || !strings.Contains(stdout, "lu.B.4") {
		t.Errorf("status %d, stdout %q", status, stdout)
	}
	oneLine(t, stderr, "cut off")
}

func TestTraceThatLacksRanksOrCallsSaysSoInOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, ranks, has int) string {
		path := filepath.Join(dir, name)
		w, err := trace.Create(path, trace.Header{Program: "app", Ranks: ranks})
		if err != nil {
			t.Fatal(err)
		}
		for rank := range has {
			rw, err := w.Rank(rank)
			if err == nil {
				err = errors.Join(rw.Append(&trace.Record{StartNs: 1, EndNs: 2, Op: trace.OpFinalize}), rw.LeaveOut("calls that failed", 2), rw.LeaveOut("others", 1))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, stderr, status := nasreplay(t, "compare", write("whole.pwt", 2, 2))
	if status != 0 {
		t.Errorf("status %d", status)
	}
	oneLine(t, stderr, "app: not in the trace: 4 calls that failed, 2 others;")
	path := write("lacks.pwt", 2, 1)
	_, stderr, status = nasreplay(t, "compare", path)
	if status != 1 {
		t.Errorf("a rank is not there: status %d", status)
	}
	oneLine(t, stderr, "has 1 of 2 ranks")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, b[:len(b)-1], 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, _ = nasreplay(t, "compare", path)
	oneLine(t, stderr, "has 1 of 2 ranks: all are needed to match their messages (")
}

func TestImportConvertsWhatInfoThenDescribes(t *testing.T) {
	dir := t.TempDir()
	csv, out := filepath.Join(dir, "rank0.csv"), filepath.Join(dir, "tiny.A.1.pwt")
	text := "# mpitrace 2\n# rank 0 of 1 min_bytes 1\n# comm 0 0\n10,20,5,6,bcast,s,7f0000000000,65536,0,0,0,0,12;34\n30,40,7,8,barrier,,0,0,-2,0,0,0,12\n"
	if err := os.WriteFile(csv, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := nasreplay(t, "import", "--out", out, "--source", "a test", csv)
	if status != 0 || stderr != "" || !strings.Contains(stdout, "2 records") {
		t.Fatalf("import: status %d, %q, %q", status, stdout, stderr)
	}
	f, err := trace.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if h := f.Header(); h.Program != "tiny.A.1" || h.Source != "a test" {
		t.Errorf("header %+v", h)
	}
	stdout, _, status = nasreplay(t, "info", "--json", out)
	var got struct {
		Trace   string
		Records int
		Regions []struct{ Bytes int }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 || got.Trace != "tiny.A.1" || got.Records != 2 || len(got.Regions) != 1 || got.Regions[0].Bytes != 65536 {
		t.Errorf("info --json: status %d, %v, %+v", status, err, got)
	}
	if err := os.WriteFile(csv, []byte(strings.Replace(text, "bcast", "bkast", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	_, stderr, status = nasreplay(t, "import", "--force", "--out", out, csv)
	if status != 1 {
		t.Errorf("bad CSV: status %d", status)
	}
	oneLine(t, stderr, csv+":4: unknown op")
}
