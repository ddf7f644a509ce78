// Package helper is the helper thread: it deregisters a region after its use
// and registers it again just before its next need, off the communication
// path.
//
// Package schedule holds the decisions. Thread drives them in real time on an OS thread of its own, with workers for
// long registrations (thread_workers.go), on the processor that a Placement names. Batches of deregistrations, pauses
// after failures (thread_actions.go), and what is put off until the rank waits (thread_waits.go) are here, because no
// other driver has them.
//
// Ownership: a Thread owns its schedule.Decider; events reach it through
// package queue's DQ. Registration itself is done by a Registrar, in
// practice package regcache.
package helper
