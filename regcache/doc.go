// Package regcache is the registration cache: it finds the registration that
// covers a buffer, makes one if there is none, counts who uses it, and keeps
// what is pinned below a limit.
//
// # Regions
//
// A region is a page-aligned range with access rights that the cache knows
// under a mem.RegionID. It goes through absent, registering, registered,
// draining and back to absent, as often as the helper thread likes, and stays
// known, with its ID, through all of it. Each request has a region, which stands for it
// whether it is registered or not:
//
//   - the best fit: the smallest known region that contains the request and is at
//     most twice as long;
//   - without one, a known region is grown to contain the request. The two must share
//     more than half of the longer one, and the union must be at most twice as long
//     as the request and below every limit;
//   - otherwise a region of exactly the request's pages is added.
//
// Which region that is does not depend on what happens to be registered at the
// moment. A request is a hit if its region or any other registered region covers it;
// otherwise its region is registered.
//
// Rights are never widened over pages for which they were not asked: regions
// with different rights are united only where that holds.
//
// # Hits
//
// Regions are found in a Table (table.h), in memory outside the Go heap that
// C reads as well. A hit through a Local writes only to memory of its own
// thread: it takes no lock, makes no system call and does not wait, whatever
// the rest of the cache is doing. See table_unsafe.go for the argument.
//
// # Ownership
//
// The cache owns its registrations, not the provider and not the memory. A
// Ref must be released exactly once, by any goroutine; its registration stays
// until then, even if the memory was unmapped meanwhile. A Local belongs to
// one goroutine at a time; everything else is safe for concurrent use. All
// calls to the provider and the watcher's Watch and Unwatch happen without a
// lock held.
//
// # Limits
//
// Options and Cache.SetLimits bound what one protection domain has registered,
// registering and draining; a Group bounds that of the process. Idle regions
// make room, the least recently used first, where recency is told in steps of
// misses, since hits write nothing that others read. What is in use never does.
//
// # Caveats
//
// A cache reserves address space for its table, 70 MiB at the default of
// 65536 known regions, and uses of it what its regions need: below 1 KiB each and
// 8 bytes for each thread. Under RLIMIT_AS lower Options.KnownRegions.
//
// Release deregisters if it drops the last reference to a registration whose
// region was invalidated or has grown meanwhile.
//
// Without a Watcher the caller must call Invalidate before registered memory
// is unmapped or remapped. Never let registrations of Go-heap memory be
// cached without one: the Go runtime gives pages back by itself.
package regcache
