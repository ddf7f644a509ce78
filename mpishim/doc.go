// Package mpishim contains the two C libraries that put just-in-time registration
// under a program, and the Go side that serves them. libpinwheel.so is preloaded into
// unmodified MPI programs. libpinwheel-api.so is linked by transports that call
// pinwheel.h. This package itself has no Go code but the tests.
//
//	core/     what both C libraries link: memory shared with the Go side, threads, call sites
//	preload/  libpinwheel.so: the wrappers of MPI and libibverbs, on the threads of the program
//	include/  pinwheel.h, for transports that link, with its manual page
//	api/      libpinwheel-api.so, which implements pinwheel.h
//	server/   libpinwheel-go.so: the cache, the helper and the recorder, on threads of their own
//	quiet/    what keeps the Go runtime of these libraries from changing the process: its signals, threads and limits
//	vmmc/     libpinwheel-vmmc.so, which implements pinwheel_vmmc.h: package vmmc for C, and nothing else
//	meter/    libpinwheel-meter.so, which pinwheel run --compare preloads: what a job takes, with Pinwheel and without
//	example/  a transport over libibverbs that links libpinwheel-api.so, and processes that send by vmmc
//	testing/  standin: an MPI library and a libibverbs that do nothing, to test and measure with;
//	          programs: MPI programs that verify their data, and scripts that run them in the test bed
//
// "make shim" builds libpinwheel.so and libpinwheel-go.so into bin/, and "make api" builds
// libpinwheel-api.so. The libraries must lie in one directory. LD_PRELOAD must name
// libpinwheel.so in the ranks only; "pinwheel run" sees to that. Package
// internal/settings documents the settings. With PINWHEEL_RECORD=PATTERN every rank
// writes a .pwt file, and with PINWHEEL_STATS=y or PATTERN a report.
//
// # Files and arrows
//
// preload, api and server include headers of core, server by links in its folder: the Go command notices changes of
// no others. None of them includes a header of another, and core includes only table.h and grant.h of regcache. Within
// the C side an arrow goes from a file to the files whose functions it calls. There are no circles, as
// TestFilesCallNoCircles checks.
//
//	mpi (wrappers of MPI) --> announce --> extent --> mpi_handles --> mpilib --> process
//	mpi --> record --> record_wait --> record_request --> record_comm --> record_ring --> process
//	mpi --> unwound
//	init (MPI_Init, MPI_Finalize) --> recording --> record_comm
//	init --> start --> thread --> process
//	preload (constructor) --> recording
//	verbs (wrappers of libibverbs) --> announce, mr, verbslib, first, start
//	use, instance (of api) --> domain --> thread --> process
//	use --> first
//
// # A registration
//
// The program passes a buffer to an MPI call. The wrapper of the call announces the
// buffer: it notes the address, the size and the call site in memory of its thread. The transport
// registers the buffer, perhaps inside a later call or on another thread. The wrapper
// of ibv_reg_mr then finds the announced buffer that contains the memory and looks
// into the table of package regcache. On a hit it counts a reference in memory of its
// own thread and returns a pw_mr, which looks like an ibv_mr. A hit takes no lock, makes no
// system call and does not enter Go.
//
// If the table knows nothing of the memory, the wrapper registers it at once, in a slot that
// the cache grants, and rings for the server thread on the Go side, which publishes the
// registration (regcache/grant.h). On any other miss it asks the server, through a mailbox and a
// futex, and waits. If the server refuses, the wrapper registers the memory with libibverbs, as if
// Pinwheel were not there. So it does, without asking, from the first use of a protection domain until changes
// of mappings are noticed (server/watches.go). When the transport deregisters, the wrapper drops
// the reference and pushes the use into DQ, where the helper finds it.
//
// The table preload/calls.h lists the calls that are wrapped: point-to-point, matched
// probes, persistent requests, collectives on intracommunicators, intercommunicators and
// neighborhoods, one-sided calls for their origin buffers, and the MPI_x_c forms of MPI-4. Each
// is wrapped in C, mpif.h, mpi and mpi_f08, for Open MPI and for libraries of the MPICH
// ABI. Calls that create or free datatypes and communicators are wrapped for their
// handles. The library asks MPI about a handle only after a call with it has succeeded
// (preload/mpi_handles.h), because arguments may be wrong, and with MPI_IN_PLACE some mean
// nothing. It reads the results of a call only if that succeeded.
//
// These are left out on purpose:
//
//   - MPI_Win_create and MPI_Win_allocate: the transport keeps a window registered for
//     as long as it lives, so there is nothing to predict. If the program also sends the
//     memory of a window, both uses share one registration.
//   - MPI_Fetch_and_op and MPI_Compare_and_swap: they move one element.
//   - Persistent collectives and partitioned communication: their buffers are
//     registered as if Pinwheel were not there.
//   - MPI_File: file systems do what they like with memory.
//
// A wrapper also exists for calls that the MPI library lacks. A program reaches it only
// by looking the name up. MPI_Send_c under an MPI-3 library, for example, fails with one line.
//
// Memory that the program did not pass to MPI, and that is no copy that MPI makes of such
// memory, belongs to the transport: bounce buffers, for example. It is left alone.
//
// # Transports that link
//
// A transport that calls pinwheel.h says itself what it uses. pinwheel_acquire looks
// into the table, pinwheel_release pushes into DQ, and the transport's callbacks take
// the place of libibverbs. One process may load both libraries. Each then has its own
// server on the one Go side, and the limits of the process hold for both together.
//
// # The end
//
// At MPI_Finalize the library stops managing new registrations, ends the helper and
// releases what is idle. Then the transport closes, and ibv_dealloc_pd releases the rest
// of each protection domain. A process that ends in another way just ends. A forked
// child passes everything through. The Go side stays loaded and sleeps.
//
// # Caveats
//
// LD_PRELOAD does not reach a static libmpi or libibverbs. The preload library manages
// the first sixteen protection domains of a process and leaves later ones alone. With
// userfaultfd or frame numbers as the watch mechanism every use asks the server, which takes some
// microseconds instead of nanoseconds.
package mpishim
