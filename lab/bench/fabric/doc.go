// Package fabric puts the registration cache of libfabric (Debian's libfabric-dev 1.17) to the test, on the software RDMA
// device, under memory monitors of its own and under ours. The provider is verbs;ofi_rxm, whose verbs below has the cache.
//
// It is only built with the tag fabric, since it links libfabric. The monitor memhooks patches munmap, mmap, mremap,
// madvise, shmat, shmdt and brk in whatever the process has loaded: use it in a process of its own.
package fabric
