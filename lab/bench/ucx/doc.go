// Package ucx puts the registration cache of UCX (ucs_rcache, from Debian's
// libucx-dev 1.13) over a verbs.Provider, so that it can be judged by the same
// changes and the same bytes as ours.
//
// It is only built with the tag ucx, since it links libucs and libucm. Loading
// it patches munmap, mmap, mremap, madvise, shmat, shmdt and brk of the process's
// libc: use it in a process of its own.
package ucx
