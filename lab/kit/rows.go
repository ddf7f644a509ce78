package kit

import (
	"context"
	"fmt"
	"path"
	"time"
)

// Choose returns the rows whose names match one of the patterns, as path.Match has them, in the order of the rows. A pattern
// that matches none is an error.
func Choose[R any](rows []R, name func(R) string, patterns []string) (chosen []R, err error) {
	found := make([]bool, len(patterns))
	for _, r := range rows {
		matches := false
		for i, pattern := range patterns {
			ok, err := path.Match(pattern, name(r))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", pattern, err)
			}
			found[i], matches = found[i] || ok, matches || ok
		}
		if matches {
			chosen = append(chosen, r)
		}
	}
	for i, pattern := range patterns {
		if !found[i] {
			return nil, fmt.Errorf("no row is called %q (see --list)", pattern)
		}
	}
	return chosen, nil
}

// Limits say how long a measurement goes on.
type Limits struct {
	Began  time.Time
	Budget time.Duration
}

// Over says why nothing further begins, "" if something does: the budget has been used up, or ctx, which a signal ends, is
// over.
func (l Limits) Over(ctx context.Context) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	if time.Since(l.Began) > l.Budget {
		return fmt.Sprintf("%s are over", l.Budget)
	}
	return ""
}
