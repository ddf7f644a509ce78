package main

/*
#include "objects.h"
*/
import "C"

import (
	"math"
	"time"
	"unsafe"

	"pinwheel/comm/vmmc"
)

// maxUs is the longest time in microseconds that Go knows.
const maxUs = math.MaxInt64 / int64(time.Microsecond)

//export pinwheel_vmmc_map
func pinwheel_vmmc_map(
	i *C.pinwheel_vmmc_import, offset C.uint64_t, local unsafe.Pointer, bytes C.size_t, intervalUs C.int64_t, copy C.int,
	mapping **C.pinwheel_vmmc_mapping,
) C.int {
	if i == nil || local == nil || bytes == 0 || mapping == nil || int64(intervalUs) > maxUs {
		return invalid()
	}
	b, err := memoryOf(local, bytes)
	if err != nil {
		return status(err)
	}
	o := vmmc.MapOptions{Copy: copy != 0, Interval: time.Duration(max(intervalUs, -1)) * time.Microsecond}
	m, err := of[*vmmc.Import](i).Map(uint64(offset), b, o)
	if err == nil {
		*mapping = newObject[C.pinwheel_vmmc_mapping](m)
	}
	return status(err)
}

//export pinwheel_vmmc_flush
func pinwheel_vmmc_flush(mapping *C.pinwheel_vmmc_mapping, timeout C.int) C.int {
	if mapping == nil {
		return invalid()
	}
	ctx, cancel := within(timeout)
	defer cancel()
	return status(of[*vmmc.Mapping](mapping).Flush(ctx))
}

//export pinwheel_vmmc_store
func pinwheel_vmmc_store(mapping *C.pinwheel_vmmc_mapping, offset, word C.uint64_t) C.int {
	if mapping == nil {
		return invalid()
	}
	return status(of[*vmmc.Mapping](mapping).Store(uint64(offset), uint64(word)))
}

//export pinwheel_vmmc_publish
func pinwheel_vmmc_publish(mapping *C.pinwheel_vmmc_mapping, offset, word C.uint64_t, timeout C.int) C.int {
	if mapping == nil {
		return invalid()
	}
	ctx, cancel := within(timeout)
	defer cancel()
	return status(of[*vmmc.Mapping](mapping).Publish(ctx, uint64(offset), uint64(word)))
}

//export pinwheel_vmmc_unmap
func pinwheel_vmmc_unmap(mapping *C.pinwheel_vmmc_mapping) C.int {
	if mapping == nil {
		return invalid()
	}
	err := of[*vmmc.Mapping](mapping).Unmap()
	if err == nil {
		freeObject(mapping)
	}
	return status(err)
}
