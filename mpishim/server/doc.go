//go:build cgo

// Command server is libpinwheel-go.so: the Go side of the preload library, built
// with -buildmode=c-shared. libpinwheel.so (../preload) loads it into a rank when
// MPI_Init has ended and the transport uses verbs; libpinwheel-api.so (../api)
// loads it at pinwheel_init. Each library in a process has a server of its own.
//
// It exports no Go function, so no thread of the program ever enters Go. The server,
// one locked thread, answers questions that C threads put into mailboxes: a
// registration that is no hit, the end of a protection domain, the end of the
// run. A thread opens the watch of mappings meanwhile (watches.go). The helper thread (internal/engine) registers and deregisters ahead of time.
// With recording, a goroutine writes the trace.
//
// # Ownership
//
// All memory that C sees belongs to C (struct pw_shared and all that it points to)
// or to the tables of package regcache, outside the Go heap. The server makes a cache
// for each protection domain and closes it before libibverbs destroys the domain. The
// cache stays reachable, since threads keep their Locals of it, until the process
// ends or the API says that no thread uses the domain any more.
//
// # Caveats
//
// A panic is contained, and the program goes on with plain registration. A nil
// pointer is not contained, because the program owns the fault handlers. A handler
// of ours would have to stay in place, forward faults in Go code to the runtime and
// hand all others to the program's. sigaction(2) would show it to the program, which
// may save it and call it much later; the program's first fault, or its next
// sigaction, would end the protection. Every run would take that risk to avert
// another one, which tests and Go's types keep small.
package main
