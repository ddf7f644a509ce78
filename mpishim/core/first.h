/* First uses, which the thread that needs them registers by itself; see first.c. */
#ifndef PINWHEEL_FIRST_H
#define PINWHEEL_FIRST_H

#include "process.h"

/* Registers the whole pages of a first use in this thread, and returns 0 and a counted reference. Else -1: the
 * server has to be asked. */
int pw_register_first(struct pw_thread *t, uint32_t domain, uint64_t addr, uint64_t bytes, uint32_t access,
		const struct pw_call_id *call, struct pwt_ref *ref);

#endif
