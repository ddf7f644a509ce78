// Package virtual drives transfers of package comm/files/pipe in virtual time: what they send, and when, on a computer whose
// processors, memory bus and wire they share. It simulates the state machine that serves files, not a model of it.
//
// # Caveats
//
// Steps are not interrupted, and take what Computer says, without noise. The client is never late.
package virtual
