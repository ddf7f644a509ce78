package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A list of names that can't be read to its end is no short list.
func TestNamesThatCannotBeReadAreAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", bufio.MaxScanTokenSize+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	before := os.Stdin
	defer func() { os.Stdin = before }()
	os.Stdin = names
	if err := (&readCmd{}).Run(); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("got %v", err)
	}
}
