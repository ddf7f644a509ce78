package vmwatch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestObjectWasMadeFromTheSource(t *testing.T) {
	source, err := os.ReadFile("bpf/watch.bpf.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{fmt.Sprintf("#define GRANULES %d ", GranuleCount), fmt.Sprintf("start >> %d,", GranuleBits)} {
		if !strings.Contains(string(source), same) {
			t.Errorf("bpf/watch.bpf.c has no %q, as Go has", same)
		}
	}
	sum, err := os.ReadFile("bpf/watch_x86.sum")
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.Sum256(source)
	if want, _, _ := strings.Cut(string(sum), " "); hex.EncodeToString(got[:]) != want {
		t.Error("bpf/watch.bpf.c has changed since bpf/watch_x86.o was compiled: run make vmwatch-object")
	}
}
