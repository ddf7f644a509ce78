// Package report draws the figures of Dalessandro and Wyckoff, "Memory Management Strategies for Data Serving with
// RDMA" (HotI 2007) again, from transfers in virtual time, and says which of the paper's findings they show.
//
// # Caveats
//
// The same build writes the same bytes. Throughput is in MiB/s (2^20 bytes), as in the paper.
package report
