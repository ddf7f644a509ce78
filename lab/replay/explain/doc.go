// Package explain says where policy pinwheel falls short of the clairvoyant bound: for each cause, how much
// memory was pinned in vain, and for how long; and what happened to each region between two uses.
//
// Trace replays a trace, writes a replay.Journal for each rank, and accounts for every page and nanosecond in
// which the policy pinned what the bound would not have, or the other way round. The shares of all causes add
// up to what was missed of the possible saving: 1 - captured_avg.
//
// # How it fits together
//
//	idle.go    cuts each registration where its region was in use: what is left are idle stretches
//	cause.go   gives each part of an idle stretch its cause
//	account.go sets them against the bound, page by page
//	explain.go adds up ranks and regions
//	cycles.go  tells the story of one region, use by use
//
// Nothing here is safe for concurrent use; calls of Trace are independent of each other.
package explain
