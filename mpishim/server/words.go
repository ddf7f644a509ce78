package main

/*
#include "bind.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// The words that C threads and Go share are C's: plain fields of structures in
// shared.h, which no type of go.uber.org/atomic can stand for. This file alone
// uses sync/atomic, on them; C uses __atomic on the same words.

// word32 is a uint32_t that C shares.
type word32 uint32

func at32(p *C.uint32_t) *word32 { return (*word32)(p) }

func (w *word32) Load() uint32   { return atomic.LoadUint32((*uint32)(w)) }
func (w *word32) Store(v uint32) { atomic.StoreUint32((*uint32)(w), v) }
func (w *word32) CompareAndSwap(old, new uint32) bool {
	return atomic.CompareAndSwapUint32((*uint32)(w), old, new)
}

func (w *word32) Add(n uint32) { atomic.AddUint32((*uint32)(w), n) }

// word64 is a uint64_t that C shares.
type word64 uint64

func at64(p *C.uint64_t) *word64 { return (*word64)(p) }

func (w *word64) Load() uint64   { return atomic.LoadUint64((*uint64)(w)) }
func (w *word64) Store(v uint64) { atomic.StoreUint64((*uint64)(w), v) }
func (w *word64) Add(n uint64)   { atomic.AddUint64((*uint64)(w), n) }
func (w *word64) CompareAndSwap(old, new uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(w), old, new)
}

// int32Of reads an int32_t that C shares.
func int32Of(p *C.int32_t) int { return int(atomic.LoadInt32((*int32)(p))) }

// pointer is a pointer that C shares, to memory outside the Go heap.
type pointer struct{ to unsafe.Pointer }

// pointerAt takes where a structure of C has a pointer of any type.
func pointerAt(p unsafe.Pointer) *pointer { return (*pointer)(p) }

func (p *pointer) Load() unsafe.Pointer   { return atomic.LoadPointer(&p.to) }
func (p *pointer) Store(v unsafe.Pointer) { atomic.StorePointer(&p.to, v) }
