/* Declarations that the files of libpinwheel-api.so share; see pinwheel.h. */
#ifndef PINWHEEL_API_H
#define PINWHEEL_API_H

#include <errno.h>
#include <pinwheel.h>

#include "process.h"

/* Rights that the cache knows how to share. */
#define API_SHAREABLE \
	(PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_WRITE | PINWHEEL_REMOTE_READ | PINWHEEL_REMOTE_ATOMIC | \
	 PINWHEEL_RELAXED_ORDERING)

struct pinwheel_domain {
	uint32_t place;   /* in pw.domain; PW_DOMAINS if none was free, and every use registers for itself */
	uint32_t forks;   /* api_forks when it was opened */
	uint32_t tag;     /* pw_domain_tag */
	struct pinwheel_ops ops;
	void *arg;
	uint32_t closing; /* atomic: nothing new */
	uint64_t plain;   /* atomic: uses that were registered past the cache */
	uint64_t held;    /* atomic: those that are not released */
};

/* struct pinwheel_use, as we see it. */
struct api_use {
	uint32_t lkey, rkey;
	void *handle;
	struct pinwheel_domain *domain; /* NULL if the use holds nothing */
	struct pwt_ref ref;             /* desc is NULL if it was registered past the cache */
	uint64_t start, end;
	uint64_t start_ticks; /* 0 if the helper does not hear of this use */
	uint64_t forks;       /* api_forks when it was acquired */
	const struct pw_site *site;
};
_Static_assert(sizeof(struct api_use) <= sizeof(struct pinwheel_use), "fits");
_Static_assert(offsetof(struct api_use, handle) == offsetof(struct pinwheel_use, handle), "the public part");

/* domain.c: how many forks lie between this process and the first one. What a parent has acquired
 * stays the parent's. */
extern uint64_t api_forks;

/* domain.c: register past the cache, in this thread. Both return 0 or a negative errno. */
int api_plain_acquire(struct pinwheel_domain *d, const void *addr, size_t len, unsigned access, struct api_use *u);
int api_plain_release(struct pinwheel_domain *d, struct api_use *u);

/* domain.c: call the callbacks of the transport for the Go side. Both return 0 or an errno. */
int api_register(void *pd, void *addr, size_t bytes, unsigned access, struct pw_region *made);
int api_deregister(void *pd, void *handle);

/* domain.c: how many domains are open in this process. */
unsigned api_domains(void);
void api_domains_forget(void); /* in the child of a fork */

static inline int api_is_memory(const void *addr, size_t len)
{
	return len && (uintptr_t)addr + len > (uintptr_t)addr && (uintptr_t)addr + len <= UINTPTR_MAX - pw.page_mask;
}

static inline int api_is_managed(const struct pinwheel_domain *d)
{
	return pw_is_managing() && pw_likely(d->place < PW_DOMAINS);
}

#endif
