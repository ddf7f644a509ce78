//go:build cgo

// Command golib is libpinwheel-go.so: the Go side of the preload library, built
// with -buildmode=c-shared. libpinwheel.so (../c) loads it into a rank when
// MPI_Init has ended and the transport uses verbs, libpinwheel-api.so (../api) at
// pinwheel_init. Each of them in a process is bound to a server of its own.
//
// It has no exported Go function: no thread of the program ever enters Go. One
// locked thread, the server, answers what the C side asks for through mailboxes
// (a registration that is no hit, the end of a protection domain, the end of
// the run); the helper thread of package helper registers and deregisters
// ahead of time; with recording, a goroutine writes the trace.
//
// # Ownership
//
// All memory that C sees is C's (struct pw_shared and what hangs on it) or
// that of package regcache's tables, outside the Go heap. A cache is made for each
// protection domain and closed before libibverbs destroys that; it stays
// reachable, since threads keep their Locals of it, until the process ends, or the API
// says that no thread uses the domain any more.
//
// # Caveats
//
// A panic is contained: the program goes on with plain registration. A nil
// pointer is not: the fault handlers are the program's. To contain it, a handler
// of ours would have to stay in place that forwards faults in Go code to the runtime and
// hands all others back to the program's. sigaction(2) would show it to the program, which
// may save and call it long after; the first fault of the program's own, or its next
// sigaction, would end the protection. That risk is taken in every run, to avert one that
// tests and the types of Go leave small.
package main
