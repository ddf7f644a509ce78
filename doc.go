// Package pinwheel keeps memory registered for RDMA just in time: a buffer is
// registered around the moments in which it is used, and a helper thread on an
// idle core does the registering, off the communication path.
//
// A transport makes one Manager for each protection domain, one Thread for
// each thread that communicates, and brackets every transfer:
//
//	t, err := m.Thread()
//	...
//	var use pinwheel.Use // in the transport's request
//	err = t.Acquire(&use, r, verbs.AccessRemoteRead, op, &site)
//	... transfer with use.LKey() ...
//	t.Release(&use)
//
// The program makes the Options, or takes those of the PINWHEEL_* variables from
// FromEnvironment. New itself reads no variable.
//
// Acquire is a hit in nearly all cases: no lock, no allocation, no system call.
// Release tells the helper about the use through a lock-free ring. The helper
// predicts when the region is needed next, releases it if that is far away, and
// registers it again in time.
//
// Manager.Prepare registers a large pool ahead of its first use.
//
// # Ownership
//
// The Manager owns what it opened: the provider, unless Options.Provider gives
// one, the cache and the helper. A Thread belongs to one goroutine at a time; a
// Use to whoever acquired it, to be released exactly once, by any Thread of the
// same Manager. Everything else is safe for concurrent use.
//
// # Caveats
//
// Call Manager.Invalidate before registered memory is unmapped or remapped, or
// set Options.Watch. Never register memory of the Go heap without Options.Watch: the
// runtime returns pages to the kernel by itself.
//
// A fault of ours never fails the program: the Manager says so once, through
// Options.Warn, and goes on with plain registration.
package pinwheel
