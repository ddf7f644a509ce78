/* First uses, which C threads register by themselves (regcache/grant.h), for the tests. */
#include "stress.h"
#include "grant.h"

/* Takes a grant for whole pages; NULL if the slow path has to look. */
struct pwt_grant *ct_take(struct ct_thread *t, char *addr, size_t len);
struct pwt_ref ct_made(struct ct_thread *t, struct pwt_grant *f, uint64_t handle);
void ct_failed(struct ct_thread *t, struct pwt_grant *f);
int ct_hit(struct ct_thread *t, char *addr, size_t len, struct pwt_ref *ref);
void ct_drop(struct ct_thread *t, struct pwt_ref ref);

enum { CT_PAGES = 64 };

/* From first.go: registers with the provider; 0 if it refuses. */
uint64_t ct_register(uintptr_t cache, void *addr, size_t len);

/*
 * What changes of mappings look like. Each page has a version, and programs learn of a new one a little later. A
 * registration has the versions of its pages at the time when it was made, by handle.
 */
struct ct_versions {
	uint32_t now[CT_PAGES];
	uint32_t told[CT_PAGES];
	uint32_t registered[][CT_PAGES];
};

struct ct_firsts {
	struct ct_result got;
	unsigned long first; /* uses that a thread has registered by itself */
	unsigned long old;   /* references to a registration older than a change that preceded the request */
};

struct ct_firsts ct_first(struct ct_run run, struct ct_versions *versions);
