package vmwatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestObjectWasMadeFromTheSource(t *testing.T) {
	source, err := os.ReadFile("bpf/watch.bpf.c")
	if err != nil {
		t.Fatal(err)
	}
	headers, err := filepath.Glob("bpf/*.h") // in order, as the shell has them
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.Clone(source)
	for _, h := range headers {
		text, err := os.ReadFile(h)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for _, same := range []string{fmt.Sprintf("#define GRANULES %d ", GranuleCount), fmt.Sprintf("start >> %d,", GranuleBits)} {
		if !strings.Contains(string(source), same) {
			t.Errorf("bpf/watch.bpf.c has no %q, as Go has", same)
		}
	}
	sum, err := os.ReadFile("bpf/watch.sum")
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.Sum256(all)
	if want, _, _ := strings.Cut(string(sum), " "); hex.EncodeToString(got[:]) != want {
		t.Error("bpf/watch.bpf.c or a header of it has changed since the objects were compiled: run make vmwatch-object")
	}
}
