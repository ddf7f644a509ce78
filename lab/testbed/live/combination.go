package main

import (
	"fmt"
	"slices"

	"pinwheel/lab/testbed/live/stack"
)

// policies are those of PINWHEEL_POLICY, and disabled.
var policies = []string{"pinwheel", "paper", "leave-pinned", "on-demand", disabled}

const disabled = "disabled" // PINWHEEL_DISABLE

// combination is one run of test-live.
type combination struct {
	program program
	policy  string
	stack   stack.Stack
	ranks   int
	under   condition
}

// String is the name of the combination, by which the state file knows it.
func (c combination) String() string {
	name := fmt.Sprintf("%s  %d ranks  %s  %s", c.stack.Name, c.ranks, c.policy, c.program.name)
	if c.under.name != "" {
		name += "  " + c.under.name
	}
	return name
}

// possible reports whether the program can do it at all.
func (c combination) possible() bool {
	p := c.program
	return (len(p.ranks) == 0 || slices.Contains(p.ranks, c.ranks)) && (p.mpi == "" || p.mpi == c.stack.MPI) &&
		!(p.pinwheelOnly && c.policy == disabled) && c.under.possible(c)
}

// product returns all combinations that are possible.
func product(
	programs []program, policies []string, stacks []stack.Stack, ranks []int, under []condition,
) (all []combination) {
	for _, p := range programs {
		for _, s := range stacks {
			for _, n := range ranks {
				for _, policy := range policies {
					for _, u := range under {
						if c := (combination{p, policy, s, n, u}); c.possible() {
							all = append(all, c)
						}
					}
				}
			}
		}
	}
	return all
}

// pairs are the pairs of values that a combination brings together.
func (c combination) pairs() (pairs [][2]string) {
	values := []string{
		"program " + c.program.name, "policy " + c.policy, "stack " + c.stack.Name, fmt.Sprint("ranks ", c.ranks),
	}
	for i, a := range values {
		for _, b := range values[i+1:] {
			pairs = append(pairs, [2]string{a, b})
		}
	}
	return pairs
}

// pairwise returns combinations in which every pair of values comes up that
// comes up in all: each next one adds the most. The same list gives the same choice.
func pairwise(all []combination) (chosen []combination) {
	missing := map[[2]string]bool{}
	for _, c := range all {
		for _, p := range c.pairs() {
			missing[p] = true
		}
	}
	for len(missing) > 0 {
		best, most := 0, -1
		for i, c := range all {
			adds := 0
			for _, p := range c.pairs() {
				if missing[p] {
					adds++
				}
			}
			if adds > most {
				best, most = i, adds
			}
		}
		chosen = append(chosen, all[best])
		for _, p := range all[best].pairs() {
			delete(missing, p)
		}
	}
	return chosen
}
