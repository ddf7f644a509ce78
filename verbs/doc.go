// Package verbs defines how memory is registered: the Provider interface, the errors and
// limits that all providers share, and the cost model of a registration.
//
// A provider pins the pages of a range and makes them known to a device. The
// implementations are verbs/rdma (libibverbs through cgo), verbs/uring (io_uring
// registered buffers, which pins memory on any Linux), verbs/mlock, and verbs/sim, which
// pins nothing and has the costs and failures that it is given. Package verbs/calibrate
// measures their costs, and verbs/verbstest holds them all to the same contract.
//
// The caller owns the memory, which must stay mapped until Deregister returns. Providers
// know nothing of caches or of prediction. Every method of a Provider is safe for
// concurrent use.
package verbs
