package trace

import "fmt"

// call is what all records of one communication call have in common.
type call struct {
	op                   Op
	startNs, endNs       int64
	startCPUNs, endCPUNs int64
}

func callOf(r *Record) call {
	return call{r.Op, r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs}
}

// follow reports why a record of call c can't come after one of prev. The
// zero prev stands before the first record.
func (c call) follow(prev call) error {
	switch {
	case c == prev:
		return nil
	case c.startNs < prev.endNs:
		return fmt.Errorf("%w: call starts at %d ns, the one before ended at %d ns", ErrTime, c.startNs, prev.endNs)
	case c.endNs < c.startNs:
		return fmt.Errorf("%w: call starts at %d ns and ends at %d ns", ErrTime, c.startNs, c.endNs)
	case c.startCPUNs < prev.endCPUNs:
		return fmt.Errorf("%w: call starts at %d ns of processor time, the one before ended at %d ns",
			ErrTime, c.startCPUNs, prev.endCPUNs)
	case c.endCPUNs < c.startCPUNs:
		return fmt.Errorf("%w: call starts at %d ns of processor time and ends at %d ns", ErrTime, c.startCPUNs, c.endCPUNs)
	}
	return nil
}
