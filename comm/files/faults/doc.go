// Package faults tests what serving files does when disks and networks fail, and what the kernel counts of it. Its tests
// break disks and networks, and need an RDMA device of the kernel. So they run in the guests of the test bed only: make
// test-guest, and make test-guests.
package faults
