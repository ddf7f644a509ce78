// Package vmwatch tells a registration cache when memory that it has registered has
// changed its mapping.
//
// A registration (RDMA memory region, io_uring fixed buffer) pins physical
// pages. When the program unmaps, moves or discards the virtual range, the
// registration still names the old pages, and a transfer through it sends old
// data. Seed paper "Memory Registration Caching Correctness" (dreg, CCGrid'05)
// asks for three operations that this package has: register (Watch),
// deregister (Unwatch), and check (Generation and Drain; Unchanged). Its fourth, to
// block until something changes, is left out: nobody waits.
//
// # Mechanisms
//
// Open takes the first of these that loads, passes a self-test which performs
// the kinds of change, and leaves nothing uncovered that it can't refuse:
//
//	fentry  BPF on the kernel functions that remove and move page tables
//	tps     BPF on the tracepoints of the mapping system calls
//	tp      BPF on all system calls: where the others have a gap (preemptible
//	        kernels, x32)
//	pfn     the physical frames, compared at each hit (CAP_SYS_ADMIN)
//	uffd    userfaultfd in write-protect async mode, checked at each hit; no privilege
//	none    nothing may be cached
//
// Watch never guesses. It says for each range whether notification is enough (verify is
// false), whether each hit must be checked with Unchanged (verify is true), or whether the
// range can't be cached (ErrNotCacheable). With tps, tp and uffd, notification is not enough
// for memory of a file or a segment, which other processes can change.
//
// # Order of calls
//
//	token, verify, err := w.Watch(r)
//	w.Pinning(token)                  // only if verify
//	... make the entry known, then register r with the device ...
//	err = w.Pinned(token)             // for the first registration since Watch; for each if verify
//	... hit: if verify Unchanged(token), and then the generation is what the last Drain returned ...
//	w.Unwatch(token)                  // after it was deregistered
//
// An entry is known to the cache before its pages are pinned, so that a
// change during registration invalidates it.
//
// # Ownership
//
// The Watchers of a process that have the same mechanism share its kernel objects. None of
// these is pinned or has a name in the file system: they end with the last Watcher or with the
// process. The processes of a job may share loaded BPF programs by a Board, which end with
// the last of these processes; each has a log of its own. A Service lends logs to processes of all users, and does not
// outlive or end them. The generation word and the log are outside the Go heap, and
// C may read them until Close.
//
// # Caveats
//
// This is for Linux on x86-64 and AArch64. Elsewhere only pfn and none exist. On AArch64 the kernel does not number address
// spaces: a process may find that one that was forked from the same program and has ended has left a log under its
// name. Then it does without programs that others have loaded.
//
// BPF programs run for the whole machine, and drop the events of other processes. Every set of
// programs on a node adds its cost to the system calls of all processes.
//
// A process that is killed leaves its log, 385 KiB of kernel memory, with programs that it shared, until
// the last process that shares them ends.
//
// After fork a child must not use a Watcher of its parent: its changes are not recorded. A
// program that closes descriptors of others closes those of the Watcher too.
//
// What userfaultfd watches becomes a mapping of its own. So uffd watches whole granules of 2 MiB, which
// also tells it of changes beside a range, and refuses ranges with ErrCrowded before the process comes near
// vm.max_map_count.
//
// A mapping belongs to one userfaultfd. With uffd, memory that the program or another
// library has registered with a userfaultfd of its own can't be cached.
//
// On Linux 6.13 and later, with uffd a range is also registered again whenever the process took any page fault between
// two uses, since no unprivileged interface shows MADV_GUARD_INSTALL once MADV_GUARD_REMOVE and a touch have followed:
// pagemap and PAGEMAP_SCAN show a guard only while it is there. Before, that holds for memory that MADV_DONTNEED has
// emptied while it was watched. What goes unseen there: a buffer that is replaced by shmat(2) with SHM_REMAP, and the
// segment by an mremap(2) that grows another buffer over it, all between two uses.
package vmwatch
