// Package mlock is a verbs.Provider on mlock(2). Registered memory stays resident, on any Linux
// and within RLIMIT_MEMLOCK. It stands in for a device where there is neither RDMA nor
// io_uring.
//
// mlock does not nest: one munlock undoes any number of mlocks. The Provider
// therefore counts references to pages and unlocks those that no registration
// covers any more. Usage counts each locked page once, as VmLck in
// /proc/self/status does.
//
// # Caveats
//
// Locked memory is not pinned. The kernel may still move a locked page to another frame, and
// no kernel object holds it when its mapping changes, so no device could use it. mlock does
// not look at the protection either: read-only memory can be registered for writing.
//
// Memory that the program locks itself, with mlock or mlockall, is unlocked
// when a registration of it ends. Locks are not inherited by fork.
package mlock
