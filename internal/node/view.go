package node

import "fmt"

// View is a reader outside of a job. It changes nothing and costs the members nothing.
// For one goroutine at a time.
type View struct{ seg *segment }

// Open opens the segment of a job of this user for reading. It fails if the job has no living
// member on this node.
func Open(job string) (*View, error) {
	if err := checkJob(job); err != nil {
		return nil, err
	}
	s, err := findSegment(job, false)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, job)
	}
	return &View{s}, nil
}

// Members returns the living members. Nothing that it returns is out of bounds, whatever the
// segment holds.
func (v *View) Members() []State { return v.seg.members() }

// Claims returns the claims of the living members for processors.
func (v *View) Claims() []Claim { return v.seg.claims(-1) }

// BudgetBytes returns what all members together may pin, and how much of it they may pin now, 0
// if there is no bound. The rest is free, or belongs to ranks that have not joined yet.
func (v *View) BudgetBytes() (budget, granted int64) { return v.seg.budget(), v.seg.granted() }

// Close ends the use of the View.
func (v *View) Close() error {
	v.seg.close()
	return nil
}
