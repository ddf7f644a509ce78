package sim

import (
	"go.uber.org/atomic"

	"pinwheel/mem"
)

// Failures are the errors of the first calls of each kind, in their order; nil lets a
// call succeed. Its method Fail is an Options.Fail. It is safe for concurrent use, though
// the third call is then whoever comes third.
type Failures struct {
	Register, Deregister []error
	calls                [2]atomic.Int64 // so far, by Op
}

// Fail returns the error of the next call.
func (f *Failures) Fail(op Op, _ mem.Range) error {
	errs := f.Register
	if op == OpDeregister {
		errs = f.Deregister
	}
	if n := f.calls[op].Add(1); n <= int64(len(errs)) {
		return errs[n-1]
	}
	return nil
}
