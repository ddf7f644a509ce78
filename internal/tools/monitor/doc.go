// Package monitor reads what the Pinwheel processes of this node have published (package node), for the commands
// "pinwheel top" (internal/tools/top) and "pinwheel metrics" (internal/tools/metrics). It runs in a process of its own and only
// reads, so it costs the ranks nothing.
//
// A Look is the state of every rank at one moment: plain values, which are also the JSON of "pinwheel top --json".
// Fields have the names of nasreplay's metrics and of the report of a rank (internal/report) where those have them.
// A History keeps the Looks of the last minute and knows rates and trends.
//
// # Caveats
//
// Ranks publish once a second. A Look is as old as Rank.AgeSeconds says, and a rank that is stopped
// (SIGSTOP) gets older and older. Only jobs of the caller's user can be seen.
package monitor
