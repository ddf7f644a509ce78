/* What the files of libpinwheel-api.so have in common; see pinwheel.h. */
#ifndef PINWHEEL_API_H
#define PINWHEEL_API_H

#include <errno.h>
#include <pinwheel.h>

#include "core.h"

/* Rights that the cache knows how to share. */
#define API_SHAREABLE \
	(PINWHEEL_LOCAL_WRITE | PINWHEEL_REMOTE_WRITE | PINWHEEL_REMOTE_READ | PINWHEEL_REMOTE_ATOMIC | PINWHEEL_RELAXED_ORDERING)

struct pinwheel_domain {
	uint32_t place;   /* in pw.domain; PW_DOMAINS: there was none, all uses are plain */
	uint32_t forks;   /* api_forks when it was opened */
	uint64_t tag;     /* of its regions, as the helper sees them */
	struct pinwheel_ops ops;
	void *arg;
	uint32_t closing; /* atomic: nothing new */
	uint64_t plain;   /* atomic: plain uses that there were */
	uint64_t held;    /* atomic: plain uses that are not released */
};

/* struct pinwheel_use, as we see it. */
struct api_use {
	uint32_t lkey, rkey;
	void *handle;
	struct pinwheel_domain *domain; /* NULL: holds nothing */
	struct pwt_ref ref;             /* desc NULL: a plain use */
	uint64_t start, end;
	uint64_t start_ticks; /* 0: not for the helper */
	uint64_t forks;       /* api_forks when it was acquired */
	const struct pw_site *site;
};
_Static_assert(sizeof(struct api_use) <= sizeof(struct pinwheel_use), "fits");
_Static_assert(offsetof(struct api_use, handle) == offsetof(struct pinwheel_use, handle), "the public part");

/* domain.c: how many forks this process is away from the one that was started: what its parents hold is theirs. */
extern uint64_t api_forks;

/* domain.c: past the cache, in this thread. 0, or a negative errno. */
int api_plain_acquire(struct pinwheel_domain *d, const void *addr, size_t len, unsigned access, struct api_use *u);
int api_plain_release(struct pinwheel_domain *d, struct api_use *u);

/* domain.c: the callbacks of the transport, as the Go side calls them */
int api_register(void *pd, void *addr, size_t bytes, unsigned access, struct pw_region *made);
int api_deregister(void *pd, void *handle);

/* domain.c: how many domains are open in this process. */
unsigned api_domains(void);
void api_domains_forget(void); /* in the child of a fork */

static inline int api_is_managed(const struct pinwheel_domain *d) { return pw_is_managing() && pw_likely(d->place < PW_DOMAINS); }

#endif
