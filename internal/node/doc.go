// Package node is what the Pinwheel processes of one job share on one node: who they are, what
// they have pinned, which processors their helpers claim, and how they divide the node's budget.
//
// # The segment
//
// It is a memfd(2) of fixed size, sealed against resizing. Nothing of it is left in the file
// system, and none of it at all when its last process has gone, however that went. Each member
// binds an abstract Unix socket (unix(7)), the beacon, whose name says which file descriptor of
// which process is the segment. A newcomer reads the names in /proc/net/unix and opens the memfd
// through /proc/PID/fd, which the kernel allows to the same user only. While a member joins it
// holds one more such name, the door, so that two newcomers never make two segments.
//
// The names contain the user, the PID namespace and the job. Names are seen by the whole network
// namespace, so processes share a segment only if they are in the same network namespace and the
// same PID namespace: in another one nobody could tell which processes are alive.
//
// # Crashes
//
// A process may be killed at any instruction. Everything that several members write is written
// under a lock of the open file description (F_OFD_SETLK, fcntl(2), Linux 3.15), which the
// kernel releases. Each change takes effect by a single store, so no order of deaths leaves
// half of one. The slot of a dead member is freed by whoever finds that the process and all of
// its threads have gone; until then its memory may still be pinned.
//
// # Trust
//
// Content of the segment is never trusted. Each value that is read is checked against its
// bounds, and those that a member wrote itself against its own copy. When something is wrong
// the member says so once and goes on as if it were alone, with its equal part of the budget.
//
// # Caveats
//
// A process that may not be dumped (PR_SET_DUMPABLE) can't be joined by others. A process that
// is stopped while it holds the lock keeps the others from moving shares until it goes on; they
// keep what they have.
package node
