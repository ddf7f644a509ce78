// Package placement finds a core for each helper of a node: an idle one near its rank, or a share of
// the rank's own.
//
// Chooser decides, as a pure state machine without clock or file, so that package replay places the
// helpers of a simulated node with the same code. Placer drives it: it looks at the load of the
// machine, at the quotas of control groups, and at what the other helpers of the job claim (package
// node), and tells the Thread of package helper, which knows nothing of all that, where to run.
package placement
