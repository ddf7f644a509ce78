// Package mpishim is the home of libpinwheel.so, which puts just-in-time
// registration under an unmodified MPI program. It has no Go code of its own but
// the tests; the library is
//
//	core/     what both C libraries link: memory shared with the Go side, threads, call sites
//	preload/  libpinwheel.so: the wrappers of MPI and libibverbs, on the threads of the program
//	include/  pinwheel.h, for transports that link, with its manual page
//	api/      libpinwheel-api.so, which implements pinwheel.h
//	server/   libpinwheel-go.so: the cache, the helper and the recorder, on threads of their own
//	example/  a transport over libibverbs that links libpinwheel-api.so
//	testing/  standin: an MPI library and a libibverbs that do nothing, to test and measure with;
//	          programs: MPI programs that verify their data, and scripts that run them in the test bed
//
// "make shim" builds both libraries into bin/; they must lie in one directory.
// LD_PRELOAD names libpinwheel.so, in the ranks only: "pinwheel run" sees to
// that. The settings are those of package internal/settings; PINWHEEL_RECORD=PATTERN
// makes every rank write a .pwt file, PINWHEEL_STATS=y or PATTERN a report.
//
// # A registration
//
// The wrapper of an MPI call notes which memory the program gave to it (a post:
// address, size, call site). When the transport registers memory, in whatever
// call, the wrapper of ibv_reg_mr finds the post that contains it and looks into
// the table of package regcache. A hit is a reference counted in memory of
// this thread, and a handle that looks like an ibv_mr: no lock, no system call,
// no Go. Anything else is asked of the server thread on the Go side, through a
// mailbox and a futex; what the server refuses is registered as if we were not there.
// When the transport deregisters, the reference is dropped and the use goes
// to the helper through DQ.
//
// Which calls are wrapped is the table preload/calls.h: point-to-point, matched
// probes, persistent requests, collectives with those of neighbours and those
// on intercommunicators, one-sided calls for their origin buffers, and the MPI_x_c of
// MPI-4; in C, mpif.h, mpi and mpi_f08, for Open MPI and the libraries of the MPICH
// ABI. Calls that make or free datatypes and communicators are in it for their
// handles: the MPI library is asked about a handle only after it has accepted it
// (preload/mpi_handles.h), as an argument may be wrong, which the program may handle, or mean nothing where it
// stands, as with MPI_IN_PLACE. What a call returns is looked at only if it
// succeeded. Left out on purpose:
//
//   - MPI_Win_create, MPI_Win_allocate: a window stays registered for as long as it
//     lives, which the transport sees to; nothing is to be predicted. If its
//     memory is sent as well, both share one registration.
//   - MPI_Fetch_and_op, MPI_Compare_and_swap: one element each.
//   - Persistent collectives and partitioned communication: their buffers are
//     registered as if we were not there.
//   - MPI_File: what file systems do with memory is theirs.
//
// The wrapper of a call that the MPI library lacks is never called, unless by a
// program that looks it up by name: MPI_Send_c is found under an MPI-3 library, and
// fails with one line.
//
// What the program did not give to MPI, and is no copy that MPI makes of it,
// belongs to the transport (bounce pools) and is left alone.
//
// # Linked
//
// A transport that uses pinwheel.h says itself what it uses: its acquire is the
// lookup in the table, its release the push into DQ, and callbacks of its own take
// the place of libibverbs. Both libraries may be in one process: each has a server
// on the one Go side, and the limits of the process hold for both together.
//
// # The end
//
// MPI_Finalize: no new management; then the helper ends; then what is idle is
// released; then the transport closes, and ibv_dealloc_pd releases the last of each
// protection domain. A process that ends otherwise just ends. A forked child passes
// everything through. The Go side stays loaded, asleep.
//
// # Caveats
//
// A static libmpi or libibverbs is out of reach of LD_PRELOAD. Sixteen
// protection domains are managed, one after the other or at a time; more are left
// alone. With userfaultfd or frame numbers as the watch mechanism every use asks the
// server: some microseconds instead of nanoseconds.
package mpishim
