// Package helper is the helper thread: it deregisters a region after its use
// and registers it again just before its next need, off the communication
// path.
//
// Package schedule holds the decisions, and the Loop that asks for them. Thread drives it in real time on an OS thread of
// its own, with workers for long registrations (thread_workers.go), on the processor that a Placement names.
//
// Ownership: a Thread owns its schedule.Decider; events reach it through
// package queue's DQ. Registration itself is done by a Registrar, in
// practice package regcache.
package helper
