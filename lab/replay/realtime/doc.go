// Package realtime replays one rank of a trace in real time: real memory, a real
// provider, and the Manager with its helper thread that ship.
//
// The timeline is that of package replay on which registration costs nothing.
// Compute phases and transfers are waited out. Registrations take the time that
// they take, and put off everything after them. Every policy runs beside
// leave-pinned, in rounds, and is compared with the run of the same round.
//
//	realtime  the rounds, and what they give
//	player    one run: the communication path of the rank
//	arena     memory in the layout of the trace
//	provider  counts when pages are pinned, between Manager and provider
//	pincheck  compares that with the kernel's count
//
// # Caveats
//
// Transfers last as long as in the simulation. So a stall of one rank does not
// delay the others; only virtual time shows that. A run needs a core for each of
// its two threads. On a loaded machine it measures the load.
package realtime
