// Package vmmc is virtual memory-mapped communication: a process exports memory, others that it permits
// import it, and from then on they send into it. The receiver does nothing for that. The model and the
// section numbers in this package are those of Dubnicki et al., "Software Support for Virtual
// Memory-Mapped Communication".
//
//	n, err := vmmc.Open(vmmc.Options{Listen: []string{"unix:/run/user/1000/receiver"}})
//	memory, err := n.Alloc(1 << 20)
//	e, err := n.Export(7, memory, vmmc.Permissions{UIDs: []uint32{1000}}, vmmc.ExportOptions{})
//
//	// in another process
//	i, err := n.Import(ctx, 7, "unix:/run/user/1000/receiver") // waits for the export
//	err = i.Send(ctx, []byte("hello"), 4096, vmmc.SendOptions{Notify: true})
//
// # Operations
//
//	§4.1  Node.Export, Permissions; Node.Import, Node.ImportAsync
//	§4    Import.Proxy, Node.SendTo: destination proxy space
//	§4.2  Import.Send, Import.SendAsync, Op: deliberate update
//	§4.3  Import.Map, Mapping.Flush, Store, Publish and Unmap: automatic update
//	§4.4  SendOptions.Notify, MapOptions.Notify; Export.Handle, Block, Unblock, Discard, Wait, FD
//	§4.5  Import.Unimport; Export.Unexport, Export.UnexportAsync
//	§5.3  package broker; of the libraries, packages stream and rpc. There is none for NX/2, which has no programs
//	      any more, nor for shared virtual memory, which would be a memory consistency protocol over this package
//
// # Transports
//
// The address of the exporter chooses the transport. At a Unix socket, an export in memory of Alloc becomes
// shared memory: the exporter passes its memfd, a message is a copy, and Map makes stores messages. An
// export of other memory gets its messages through the socket. Over TCP they go through TLS 1.3,
// by certificates or by a token. Nodes of one user on one machine need neither. A name at the broker of a
// machine (package broker) leads to a Unix socket between two processes; those of other users, if
// Options.Users lets them in, get no shared memory. To another node it leads over TCP and TLS; only brokers have
// certificates or tokens then. Over connections, automatic
// update finds what has changed by the kernel's write tracking (Linux 6.7).
//
// If both ends of a TCP connection have an RDMA device, messages become RDMA writes: a moment after the import
// was granted, and until RDMA fails, which a message without an answer for Options.Heartbeat means, too. The
// connection carries all the rest, and the messages again while RDMA is down, which Options.Warn hears once. What is
// sent is registered by a pinwheel.Manager, just in time and by call site; messages of a kilobyte and less are copied.
// Import.RDMA tells which way messages go.
//
// An export is registered for an importer while that has a lease of it: after the import was granted, while it
// sends, and shortly before its next message is expected. Idle exports pin nothing. A message that comes without a
// lease goes through the connection. Options.MaxPinned and MaxPeerPinned bound what is registered.
//
// # Order
//
// Messages through one Import arrive in the order of their Sends, and a notification comes after its
// message. There is no order between imports, nor among the bytes of a message before all of it has
// arrived. An Op is Sent when its source may be changed, and Acked when the message is in the memory of the
// exporter. Neither says that somebody looked at it. A message that is one word of 8 bytes, at an aligned
// address, appears there at once; with RDMA, if the device writes 8 bytes at once.
//
// A message arrives once, with one exception. When RDMA fails, the importer sends again through the connection what it
// does not know to have arrived. If it had, the same bytes are written to the same place a second time. Nothing goes
// back to what it was: a message over RDMA waits until those before it at the same place have arrived. Only a receiver
// that itself writes to where messages arrive can notice: a flag that it has cleared may be set again. It should count
// instead, or be notified: a notification comes once.
//
// What is stored into an automatic update area of shared memory arrives in the order of stores. Over a
// connection it arrives in rounds: those have their order, the words of one round have none. Flush ends a
// round, Publish stores a word after one, and Store sends one word between rounds. Send has no order with any
// of these.
//
// # Protection
//
// Nobody may import what names nobody. The exporter checks the bounds of each message that comes through a
// connection, to the byte; a peer that breaks a rule loses its connection, and nothing else changes. Shared
// memory is between processes of one user, who could do worse to each other: there the importer checks the
// bounds, and the whole pages of an Alloc are within its reach while it imports.
//
// With RDMA, each importer has a protection domain of its own, in which its imports are registered to the byte.
// A write to anywhere else is refused by the device, and ends the connection of that importer alone. RDMA does
// not encrypt: Options.NoRDMA keeps messages in TLS.
//
// # Limits
//
// One peer takes at most its share: Permissions.MaxImporters and MaxPerPeer bound the imports of an export,
// Options.MaxConnections and MaxPeerConnections the connections of importers, ExportOptions.Queue the notifications of
// an import that wait, and Options.MaxPeerPinned what is registered for a connection. Options.MaxOps bounds what this
// node sends to one exporter, and Options.MaxExports what it exports. A connection through which nothing is imported
// ends after Options.Heartbeat.
//
// # Failures
//
// A peer that is silent for Options.Heartbeat is gone. Whatever waits for it fails with ErrPeerGone, and its
// imports of this node are forgotten. Unexport waits for importers no longer than Options.RevokeTimeout. An
// Import does not come back to life: import again. An automatic update area that can't get memory of its own again,
// because the kernel has none, ends the connection to its exporter, which gives its export other memory.
//
// # Caveats
//
// Memory of Alloc is outside the heap of Go and ends with Free or Close: a slice of it must not be used
// after that. Exported memory must stay mapped until Unexport has returned. Polling a word of it needs an
// atomic load.
package vmmc
