// Package queue holds the queue between the communication path and the
// helper thread (Li et al., CF'11, sections 3.2 and 4.1).
//
// Ring is DQ: it carries completed uses from one communication thread to the
// helper, lock-free, and loses the oldest entries when it overruns.
// RQ is in package schedule, since it depends on what registrations cost.
//
// Ownership: a Ring has one producer and one consumer, which may run at the
// same time.
//
// # Caveats
//
// A Ring never blocks either side and never tells the producer that an entry
// was lost; Lost counts them.
package queue
