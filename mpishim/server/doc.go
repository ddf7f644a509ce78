//go:build cgo

// Command server is libpinwheel-go.so: the Go side of the preload library, built
// with -buildmode=c-shared. libpinwheel.so (../preload) loads it into a rank when
// MPI_Init has ended and the transport uses verbs; libpinwheel-api.so (../api)
// loads it at pinwheel_init. Each library in a process has a server of its own.
//
// It exports no Go function, so no thread of the program ever enters Go. The server,
// one locked thread, answers questions that C threads put into mailboxes: a
// registration that is no hit, the end of a protection domain, the end of the
// run. A thread opens the watch of mappings meanwhile (watches.go). The helper thread (internal/engine)
// registers and deregisters ahead of time. With recording, a goroutine writes the trace.
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
// A panic is contained, and the program goes on with plain registration. A nil pointer is not contained: package
// quiet leaves all handlers to the program, and our threads block even the signals of faults, so the kernel ends the
// process. A handler of ours would have to stay in place, and the program would see it in sigaction(2), save
// it and call it much later. Tests and Go's types keep such faults away.
package main
