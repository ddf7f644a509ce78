package measure

import (
	"fmt"
	"io"
)

// NotMeasured is why a claim is open that nobody has tried to measure.
const NotMeasured = "not measured"

// Relation is how what was measured has to stand to its bound.
type Relation string

// The relations.
const (
	AtLeast Relation = ">="
	AtMost  Relation = "<="
	Below   Relation = "<"
)

// Claim is a quantity that must stay within a bound; most are ratios.
type Claim struct {
	What     string   `json:"what"`
	Relation Relation `json:"relation"`
	Bound    float64  `json:"bound"`
	Times    float64  `json:"times"` // as measured
	// Said is how people are told of Times, if the number alone does not do.
	Said string `json:"said,omitempty"`
	// Missing says why it was not measured; empty if it was.
	Missing string `json:"missing,omitempty"`
}

// Holds tells whether the claim was measured, and holds.
func (c *Claim) Holds() bool {
	switch {
	case c.Missing != "":
		return false
	case c.Relation == AtLeast:
		return c.Times >= c.Bound
	case c.Relation == AtMost:
		return c.Times <= c.Bound
	}
	return c.Times < c.Bound
}

// Want says what Times should be.
func (c *Claim) Want() string {
	if c.Relation == AtMost && c.Bound == 0 {
		return "0"
	}
	return fmt.Sprintf("%s %.2f", c.Relation, c.Bound)
}

// Got says what Times is, or why that is not known.
func (c *Claim) Got() string {
	switch {
	case c.Missing == NotMeasured:
		return NotMeasured
	case c.Missing != "":
		return NotMeasured + ": " + c.Missing
	case c.Said != "":
		return c.Said
	}
	return fmt.Sprintf("%.2f", c.Times)
}

// WriteClaims writes a table of claims, its cells apart by tabs: for a tabwriter.
func WriteClaims(w io.Writer, claims []Claim) {
	fmt.Fprint(w, "claim\tmeasured\twanted\t\n")
	for _, c := range claims {
		got, verdict := c.Got(), "does not hold"
		switch {
		case c.Missing != "":
			got, verdict = "-", got
		case c.Holds():
			verdict = "holds"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.What, got, c.Want(), verdict)
	}
}
