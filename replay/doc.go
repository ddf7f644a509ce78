// Package replay drives traces through registration policies and measures
// what each of them pins, stalls and costs.
//
// Compare replays in virtual time: a discrete-event simulation of all ranks
// of a trace. Every rank is a communication path that replays its calls, and
// a helper on a core of its own that runs the helper.Scheduler that ships, on
// the regcache.Cache that ships. Point-to-point messages are matched,
// collectives synchronise, and a registration that the communication path has
// to do itself delays its rank and, through matching, the others. The result
// is a function of the trace and the Options alone: the same input gives the
// same bytes.
//
// Real replays in real time: memory is mapped in the layout of the trace and
// registered through a real provider, by way of the façade and its helper
// thread, while the timeline on which registration costs nothing is waited
// out.
//
// # How it fits together
//
//	program     groups the records of a rank into calls
//	expansion   says which buffers a call needs registered, as transports do
//	engine      gives communication paths (comm, post, communicator, matcher)
//	            and helpers their turns, in order of virtual time
//	path        is what a policy does for a buffer: cached, bounce, pipeline,
//	            oracle
//	meter       is the provider of virtual time: it prices what the cache does
//	pins, usage count pinned pages, and what they amount to over time
//
// # Ownership
//
// One call of Compare or Real owns everything that it creates; calls of
// Compare are independent of each other and may run concurrently. The caller
// owns the trace.File, which is read once for every policy and twice more.
//
// # Memory
//
// Records stream through. What is kept is bounded by the regions of the trace
// (what the cache knows of them, breakpoints of the pinned union), by the
// messages and requests outstanding at one time, and by series and histograms
// of fixed size. Real keeps up to 64 MiB of timeline ahead, besides the memory
// that it maps.
//
// # Caveats
//
// Communicators of different ranks are the same one if they have the same
// members and are the k-th with these members that each rank uses. A program
// that first uses two duplicates of a communicator in different order on
// different ranks is reported as a deadlock.
//
// Virtual time gives the helper every event at once. The helper thread polls,
// so it may see an event later, by what its pacer allows.
//
// Real waits out transfers as the simulation has them: what one rank's stalls
// would cost the others is seen in virtual time only. It needs a core for each
// of its two threads; on a loaded machine it measures the load.
package replay
