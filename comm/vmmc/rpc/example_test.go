package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/rpc"
	"pinwheel/comm/vmmc/stream"
)

// A server and a client of one user on one machine. In a real program they are in two processes.
func Example() {
	dir, err := os.MkdirTemp("", "rpc")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	me := stream.Options{Peers: vmmc.Permissions{UIDs: []uint32{uint32(os.Geteuid())}}}
	open := func(name string) *vmmc.Node {
		n, err := vmmc.Open(vmmc.Options{Name: name, Listen: []string{"unix:" + filepath.Join(dir, name)}})
		if err != nil {
			panic(err)
		}
		return n
	}

	node := open("server")
	defer node.Close()
	l, err := stream.Listen(node, 7, me)
	if err != nil {
		panic(err)
	}
	server := rpc.NewServer(rpc.Options{})
	defer server.Close()
	server.Handle(1, func(_ context.Context, request, reply []byte) ([]byte, error) {
		return append(reply, bytes.ToUpper(request)...), nil
	}, rpc.Inline)
	go func() { _ = server.Serve(l) }()

	mine := open("client")
	defer mine.Close()
	client, err := rpc.Dial(ctx, mine, node.Addresses()[0], 7, me, rpc.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	answer, err := client.Call(ctx, 1, []byte("hello"), nil)
	fmt.Printf("%s, %v\n", answer, err)
	_, err = client.Call(ctx, 2, nil, nil)
	fmt.Println(err)
	// Output:
	// HELLO, <nil>
	// rpc: unknown procedure
}
