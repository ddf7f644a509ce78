// Package verbs is what registers memory: the Provider interface, the errors
// and limits that all providers share, and the cost model of a registration.
//
// A provider pins the pages of a range and makes them known to a device. The
// implementations are verbs/rdma (libibverbs through cgo), verbs/uring
// (io_uring registered buffers: real pinning on any Linux), verbs/mlock, and
// verbs/sim (no pinning; costs and failures as configured). Package
// verbs/calibrate measures their cost, verbs/verbstest tests them all alike.
//
// Memory handed to a provider is owned by the caller and must stay mapped
// until Deregister returns. Providers know nothing of caches or threads that
// predict; every method of a Provider may be called from any goroutine.
package verbs
