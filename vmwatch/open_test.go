package vmwatch

import (
	"errors"
	"testing"
)

func TestX(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd", "pfn", "none", "auto"} {
		w, err := Open(Options{Mechanism: m})
		if errors.Is(err, ErrUnavailable) {
			t.Logf("%s: %v", m, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Log(w.Report())
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
