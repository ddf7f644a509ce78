package main

/*
#include "objects.h"
*/
import "C"

import (
	"context"
	"errors"
	"sync"
	"unsafe"

	"pinwheel/comm/vmmc"
)

//export pinwheel_vmmc_export_memory
func pinwheel_vmmc_export_memory(
	node *C.pinwheel_vmmc_node, id C.uint32_t, memory unsafe.Pointer, bytes C.size_t, who *C.vmmc_permissions,
	export **C.pinwheel_vmmc_export,
) C.int {
	if node == nil || memory == nil || bytes == 0 || export == nil {
		return invalid()
	}
	b, err := memoryOf(memory, bytes)
	if err != nil {
		return status(err)
	}
	var p vmmc.Permissions
	var o vmmc.ExportOptions
	if who != nil {
		who, ok := known(who, uintptr(who.size), C.vmmc_permissions_0)
		if !ok || who.uids == nil && who.n_uids > 0 || who.n_uids > maxListed {
			return invalid()
		}
		p.Peers = texts((**C.vmmc_text)(unsafe.Pointer(who.peers)))
		p.UIDs = unsafe.Slice((*uint32)(unsafe.Pointer(who.uids)), int(who.n_uids)) // Export clones it
		p.MaxImporters = int(who.max_importers)
		o.Queue, o.Coalesce = int(who.queue), who.coalesce != 0
	}
	e, err := of[*vmmc.Node](node).Export(uint32(id), b, p, o)
	if err == nil {
		*export = newObject[C.pinwheel_vmmc_export](&exported{Export: e})
	}
	return status(err)
}

// exported is an export with an Unexport that may go on by itself.
type exported struct {
	*vmmc.Export

	// mu protects what follows. It is a leaf.
	mu  sync.Mutex
	end *ending // nil: none of whose end no call has told
}

// ending is an Unexport that goes on.
type ending struct {
	over chan struct{}
	err  error
}

// unexport begins an Unexport, or joins one that a call has left.
func (e *exported) unexport(ctx context.Context) error {
	e.mu.Lock()
	end := e.end
	e.mu.Unlock()
	if end == nil {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		if err := e.Unexport(now); !errors.Is(err, context.Canceled) {
			return err
		}
		end = e.leave()
	}
	select {
	case <-end.over:
	case <-ctx.Done():
		select {
		case <-end.over:
		default:
			return ctx.Err()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end == end {
		e.end = nil // another call finds no export
	}
	return end.err
}

// leave lets an Unexport go on that was begun.
func (e *exported) leave() *ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.end == nil {
		end := &ending{over: make(chan struct{})}
		e.end = end
		go func() {
			end.err = e.Unexport(context.Background())
			if errors.Is(end.err, vmmc.ErrNotExported) { // it was quicker
				end.err = nil
			}
			close(end.over)
		}()
	}
	return e.end
}

//export pinwheel_vmmc_unexport
func pinwheel_vmmc_unexport(export *C.pinwheel_vmmc_export, timeout C.int) C.int {
	if export == nil {
		return invalid()
	}
	ctx, cancel := within(timeout)
	defer cancel()
	return status(of[*exported](export).unexport(ctx))
}

//export pinwheel_vmmc_export_free
func pinwheel_vmmc_export_free(export *C.pinwheel_vmmc_export) C.int {
	if export == nil {
		return invalid()
	}
	freeObject(export)
	return 0
}

func notification(to *C.pinwheel_vmmc_notification, n *vmmc.Notification) {
	*to = C.pinwheel_vmmc_notification{
		offset: C.uint64_t(n.Offset), bytes: C.uint64_t(n.Bytes), count: C.uint32_t(n.Count), tag: C.uint16_t(n.Tag),
	}
	room := (*[len(to.peer) - 1]byte)(unsafe.Pointer(&to.peer))
	copy(room[:], n.Peer)
}

//export pinwheel_vmmc_wait
func pinwheel_vmmc_wait(export *C.pinwheel_vmmc_export, timeout C.int, to *C.pinwheel_vmmc_notification) C.int {
	if export == nil || to == nil {
		return invalid()
	}
	ctx, cancel := within(timeout)
	defer cancel()
	n, err := of[*exported](export).Wait(ctx)
	if err == nil {
		notification(to, &n)
	}
	return status(err)
}

//export pinwheel_vmmc_handle
func pinwheel_vmmc_handle(export *C.pinwheel_vmmc_export, f C.vmmc_handler, arg unsafe.Pointer) C.int {
	if export == nil {
		return invalid()
	}
	if f == nil {
		of[*exported](export).Handle(nil)
		return 0
	}
	of[*exported](export).Handle(func(n vmmc.Notification) {
		var c C.pinwheel_vmmc_notification
		notification(&c, &n)
		C.vmmc_call_handler(f, arg, &c)
	})
	return 0
}

//export pinwheel_vmmc_block
func pinwheel_vmmc_block(export *C.pinwheel_vmmc_export, yes C.int) C.int {
	if export == nil {
		return invalid()
	}
	if e := of[*exported](export); yes != 0 {
		e.Block()
	} else {
		e.Unblock()
	}
	return 0
}

//export pinwheel_vmmc_discard
func pinwheel_vmmc_discard(export *C.pinwheel_vmmc_export, yes C.int) C.int {
	if export == nil {
		return invalid()
	}
	of[*exported](export).Discard(yes != 0)
	return 0
}

//export pinwheel_vmmc_fd
func pinwheel_vmmc_fd(export *C.pinwheel_vmmc_export) C.int {
	if export == nil {
		return invalid()
	}
	fd, err := of[*exported](export).FD()
	if err != nil {
		return status(err)
	}
	return C.int(fd)
}
