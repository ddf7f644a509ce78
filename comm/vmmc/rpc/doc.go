// Package rpc has remote procedure calls over comm/vmmc/stream. Over shared memory, a null call makes no system
// call while both ends are busy: each looks for up to 50 us before it sleeps.
//
//	s := rpc.NewServer(rpc.Options{})
//	s.Handle(1, func(ctx context.Context, request, reply []byte) ([]byte, error) {
//		return append(reply, request...), nil
//	}, rpc.Waits)
//	err := s.Serve(l) // a stream.Listener
//
//	// in another process
//	c := rpc.NewClient(conn, rpc.Options{}) // of stream.Dial
//	answer, err := c.Call(ctx, 1, []byte("hello"), nil)
//
// # Calls
//
// A call is a request and a reply of bytes, and a procedure is a number: what the bytes mean is up to the
// program. Any number of goroutines may call through one Client at a time, and replies come in any order. No
// goroutine of the Client waits for replies: one of the callers reads, for all of them. A handler that waits for
// nothing can run in the goroutine that reads requests (Inline); any other gets a goroutine for each call.
//
// # Failures
//
// A call ends with its context: the handler hears of that by its own context, which has the same deadline. If
// the connection ends, or the peer is silent for vmmc.Options.Heartbeat, then all calls fail with
// vmmc.ErrPeerGone, and the contexts of all handlers end. Whether such a call was executed is not known. An error of
// a handler comes back as its text, in an Error. A handler that panics fails its own call only.
package rpc
