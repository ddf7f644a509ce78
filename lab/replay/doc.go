// Package replay drives traces through registration policies and measures what
// each of them pins, stalls and costs.
//
// Compare replays in virtual time: a discrete-event simulation of all ranks of a
// trace. Every rank has a communication path that replays its calls, and a helper
// on its own core that runs the schedule.Loop that ships, over the
// regcache.Cache that ships. Point-to-point messages are matched and collectives
// synchronise. A registration on the communication path delays its rank and,
// through matching, the others. The result depends on the trace and the Options
// alone: the same input gives the same bytes.
//
// Package realtime replays one rank in real time. It takes from here what it waits
// for: Survey and Events.
//
// # How it fits together
//
//	program     groups the records of a rank into calls
//	expansion   says which buffers a call needs registered, as transports do
//	engine      gives communication paths (comm, post, communicator, matcher)
//	            and helpers their turns, in order of virtual time
//	path        is what a policy does for a buffer: cached, bounce, pipeline,
//	            oracle
//	virtualProvider  prices what the cache does
//	Journal     what one rank did with each registration, if somebody asks
//	pinned      counts pinned pages, and what they amount to over time
//
// # Ownership
//
// A call of Compare owns everything that it creates. Calls are independent of each
// other and may run concurrently. The caller owns the trace.File; every policy
// reads it once.
//
// # Memory
//
// Records stream through. What is kept is bounded by the regions of the trace
// (the cache's, and the cuts of the pinned union), by the messages and requests
// outstanding at one time, and by series and histograms of fixed size. Events is up
// to 48 MiB ahead of its caller.
//
// # Caveats
//
// Communicators of different ranks are the same one if they have the same members
// and are the k-th with these members that each rank uses. If ranks first use two
// duplicates of a communicator in different order, that is reported as a deadlock.
//
// A buffer ends where a record says so (trace.OpUnmap): caches drop it then, at the beginning of the next call. Traces
// before version 4, and those of recorders that may use no BPF, have no such records: a buffer that the program
// frees counts as one that it does not need again.
//
// What MPI copies, and what a transport registers besides, is in no trace. Each buffer from the threshold on counts as
// registered, where some transports copy it.
//
// A helper hears of events as late as its schedule.Pacer allows, as live, but its sleeps end on time. Those of the
// policies paper, paper-strict and clairvoyant, and all under Options.Polls, hear of every event at once. The schedule.Loop of a replay
// pauses after failures, as live. But it deregisters regions one at a time.
package replay
