// Package faults tests what serving files does when disks and networks fail, and what the kernel counts of it. Its tests
// break disks and networks, and need an RDMA device of the kernel. So they run in the guests of the test bed only: make
// test-files-guest, and make test-files-2node.
package faults
