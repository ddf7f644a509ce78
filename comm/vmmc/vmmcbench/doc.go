// Package vmmcbench measures what virtual memory-mapped communication costs on this machine, beside sockets and
// net/rpc in the same run: the tables of §6 of Dubnicki et al., "Software Support for Virtual Memory-Mapped
// Communication", and what it claims. With an RDMA device, messages by that are measured, too, beside perftest and
// ucx_perftest if they are installed, and for how many messages of a loop the export was registered in time.
//
// Both ends are in this process, so that the processor time of a message is that of both, with that of the
// kernel for them. Those who wait for a word look for 50 us, and then now and then. Every measurement is made in
// several rounds, each round makes all of them, and the median counts.
package vmmcbench
