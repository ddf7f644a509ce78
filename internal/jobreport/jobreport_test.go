package jobreport

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/mpishim/report"
)

func writeRank(t *testing.T, name string, r report.Rank) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestReportsOfRanksBecomeOne(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := NewDir()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Dir(dir.Pattern())
	for rank, uses := range []uint64{30, 12} {
		writeRank(t, filepath.Join(at, []string{"0.json", "1.json"}[rank]), report.Rank{Rank: rank, Size: 2, PID: 1 + rank, Command: "./app", Uses: uses, Hits: uses})
	}
	files, err := dir.Files()
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	var b strings.Builder
	if err := Write(&b, files); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "2 of 2 ranks") || !strings.Contains(b.String(), " 42 ") {
		t.Errorf("no sum of the ranks in\n%s", b.String())
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestBadReportDoesNotKeepTheOthersBack(t *testing.T) {
	dir := t.TempDir()
	good, bad, empty := filepath.Join(dir, "good"), filepath.Join(dir, "bad"), filepath.Join(dir, "empty")
	writeRank(t, good, report.Rank{Rank: 0, Size: 1, PID: 1, Command: "./app"})
	for name, text := range map[string]string{bad: "{", empty: "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	err := Write(&b, []string{bad, good, empty, filepath.Join(dir, "missing")})
	if err == nil || strings.Count(err.Error(), "\n") != 2 || !strings.Contains(err.Error(), "bad is not the report of a rank") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(b.String(), "./app") {
		t.Errorf("no report of the good one: %q", b.String())
	}
	if err := Write(&b, []string{bad}); !errors.Is(err, ErrNone) {
		t.Errorf("without any: %v", err)
	}
}
