package fault

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestPanicBecomesAnErrorWithItsPlace(t *testing.T) {
	err := Contain(func() error { panic(io.ErrUnexpectedEOF) })
	f := In(fmt.Errorf("wrapped: %w", err))
	if f == nil || !errors.Is(err, Err) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v, want a fault that tells its cause", err)
	}
	if !strings.Contains(string(f.Stack), "fault_test.go") {
		t.Errorf("the stack does not say where: %s", f.Stack)
	}
	if again := Contain(func() error { panic(f) }); again != error(f) {
		t.Errorf("raised again it became %v", again)
	}
}

func TestWhatDoesNotPanicIsLeftAlone(t *testing.T) {
	if err := Contain(func() error { return io.EOF }); err != io.EOF || In(err) != nil {
		t.Errorf("got %v", err)
	}
	if err := Contain(func() error { return nil }); err != nil || In(err) != nil {
		t.Errorf("got %v", err)
	}
}
