package vmmc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"pinwheel/comm/vmmc"
)

// Two nodes of one user on one machine. In a real program they are in two processes.
func Example() {
	dir, err := os.MkdirTemp("", "vmmc")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	address := "unix:" + filepath.Join(dir, "receiver")
	ctx := context.Background()

	receiver, err := vmmc.Open(vmmc.Options{Listen: []string{address}})
	if err != nil {
		panic(err)
	}
	defer receiver.Close()
	memory, err := receiver.Alloc(4096)
	if err != nil {
		panic(err)
	}
	me := vmmc.Permissions{UIDs: []uint32{uint32(os.Geteuid())}}
	export, err := receiver.Export(7, memory, me, vmmc.ExportOptions{})
	if err != nil {
		panic(err)
	}
	export.Block() // keep notifications for Wait

	sender, err := vmmc.Open(vmmc.Options{})
	if err != nil {
		panic(err)
	}
	defer sender.Close()
	i, err := sender.Import(ctx, 7, address)
	if err != nil {
		panic(err)
	}
	if err := i.Send(ctx, []byte("hello"), 100, vmmc.SendOptions{Notify: true, Tag: 1}); err != nil {
		panic(err)
	}

	n, err := export.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d bytes at %d with tag %d: %s\n", n.Bytes, n.Offset, n.Tag, memory[n.Offset:n.Offset+n.Bytes])
	if err := export.Unexport(ctx); err != nil {
		panic(err)
	}
	fmt.Println(i.Send(ctx, []byte("too late"), 0, vmmc.SendOptions{}))
	// Output:
	// 5 bytes at 100 with tag 1: hello
	// vmmc: unexported
}
