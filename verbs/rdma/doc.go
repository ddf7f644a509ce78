// Package rdma registers memory with RDMA devices: it is the verbs.Provider
// on libibverbs.
//
// Open gives a Provider, which is one protection domain of one device.
// Programs that need more than one domain, or the device's attributes,
// use OpenDevice and Device.NewProvider. Package rc moves data
// between registered regions, package arena gives memory to register.
//
// # Which device
//
// Options.Device names it, "mlx5_0" or "mlx5_0:2" with the port; else it is the
// first one with an active port. Programs take the name from the setting
// PINWHEEL_RDMA_DEVICE.
//
// # Without a device
//
// The package builds everywhere. libibverbs is looked for when Open or Probe
// is called, and its absence, a kernel without RDMA, a machine without a
// device, or a build without cgo is an error of one line that matches
// verbs.ErrUnsupported. See internal/ibv for why it is not linked.
//
// # Ownership
//
// Memory stays the caller's. It must lie outside the Go heap, whose pages the
// runtime gives back and reuses as it likes: see package arena. The kernel
// keeps a page pinned until it is deregistered, even if it is unmapped in
// between; the device then still reads and writes the old page (the canary
// test shows it), which is what vmwatch and regcache are for.
//
// # Caveats
//
// AccessRemoteWrite and AccessRemoteAtomic need AccessLocalWrite as well, says
// ibv_reg_mr(3): without it the kernel refuses with EINVAL. Pages are counted as the kernel
// counts them for RLIMIT_MEMLOCK:
// twice when two regions hold them, not at all with AccessOnDemand.
//
// A fork leaves a child with the same pinned pages, copied on write under the
// parent's feet on kernels before 5.12. Children of such a process must exec.
package rdma
