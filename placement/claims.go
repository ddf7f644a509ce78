package placement

import (
	"errors"

	"pinwheel/internal/node"
)

// claimTable is the list of the helpers of a job on this node, which lies in the memory that its
// processes share. A nil member stands for a process that is alone. A claimTable belongs to one
// goroutine at a time.
type claimTable struct{ member *node.Member }

// owner is what the claim of this process is known by.
func (t claimTable) owner() Owner {
	if t.member == nil {
		return Owner{}
	}
	return t.member.Owner()
}

// update calls change with the claims of all living helpers and stores what it returns. Updates
// of different processes exclude each other. If it fails, nothing has changed; another process
// may have been stopped in its update.
func (t claimTable) update(change func([]Claim) []Claim) error {
	if t.member == nil {
		change(nil)
		return nil
	}
	return t.member.UpdateClaims(func(all []node.Claim) []node.Claim {
		return toNode(change(fromNode(all)))
	})
}

func fromNode(all []node.Claim) (claims []Claim) {
	for _, c := range all {
		claims = append(claims, Claim{Owner: c.Owner, CPU: c.CPU, Bytes: c.Bytes})
	}
	return claims
}

func toNode(claims []Claim) (all []node.Claim) {
	for _, c := range claims {
		all = append(all, node.Claim{Owner: c.Owner, CPU: c.CPU, Bytes: c.Bytes})
	}
	return all
}

// Claims returns the claims of all living helpers of this user on this node, of all jobs,
// without changing anything: for reports.
func Claims() (claims []Claim, err error) {
	jobs, err := node.Jobs()
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		v, failed := node.Open(job)
		if failed != nil {
			err = errors.Join(err, failed) // unless it has just ended
			continue
		}
		claims = append(claims, fromNode(v.Claims())...)
		v.Close()
	}
	if len(claims) > 0 {
		err = nil
	}
	return claims, err
}
