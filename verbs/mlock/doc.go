// Package mlock is a verbs.Provider on mlock(2): the memory stays resident,
// on any Linux and within RLIMIT_MEMLOCK. It stands in for a device where
// neither RDMA nor io_uring is to be had.
//
// mlock does not nest: one munlock undoes any number of mlocks. The Provider
// therefore counts references to pages and unlocks those that no registration
// covers any more. Usage counts each locked page once, as VmLck in
// /proc/self/status does.
//
// # Caveats
//
// Locked is not pinned. The kernel may still move a locked page to another
// frame, and a changed mapping takes its locked pages with it; no device could
// use them, and no kernel object holds them. Nor does mlock look at the
// protection: read-only memory is registered whatever the access asked for.
//
// Memory that the program locks itself, with mlock or mlockall, is unlocked
// when a registration of it ends. Locks are not inherited by fork.
package mlock
