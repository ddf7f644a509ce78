/* C threads that use a cache, for the tests: also under ThreadSanitizer and AddressSanitizer. */
#include "../../cfront.h"

struct ctest_run {
	pwc_cache cache;
	char *base;
	unsigned pages;
	uint32_t *alive; /* by handle: the provider holds the registration */
	int threads;
	unsigned long iterations;
};

struct ctest_result {
	unsigned long outcomes[4], failed;
	unsigned long stale; /* references to a registration that was gone */
	unsigned long wrong; /* to one that does not cover the request */
};

struct ctest_result ctest_stress(struct ctest_run run);
struct ctest_result ctest_race(struct ctest_run run);
int ctest_give_up(pwc_cache cache, char *page);
int ctest_pipeline(pwc_cache cache, char *buffer, size_t len, size_t piece);
