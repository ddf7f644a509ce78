// Package uring is a verbs.Provider on io_uring registered buffers: it really
// pins memory (FOLL_PIN | FOLL_LONGTERM, as RDMA drivers do) on any Linux from
// 5.19, without privileges and without an RDMA device.
//
// A Provider owns a few io_uring instances ("rings"), each with a sparse table
// of registered buffers. A registration fills a slot of one table, or one for
// every started GiB. The rings are created disabled: nothing is ever submitted
// on them, unless WriteFixed or ReadFixed enable one to move bytes through a
// registration, as a device would.
//
// # Several rings
//
// io_uring_register(2) holds its ring's uring_lock while it pins: on one ring
// a 16 KiB registration waits for another thread's 128 MiB (2.6 ms instead of
// 2.6 us, in the median, on two processors). A Provider therefore opens a
// second ring when it finds the first busy, and so on up to Options.Rings. A
// program that registers from one thread at a time has one ring. A
// deregistration has to take the ring that holds its slot, and waits if that one
// is busy.
//
// Tables are small, and a further ring is opened when they are full, because
// the kernel walks its ring's table, with all pages in it, for every huge page
// that it counts. Memory of huge pages is still dear to register where much memory of small pages is registered: 0.2 ms
// for 16 KiB with 256 MiB of these, instead of 1.1 us.
//
// # What the kernel counts
//
// Every registration adds its pages to VmPin of /proc/self/status, so a page in
// two registrations counts twice; Usage counts the same way and agrees with
// VmPin to the page for memory of small pages. Of a huge page (any compound
// page: transparent, hugetlbfs, large folios of shmem) the kernel counts the
// whole, in the first registration of each ring that touches it, and nothing in
// later ones; it takes the whole off when that first one goes, though others
// may still pin it. Usage does not follow that. Where the kernel hands out huge
// pages unasked, 16 KiB of a large buffer so count as 2 MiB.
//
// Without CAP_IPC_LOCK the same count is held against RLIMIT_MEMLOCK, summed
// over all processes of the user that use io_uring; since Linux 6.14 the rings
// themselves, a few pages, count too.
//
// # Caveats
//
// The kernel pins for writing whatever the access asked for: read-only memory
// fails with verbs.ErrNotMapped. A registration keeps the pages that were
// mapped when it was made: after the mapping changed, transfers use the old ones.
//
// Before Linux 6.4 the kernel puts off the release of a deregistered buffer, by
// up to a second: VmPin, and what is left of RLIMIT_MEMLOCK, lag behind Usage.
// Close waits for it.
//
// Ring descriptors are close-on-exec. A forked child that does not exec must
// not use its parent's Provider.
package uring
