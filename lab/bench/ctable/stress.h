/* C threads that use a cache, for the tests: also under ThreadSanitizer and AddressSanitizer. */
#include "ctable.h"

struct ct_run {
	uintptr_t cache;
	char *base;
	unsigned pages;
	uint32_t *alive; /* by handle: the provider holds the registration */
	int threads;
	unsigned long iterations;
	unsigned seconds; /* after which ct_first ends at the latest */
};

struct ct_result {
	unsigned long outcomes[4], failed;
	unsigned long stale; /* references to a registration that was gone */
	unsigned long wrong; /* to one that does not cover the request */
};

struct ct_result ct_stress(struct ct_run run);
struct ct_result ct_race(struct ct_run run);
int ct_give_up(uintptr_t cache, char *page);
int ct_pipeline(uintptr_t cache, char *buffer, size_t len, size_t piece);
