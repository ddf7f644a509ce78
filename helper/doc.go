// Package helper is the helper thread: it deregisters a region after its use
// and registers it again just before its next need, off the communication
// path.
//
// Scheduler holds every decision, as a pure state machine without clock,
// goroutine or system call. Thread drives it in real time on an OS thread of
// its own; package replay drives the same code in virtual time.
//
// Ownership: one Scheduler belongs to one driver; events reach it through
// package queue's DQ. Registration itself is done by a Registrar, in
// practice package regcache.
package helper
