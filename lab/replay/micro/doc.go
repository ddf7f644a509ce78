// Package micro replays the microbenchmarks of two papers, which no trace has: the jobs are made up.
//
// Overlap is Figure 1 of "Scalable Memory Registration for High Performance Networks Using Helper Threads" (Li et al.,
// CF 2011): one rank sends three buffers to another, and both compute between two messages. PingPong sends a buffer to
// and fro without a pause, as a test of bandwidth does (Figure 1 of "Memory Registration Caching Correctness", Wyckoff
// and Wu, CCGrid 2005).
//
// The results of Compare depend on its arguments alone.
package micro
