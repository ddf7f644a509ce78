package vmwatch

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

func TestObjectWasMadeFromTheSource(t *testing.T) {
	source, err := os.ReadFile("bpf/watch.bpf.c")
	if err != nil {
		t.Fatal(err)
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
