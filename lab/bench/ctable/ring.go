package ctable

/*
#include <stdlib.h>
#include "ring.h"

static struct pw_ring *ct_ring(void) { return aligned_alloc(_Alignof(struct pw_ring), sizeof(struct pw_ring)); }

static void ct_push(struct pw_ring *r, uint64_t region)
{
	struct pw_event *e = pw_ring_next(r);

	if (!e)
		return;
	e->region = region;
	e->start = ~region;
	pw_ring_push(r);
}
*/
import "C"

import (
	"unsafe"

	"pinwheel/queue"
)

// event is one of a ring, which tests can't name.
type event = C.struct_pw_event

// ring is a DQ that C code fills, outside the Go heap.
type ring struct {
	c *C.struct_pw_ring
	queue.Consumer[event]
}

func newRing() ring {
	r := C.ct_ring()
	*r = C.struct_pw_ring{}
	slots := (*[C.PW_RING]queue.Slot[event])(unsafe.Pointer(&r.slots))
	return ring{r, queue.NewConsumer(slots[:], (*uint64)(&r.tail))}
}

func (r ring) free() { C.free(unsafe.Pointer(r.c)) }

// push adds an event of a region, as a C thread does.
func (r ring) push(region uint64) { C.ct_push(r.c, C.uint64_t(region)) }
