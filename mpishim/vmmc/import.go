package main

/*
#include "objects.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"pinwheel/comm/vmmc"
	"pinwheel/mem"
)

//export pinwheel_vmmc_import_memory
func pinwheel_vmmc_import_memory(
	node *C.pinwheel_vmmc_node, id C.uint32_t, exporter *C.vmmc_text, timeout C.int, to **C.pinwheel_vmmc_import,
) C.int {
	if node == nil || exporter == nil || to == nil {
		return invalid()
	}
	ctx, cancel := within(timeout)
	defer cancel()
	i, err := of[*vmmc.Node](node).Import(ctx, uint32(id), text(exporter))
	if err == nil {
		*to = newObject[C.pinwheel_vmmc_import](i)
	}
	return status(err)
}

//export pinwheel_vmmc_unimport
func pinwheel_vmmc_unimport(i *C.pinwheel_vmmc_import) C.int {
	if i == nil {
		return invalid()
	}
	of[*vmmc.Import](i).Unimport()
	freeObject(i)
	return 0
}

//export pinwheel_vmmc_import_query
func pinwheel_vmmc_import_query(i *C.pinwheel_vmmc_import, info *C.pinwheel_vmmc_import_info) C.int {
	if i == nil || info == nil || info.size < C.vmmc_import_info_0 {
		return invalid()
	}
	in := of[*vmmc.Import](i)
	info.bytes, info.shared, info.ended = C.uint64_t(in.Bytes()), 0, code(in.Err())
	if in.Shared() {
		info.shared = 1
	}
	return 0
}

//export pinwheel_vmmc_proxy
func pinwheel_vmmc_proxy(i *C.pinwheel_vmmc_import, address *unsafe.Pointer) C.int {
	if i == nil || address == nil {
		return invalid()
	}
	r, err := of[*vmmc.Import](i).Proxy()
	if err == nil {
		*(*mem.Addr)(unsafe.Pointer(address)) = r.Start
	}
	return status(err)
}

func sendOptions(flags C.uint, tag C.uint16_t) (o vmmc.SendOptions, ok bool) {
	o = vmmc.SendOptions{Notify: flags&C.PINWHEEL_VMMC_NOTIFY != 0, Tag: uint16(tag)}
	return o, flags&^C.PINWHEEL_VMMC_NOTIFY == 0
}

// source is the memory of a message. More than there can be is more than any export has.
func source(src C.vmmc_bytes, bytes C.size_t) ([]byte, error) {
	b, err := memoryOf(unsafe.Pointer(src), bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", vmmc.ErrBounds, err)
	}
	return b, nil
}

//export pinwheel_vmmc_send
func pinwheel_vmmc_send(
	i *C.pinwheel_vmmc_import, src C.vmmc_bytes, bytes C.size_t, offset C.uint64_t, flags C.uint, tag C.uint16_t,
	timeout C.int,
) C.int {
	o, ok := sendOptions(flags, tag)
	if i == nil || src == nil && bytes > 0 || !ok {
		return invalid()
	}
	b, err := source(src, bytes)
	if err != nil {
		return status(err)
	}
	in := of[*vmmc.Import](i)
	if timeout < 0 || in.Shared() && !o.Notify { // it waits for nothing: no timer
		return status(in.Send(context.Background(), b, uint64(offset), o))
	}
	ctx, cancel := within(timeout)
	defer cancel()
	return status(in.Send(ctx, b, uint64(offset), o))
}

//export pinwheel_vmmc_send_to
func pinwheel_vmmc_send_to(
	node *C.pinwheel_vmmc_node, src C.vmmc_bytes, bytes C.size_t, address C.vmmc_bytes, flags C.uint, tag C.uint16_t,
	timeout C.int,
) C.int {
	o, ok := sendOptions(flags, tag)
	if node == nil || src == nil && bytes > 0 || !ok {
		return invalid()
	}
	b, err := source(src, bytes)
	if err != nil {
		return status(err)
	}
	ctx, cancel := within(timeout)
	defer cancel()
	return status(of[*vmmc.Node](node).SendTo(ctx, b, mem.Addr(uintptr(address)), o))
}

//export pinwheel_vmmc_send_start
func pinwheel_vmmc_send_start(
	i *C.pinwheel_vmmc_import, src C.vmmc_bytes, bytes C.size_t, offset C.uint64_t, flags C.uint, tag C.uint16_t,
	op **C.pinwheel_vmmc_op,
) C.int {
	o, ok := sendOptions(flags, tag)
	if i == nil || src == nil && bytes > 0 || op == nil || !ok {
		return invalid()
	}
	b, err := source(src, bytes)
	if err != nil {
		return status(err)
	}
	p, err := of[*vmmc.Import](i).SendAsync(b, uint64(offset), o)
	if err == nil {
		*op = newObject[C.pinwheel_vmmc_op](p)
	}
	return status(err)
}

//export pinwheel_vmmc_op_sent
func pinwheel_vmmc_op_sent(op *C.pinwheel_vmmc_op, timeout C.int) C.int {
	return reached(op, timeout, (*vmmc.Op).Sent)
}

//export pinwheel_vmmc_op_arrived
func pinwheel_vmmc_op_arrived(op *C.pinwheel_vmmc_op, timeout C.int) C.int {
	return reached(op, timeout, (*vmmc.Op).Acked)
}

func reached(op *C.pinwheel_vmmc_op, timeout C.int, state func(*vmmc.Op) <-chan struct{}) C.int {
	if op == nil {
		return invalid()
	}
	o := of[*vmmc.Op](op)
	select {
	case <-state(o): // whatever the timeout
		return status(o.Err())
	default:
	}
	ctx, cancel := within(timeout)
	defer cancel()
	select {
	case <-state(o):
		return status(o.Err())
	case <-ctx.Done():
		return status(ctx.Err())
	}
}

//export pinwheel_vmmc_op_free
func pinwheel_vmmc_op_free(op *C.pinwheel_vmmc_op) C.int {
	if op == nil {
		return invalid()
	}
	freeObject(op)
	return 0
}
