// Package regcache is the registration cache. It finds the registration that covers a
// buffer, makes one if there is none, counts references to it, and keeps pinned memory
// below a limit.
//
// # Regions
//
// A region is a page-aligned range with access rights that the cache knows under a
// mem.RegionID. It goes through the states absent, registering, registered, draining and
// back to absent, as often as the helper thread likes, and keeps its ID through all of
// them. Each request has a region, which stands for it whether it is registered or not:
//
//   - the best fit: the smallest known region that contains the request and is at
//     most twice as long;
//   - without one, a known region is grown to contain the request. The two must share
//     more than half of the longer one, and the union must be at most twice as long
//     as the request and below every limit;
//   - otherwise a region of exactly the request's pages is added.
//
// The choice does not depend on which regions are registered at the moment. A request is
// a hit if its region or any other registered region covers it; otherwise the cache
// registers its region.
//
// A page never gets a right that nobody asked for on that page: regions with different
// rights are united only where that holds.
//
// # Hits
//
// Regions are found in a table (table.h) outside the Go heap, which C code reads as well.
// A hit through a Local writes only to memory of its own thread. It takes no lock, makes
// no system call and does not wait, whatever the rest of the cache is doing. The comment
// at the top of table_unsafe.go gives the argument.
//
// A C thread registers a first use by itself, in a slot that the cache grants, while nothing is
// limited and C code can tell the Watcher what to watch (grant.h). The cache publishes the registration
// later: it opens it to hits if no change of the mapping was noticed since before it was made.
//
// # Where to look
//
// What happens to a registration, in this order, and the file that does it:
//
//	table.h, local_unsafe.go    a hit: a registered region has the bytes
//	acquire.go                  a miss, until its region is registered
//	index.go, grow.go           which region stands for the bytes
//	limits.go, group.go         room for it, in the protection domain, the process and the node
//	evict.go                    idle regions that make room
//	register.go, refusal.go     the call of the provider; memory that can't be kept
//	grant.h, publish.go         the same by a C thread, and how others come to hit it
//	ahead.go                    registrations before their use: of the helper, of a pool
//	watch.go                    a mapping changes: its regions are forgotten
//	release.go                  the last reference is gone: deregistration
//	region.go                   states of a region, and its place in the table
//
// Below that are the table as its one writer has it (table_unsafe.go, tablewrite_unsafe.go), what the
// lock is held for (lock.go), and what always holds (verify.go).
//
// # Ownership
//
// The cache owns its registrations, but neither the provider nor the memory. A Ref must be
// released exactly once, by any goroutine; its registration stays until then, even if
// the memory is unmapped meanwhile. A Local belongs to one goroutine at a time; everything
// else is safe for concurrent use. The cache holds no lock while it calls the provider, or
// Watch and Unwatch of the watcher.
//
// # Limits
//
// Options and Cache.SetLimits bound the memory that one protection domain has registered,
// registering and draining; a Group bounds that of the process. The cache evicts idle
// regions to make room, the least recently used first. Recency is counted in misses, since
// hits write nothing that others read. A region in use is never evicted.
//
// # Caveats
//
// A cache reserves address space for its table: 72 MiB at the default of 65536 known
// regions. Of that it uses at most 3 KiB for each region, and 8 bytes more for each
// thread. Under RLIMIT_AS, lower Options.KnownRegions.
//
// Release deregisters if it drops the last reference to a registration whose region was
// invalidated or has grown meanwhile.
//
// Without a Watcher, the caller must call Invalidate before registered memory is unmapped
// or remapped. Without one, never let the cache register memory of the Go heap: the Go
// runtime gives pages back by itself.
package regcache
