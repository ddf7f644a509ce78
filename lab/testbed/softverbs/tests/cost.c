/* SOFTVERBS_REGISTER and SOFTVERBS_DEREGISTER: what calls cost, in processor time of the thread. */
#include "check.h"

#define MS 1000000l

static long thread_ns(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void costs(struct ibv_pd *pd, char *p, size_t len, long registering, long deregistering)
{
	long begin = thread_ns();
	struct ibv_mr *m = ibv_reg_mr(pd, p, len, IBV_ACCESS_LOCAL_WRITE);

	CHECK(m && thread_ns() - begin >= registering);
	begin = thread_ns();
	CHECK(!ibv_dereg_mr(m) && thread_ns() - begin >= deregistering);
}

/* A program without a device, and a line on stderr that says why. */
static void is_refused(const char *value)
{
	char says[512] = "";
	int ends[2], err = dup(2);
	struct ibv_device **l;

	setenv("SOFTVERBS_REGISTER", value, 1);
	CHECK(err >= 0 && !pipe(ends) && dup2(ends[1], 2) == 2);
	l = ibv_get_device_list(NULL);
	CHECK(dup2(err, 2) == 2 && !l && errno == EINVAL);
	CHECK(read(ends[0], says, sizeof(says) - 1) > 0);
	CHECK(strstr(says, "SOFTVERBS_REGISTER=") && strstr(says, value) && strchr(says, '\n') == strrchr(says, '\n'));
	close(ends[0]), close(ends[1]), close(err);
}

int main(void)
{
	char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_context *c;
	struct ibv_pd *pd;
	long begin;

	is_refused("16000");
	is_refused("16000,");
	is_refused("16000,-1");
	is_refused("16000,250us");
	is_refused("99999999999999999999,250");
	setenv("SOFTVERBS_REGISTER", "20000000,10000000", 1);
	setenv("SOFTVERBS_DEREGISTER", "10000000,0", 1);
	c = open_device();
	CHECK((pd = ibv_alloc_pd(c)));
	costs(pd, p, 4096, 30 * MS, 10 * MS);
	costs(pd, p + 4000, 200, 40 * MS, 10 * MS); /* two pages */
	begin = thread_ns();
	CHECK(!ibv_reg_mr(pd, p, 8 << 20, IBV_ACCESS_ON_DEMAND)); /* at once: 20 seconds otherwise */
	CHECK(thread_ns() - begin < 20000 * MS);
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(c));
	puts("ok    cost");
	return 0;
}
