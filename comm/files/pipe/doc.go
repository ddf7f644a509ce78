// Package pipe decides how a range of a file goes to a client by RDMA: which chunk is fetched, registered, posted and
// released next. It follows Dalessandro and Wyckoff, "Memory Management Strategies for Data Serving with RDMA" (HotI
// 2007), sections 3 and 4: static buffers, dynamic registration, pipelining and sendfile differ in the numbers of a
// Shape and in the policy of the Manager that registers, and in nothing else.
//
// A Pipe is a state machine: it knows no clock, no memory and no connection, and it starts no goroutine. Run drives it
// with a Device. Package comm/files/pipe/virtual drives the same machine in virtual time.
//
// # Caveats
//
// A Pipe serves one transfer. Its methods must not be called at the same time; Run sees to that. Fairness between
// transfers, and a budget that they share, are left to the Device.
package pipe
