// Package replay drives traces through registration policies and measures
// what each of them pins, stalls and costs.
//
// Virtual mode is a discrete-event simulation of all ranks of a trace. Every
// rank is a communication path that replays its calls, and a helper on a core
// of its own that runs the same helper.Scheduler that ships. Point-to-point
// messages are matched, collectives synchronise, and a registration that the
// communication path has to do itself delays its rank and, through matching,
// the others. The result is a function of the trace and the Options alone:
// the same input gives the same bytes.
//
// Real mode maps memory for the regions of a trace, registers it through a
// real provider with the real helper thread, and waits out the timeline.
//
// # Ownership
//
// One Compare call owns everything that it creates; calls are independent of
// each other and may run concurrently. A Source must allow its ranks to be
// opened several times: the clairvoyant bound needs two passes, and every
// policy is a pass of its own.
//
// # Memory
//
// Records stream through. What is kept is bounded by the regions of the trace
// (registration state, breakpoints of the pinned union), by the messages and
// requests outstanding at one time, and by fixed-size histograms and series.
//
// # Caveats
//
// Communicators of different ranks are the same one if they have the same
// members and are the k-th with these members on each rank; a program that
// first uses two duplicates of a communicator in different order on different
// ranks is reported as a deadlock.
package replay
