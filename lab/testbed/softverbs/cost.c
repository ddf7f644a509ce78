/*
 * What a registration and a deregistration cost at least. SOFTVERBS_REGISTER and SOFTVERBS_DEREGISTER are nanoseconds
 * of the calling thread's processor time, and nanoseconds for each page of 4 KiB: "16000,250". Pinning counts, and the
 * rest is spent in clock_gettime(2), so in the kernel, as a driver spends it. No lock is held meanwhile.
 */
#include "sv.h"
#include <ctype.h>
#include <time.h>

struct sv_cost sv_register_cost, sv_deregister_cost;

/* One number without a sign, which strtoull(3) would take. */
static int number(const char **at, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return 0;
	errno = 0;
	*n = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

static int read_cost(const char *variable, struct sv_cost *c)
{
	const char *text = getenv(variable), *at = text;

	*c = (struct sv_cost){0};
	if (!text || !*text || (number(&at, &c->ns) && *at++ == ',' && number(&at, &c->page_ns) && !*at))
		return 0;
	sv_say("%s=%s: it takes two numbers of nanoseconds, such as 16000,250: for each call, and for each page", variable,
	       text);
	return EINVAL;
}

int sv_cost_open(void)
{
	int err = read_cost("SOFTVERBS_REGISTER", &sv_register_cost);

	return err ? err : read_cost("SOFTVERBS_DEREGISTER", &sv_deregister_cost);
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is_free(const struct sv_cost *c) { return !c->ns && !c->page_ns; }

uint64_t sv_cost_begin(const struct sv_cost *c) { return is_free(c) ? 0 : thread_ns(); }

void sv_cost_pay(const struct sv_cost *c, uint64_t begin, uint64_t addr, uint64_t len)
{
	uint64_t pages = ((addr + len - 1) >> 12) - (addr >> 12) + 1;

	if (!is_free(c))
		while (thread_ns() - begin < c->ns + pages * c->page_ns)
			;
}
