/* Reports to the helper what registrations of the transport were used for. After a hit this makes no system call,
 * allocates nothing and takes no lock. */
#ifndef PINWHEEL_REPORT_H
#define PINWHEEL_REPORT_H

#include "mr.h"
#include "release.h"
#include "thread.h"

/* Whether this use was reported before. A transport that repeats one send registers its buffer over and over. */
static inline int pw_was_reported(struct pw_thread *t, uint64_t region, uint64_t seq)
{
	unsigned i = (unsigned)(region * 0x9e3779b97f4a7c15ull >> 58); /* PW_REPORTED is 2^6 */

	if (t->reported[i].region == region && t->reported[i].seq == seq)
		return 1;
	t->reported[i].region = region;
	t->reported[i].seq = seq;
	return 0;
}

/* Reports a use of a region, which key tells from those of others. */
static inline void pw_report(struct pw_thread *t, const struct pw_mr_state *r, uint64_t key, uint64_t region,
			     uint32_t pages)
{
	uint64_t start = (uint64_t)r->mr.addr;

	if (pw_was_reported(t, key, r->call.seq)) {
		pw_add(&t->repeated, 1);
		return;
	}
	pw_report_use(t, region, pages, start, start + r->mr.length, r->start_ticks, r->call.site, (uint32_t)r->call.op);
}

/* Reports a use past the cache: its address stands for the region until that has an ID. */
static inline void pw_report_early(struct pw_thread *t, const struct pw_mr_state *r)
{
	uint64_t start = (uint64_t)r->mr.addr, end = start + r->mr.length;
	uint64_t bytes = ((end + pw.page_mask) & ~pw.page_mask) - (start & ~pw.page_mask);

	pw_report(t, r, PW_EVENT_EARLY | start, PW_EVENT_EARLY | pw_tagged(r->domain, r->access),
		  (uint32_t)(bytes / (pw.page_mask + 1)));
}

#endif
