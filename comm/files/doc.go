// Package files serves files by virtual memory-mapped communication: a chunk of a file is a deliberate update of a
// window that the client exports, and so an RDMA write out of the page cache where both ends have a device, a read(2)
// into shared memory on one machine, and a message in TLS elsewhere. Processes of one user copy by a descriptor instead.
//
//	root, err := os.OpenRoot("/srv/files")
//	s, err := files.NewServer(node, root, files.ServerOptions{Peers: vmmc.Permissions{Peers: []string{"reader"}}})
//	err = s.Serve(ctx)
//
//	// in another process, whose node listens, too
//	c, err := files.Dial(ctx, node, "tcp:server:7000", files.ClientOptions{Peers: ...})
//	f, err := c.Open(ctx, "data/model.bin")
//	n, err := f.CopyRange(ctx, destination, 0, f.Info().Size())
//
// Names are those of package io/fs, but have any bytes: they are slash-separated, have no empty, "." or ".." element,
// and "." is the directory that is served. The server opens them through an os.Root, which refuses symbolic links that
// lead out of it.
//
// # Requests
//
// Requests are calls of package comm/vmmc/rpc, on one stream that vmmc has authenticated. So they are multiplexed, end with
// the context of the caller at both ends, and have a bounded size. A request to read names a part of a window, and its
// answer comes after the bytes. The client asks for no more than it has room for. So a client that is slow holds no
// memory of the server, and the server keeps no count of credits. Files of SmallBytes and less come inside of answers,
// many in one.
//
// # Ways of the bytes
//
//	RDMA            a shared read-only mapping of the file is registered chunk by chunk, or the ring of a transfer
//	shared memory   the client reads by a descriptor of its own, which the server opens for it, and which is for reading
//	                only; what is short, or for another user than the server's, is read(2) into the window of the client
//	TLS             read(2) into a ring, whose bytes go through the connection of vmmc
//	sendfile(2)     on a TCP connection of its own, if TrustedNetwork of both ends allows what is not encrypted
//
// The processor of the server never touches a mapping of a file: a file that is truncated so costs an error, and not
// the process. Where pages of a mapping can't be had, the file is read: the client hears what the disk says. Package
// comm/files/pipe decides which chunk is read or registered next, and a Strategy has the numbers.
//
// # Memory
//
// A Registrar registers memory for all clients of a server, by one pinwheel.Manager with the policy of the strategy. It
// keeps the mappings of files that were served, and so their registrations if the policy does, and if files are sent
// again before their mappings go. What is in use stays within its budget: a transfer that finds too little of it gets
// smaller or fewer chunks, or waits for its turn. Clients take turns by the bytes that they asked for (deficit round
// robin).
//
// # Changes of files
//
// An ETag changes whenever a file does. The server looks at the file before and after each transfer. If it is not the
// one that was opened, the transfer fails with ErrChanged and says how many bytes had arrived. A file of a client
// appears when all of it is written, verified and synchronised. Until then it has no name, or a hidden one if another
// connection may go on with it. Small files that come at the same time are synchronised together.
//
// # Failures
//
// Errors of the server are *fs.PathError with its errno. A peer that is silent for vmmc.Options.Heartbeat is gone: all
// calls fail with ErrPeerGone. While RDMA is down, bytes go through the connection, unless one of the ends insists on
// RDMA: then requests wait for it, and fail with ErrNoRDMA after some seconds.
//
// # Caveats
//
// Neither RDMA nor sendfile(2) encrypts. Modification times have the resolution of the clock of the kernel, so that a
// second change within it may go unnoticed.
//
// A process that stores to a shared mapping of a file changes its times with the first store only: until the kernel has
// written the page out, further stores change neither time, and so no ETag. Checksums find those that come while a file
// is copied.
package files
