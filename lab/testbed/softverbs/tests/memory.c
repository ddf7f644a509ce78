/* Device, protection domains, memory regions: pages are pinned, limits hold, rights are those of the mapping. */
#include "check.h"
#include <sys/syscall.h>
#include <linux/capability.h>

static void pinning(struct ibv_pd *pd)
{
	long before = status_kb("VmPin");
	struct region r = region(pd, 4 << 20, IBV_ACCESS_LOCAL_WRITE), s = region(pd, 4096, 0);
	struct ibv_mr *again = ibv_reg_mr(pd, r.p + 100, 5000, 0);

	CHECK(again && again->lkey != r.mr->lkey);
	CHECK(status_kb("VmPin") - before == (4 << 10) + 4 + 8);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dereg_mr(again));
	CHECK(!ibv_dereg_mr(s.mr));
	CHECK(!ibv_dereg_mr(r.mr));
	CHECK(status_kb("VmPin") == before);
}

static void rights(struct ibv_pd *pd)
{
	char *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long locked = status_kb("VmLck");
	struct ibv_mr *m, *n;

	CHECK(!ibv_reg_mr(pd, p, 8192, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	CHECK((m = ibv_reg_mr(pd, p, 8192, 0)));
	CHECK((n = ibv_reg_mr(pd, p + 4096, 4096, IBV_ACCESS_REMOTE_READ)));
	CHECK(status_kb("VmLck") - locked == 8);
	CHECK(!ibv_dereg_mr(m));
	CHECK(status_kb("VmLck") - locked == 4); /* of the other region */
	CHECK(!ibv_dereg_mr(n));
	CHECK(status_kb("VmLck") == locked);
	munmap(p, 8192);
	CHECK(!ibv_reg_mr(pd, p, 4096, 0) && errno == EFAULT);
	CHECK(!ibv_reg_mr(pd, p, 4096, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(!ibv_reg_mr(pd, p, 0, 0) && errno == EINVAL);
	CHECK(!ibv_reg_mr(pd, p, 4096, IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP);
	CHECK(status_kb("VmPin") == 0);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	CHECK(!syscall(SYS_capset, &h, none));
}

/* The account is the process's own, against RLIMIT_MEMLOCK. */
static void limit(struct ibv_pd *pd)
{
	struct rlimit l = {1 << 20, 1 << 20}, zero = {0, 0};
	char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *m;

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &l));
	drop_capabilities();
	CHECK(!ibv_reg_mr(pd, p, 4 << 20, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	CHECK((m = ibv_reg_mr(pd, p, 896 << 10, IBV_ACCESS_LOCAL_WRITE))); /* the rings take some of the limit */
	CHECK(!ibv_reg_mr(pd, p, 256 << 10, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM);
	CHECK(!ibv_dereg_mr(m));
	CHECK((m = ibv_reg_mr(pd, p, 4096, IBV_ACCESS_LOCAL_WRITE)));
	CHECK(!ibv_dereg_mr(m));
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &zero));
	CHECK(!ibv_reg_mr(pd, p, 4096, 0) && errno == EPERM);
}

int main(void)
{
	struct ibv_context *c = open_device();
	struct ibv_device_attr a;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_pd *pd;

	CHECK(!ibv_query_device(c, &a) && a.phys_port_cnt == 1 && a.max_mr > 1000);
	CHECK(!ibv_query_port(c, 1, &port) && port.state == IBV_PORT_ACTIVE && port.lid);
	CHECK(ibv_query_port(c, 2, &port) == EINVAL);
	CHECK(!ibv_query_gid(c, 1, 0, &gid) && gid.raw[0] == 0xfe);
	CHECK((pd = ibv_alloc_pd(c)));
	pinning(pd);
	rights(pd);
	limit(pd);
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(c));
	puts("ok    memory");
	return 0;
}
