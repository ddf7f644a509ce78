// Package fault makes errors of panics: a fault of ours, or of what was plugged
// into us, ends what it happened in, and never the program.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Err is what errors.Is finds in every Fault.
var Err = errors.New("internal fault")

// Fault is a panic that was contained.
type Fault struct {
	Panic any    // its value
	Stack []byte // where it happened, as debug.Stack tells
}

// Error says what happened, without the stack.
func (f *Fault) Error() string { return fmt.Sprintf("%v: %v", Err, f.Panic) }

// Unwrap makes a Fault an Err, and what it was if it was an error.
func (f *Fault) Unwrap() []error {
	if err, ok := f.Panic.(error); ok {
		return []error{Err, err}
	}
	return []error{Err}
}

// Contain calls f. A panic of it becomes a *Fault.
func Contain(f func() error) (err error) {
	defer into(&err)
	return f()
}

// into, deferred, makes a *Fault of a panic and stores it in *err.
func into(err *error) {
	if p := recover(); p != nil {
		*err = Of(p)
	}
}

// Of returns the Fault that a recovered value stands for.
func Of(p any) *Fault {
	if f, ok := p.(*Fault); ok {
		return f
	}
	return &Fault{p, debug.Stack()}
}

// In returns the Fault in an error, or nil. Without an error it allocates nothing.
func In(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	errors.As(err, &f)
	return f
}
