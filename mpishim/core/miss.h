/* Misses, first uses and late ones, which the thread that has them registers by itself; see miss.c. */
#ifndef PINWHEEL_MISS_H
#define PINWHEEL_MISS_H

#include "process.h"

/* Registers the whole pages of a request, or of the region that it belongs to, in this thread, and returns 0 and a
 * counted reference. Else -1: the server has to be asked. */
int pw_register_miss(struct pw_thread *t, uint32_t domain, uint64_t addr, uint64_t bytes, uint32_t access,
		const struct pw_call_id *call, struct pwt_ref *ref);

#endif
