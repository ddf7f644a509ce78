//go:build fabric

#define _GNU_SOURCE
#include "fabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../../mpishim/include/pinwheel_watch.h"

#define VERSION FI_VERSION(1, 17)
#define LOCAL (FI_READ | FI_WRITE)
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* The two ends of a connection within the process. */
struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	fi_addr_t peer;
};

struct fabric {
	struct fid_mem_monitor *monitor;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct end near, far;
	void *memory; /* of the far end */
	size_t bytes;
	struct fabric_mr memory_mr;
};

const char *fabric_error(int error) { return fi_strerror(-error); }

void *fabric_far(struct fabric *f) { return f->memory; }

static int choose_monitor(struct fabric *f, const char *monitor, const char *mechanism)
{
	pinwheel_watch_options options = {.size = sizeof options, .mechanism = mechanism};
	int error;

	if (strcmp(monitor, "pinwheel"))
		return setenv("FI_MR_CACHE_MONITOR", monitor, 1) ? -FI_ENOMEM : 0;
	if ((error = pinwheel_watch_monitor_open(&options, &f->monitor)))
		return error;
	return fi_import(VERSION, "mr_cache", NULL, 0, 0, &f->monitor->fid, NULL);
}

static int open_domain(struct fabric *f)
{
	struct fi_info *hints = fi_allocinfo();
	int error;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	error = fi_getinfo(VERSION, NULL, NULL, 0, hints, &f->info);
	fi_freeinfo(hints);
	if (!error)
		error = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (!error)
		error = fi_domain(f->fabric, f->info, &f->domain, NULL);
	return error;
}

static int open_end(struct fabric *f, struct end *e)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 64};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	int error;

	if ((error = fi_endpoint(f->domain, f->info, &e->ep, NULL)) || (error = fi_cq_open(f->domain, &cq, &e->cq, NULL)) ||
	    (error = fi_av_open(f->domain, &av, &e->av, NULL)) ||
	    (error = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV)) || (error = fi_ep_bind(e->ep, &e->av->fid, 0)))
		return error;
	return fi_enable(e->ep);
}

static int meet(struct end *a, struct end *b)
{
	char name[256];
	size_t n = sizeof name;
	int error = fi_getname(&b->ep->fid, name, &n);

	if (error)
		return error;
	return fi_av_insert(a->av, name, 1, &a->peer, 0, NULL) == 1 ? 0 : -FI_EOTHER;
}

int fabric_open(const char *monitor, const char *mechanism, size_t far_bytes, struct fabric **to)
{
	struct fabric *f = calloc(1, sizeof *f);
	int error;

	if (!f)
		return -FI_ENOMEM;
	*to = f;
	f->bytes = far_bytes;
	if ((error = choose_monitor(f, monitor, mechanism)) || (error = open_domain(f)) || (error = open_end(f, &f->near)) ||
	    (error = open_end(f, &f->far)) || (error = meet(&f->near, &f->far)) || (error = meet(&f->far, &f->near)))
		return error;
	f->memory = mmap(NULL, far_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->memory == MAP_FAILED)
		return -FI_ENOMEM;
	return fabric_register(f, f->memory, far_bytes, &f->memory_mr);
}

static void close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void fabric_close(struct fabric *f)
{
	struct end *ends[] = {&f->near, &f->far};

	if (!f)
		return;
	if (f->memory_mr.mr)
		fabric_deregister(&f->memory_mr);
	for (int i = 0; i < 2; i++) {
		close_fid(ends[i]->ep ? &ends[i]->ep->fid : NULL);
		close_fid(ends[i]->cq ? &ends[i]->cq->fid : NULL);
		close_fid(ends[i]->av ? &ends[i]->av->fid : NULL);
	}
	close_fid(f->domain ? &f->domain->fid : NULL);
	close_fid(f->fabric ? &f->fabric->fid : NULL);
	if (f->info)
		fi_freeinfo(f->info);
	if (f->monitor)
		pinwheel_watch_monitor_close(f->monitor);
	free(f);
}

int fabric_register(struct fabric *f, const void *address, size_t bytes, struct fabric_mr *to)
{
	struct fid_mr *mr;
	int error = fi_mr_reg(f->domain, address, bytes, LOCAL | REMOTE, 0, 0, 0, &mr, NULL);

	if (error)
		return error;
	*to = (struct fabric_mr){mr, fi_mr_key(mr)};
	return 0;
}

int fabric_deregister(struct fabric_mr *mr) { return fi_close(&((struct fid_mr *)mr->mr)->fid); }

double fabric_time(struct fabric *f, const void *address, size_t bytes, int n)
{
	struct timespec a, b;
	struct fabric_mr mr;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < n; i++)
		if (fabric_register(f, address, bytes, &mr) || fabric_deregister(&mr))
			return -1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n;
}

/* Both ends go on only while somebody looks at their queues. The process that judges has a deadline. */
static int finish(struct fabric *f, struct fi_context *context)
{
	for (;;) {
		struct fi_cq_entry done;
		struct fi_cq_err_entry failed = {0};
		ssize_t n = fi_cq_read(f->near.cq, &done, 1);

		if (n == 1 && done.op_context == context)
			return 0;
		if (n == -FI_EAVAIL)
			return fi_cq_readerr(f->near.cq, &failed, 0) == 1 ? -failed.err : -FI_EOTHER;
		if (n < 0 && n != -FI_EAGAIN)
			return (int)n;
		n = fi_cq_read(f->far.cq, &done, 1);
		if (n < 0 && n != -FI_EAGAIN)
			return (int)n;
	}
}

typedef ssize_t (*transfer)(struct fid_ep *ep, const void *address, size_t bytes, void *desc, struct fabric *f, void *context);

static ssize_t start_write(struct fid_ep *ep, const void *address, size_t bytes, void *desc, struct fabric *f, void *context)
{
	return fi_write(ep, address, bytes, desc, f->near.peer, (uintptr_t)f->memory, f->memory_mr.key, context);
}

static ssize_t start_read(struct fid_ep *ep, const void *address, size_t bytes, void *desc, struct fabric *f, void *context)
{
	return fi_read(ep, (void *)address, bytes, desc, f->near.peer, (uintptr_t)f->memory, f->memory_mr.key, context);
}

static int move(struct fabric *f, transfer start, const void *address, size_t bytes, const struct fabric_mr *mr)
{
	static struct fi_context context; /* it outlives a transfer that failed */
	struct fi_cq_entry done;
	ssize_t error;

	while ((error = start(f->near.ep, address, bytes, fi_mr_desc(mr->mr), f, &context)) == -FI_EAGAIN) {
		fi_cq_read(f->near.cq, &done, 0);
		fi_cq_read(f->far.cq, &done, 0);
	}
	return error ? (int)error : finish(f, &context);
}

int fabric_write(struct fabric *f, const void *address, size_t bytes, const struct fabric_mr *mr)
{
	return move(f, start_write, address, bytes, mr);
}

int fabric_read(struct fabric *f, void *address, size_t bytes, const struct fabric_mr *mr)
{
	return move(f, start_read, address, bytes, mr);
}
