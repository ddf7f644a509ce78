//go:build linux && cgo

#include "ibv.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* The library's symbols; those marked optional came with later releases. */
static struct {
	struct v_device **(*get_device_list)(int *);
	void (*free_device_list)(struct v_device **);
	const char *(*get_device_name)(struct v_device *);
	struct v_context *(*open_device)(struct v_device *);
	int (*close_device)(struct v_context *);
	int (*query_device)(struct v_context *, struct v_device_attr *);
	int (*query_port)(struct v_context *, uint8_t, struct v_port_attr *);
	int (*query_gid)(struct v_context *, uint8_t, int, union v_gid *);
	struct v_pd *(*alloc_pd)(struct v_context *);
	int (*dealloc_pd)(struct v_pd *);
	struct v_mr *(*reg_mr)(struct v_pd *, void *, size_t, int);
	struct v_mr *(*reg_mr_iova2)(struct v_pd *, void *, size_t, uint64_t, unsigned);	     /* optional: v28 */
	int (*dereg_mr)(struct v_mr *);
	struct v_comp_channel *(*create_comp_channel)(struct v_context *);
	int (*destroy_comp_channel)(struct v_comp_channel *);
	struct v_cq *(*create_cq)(struct v_context *, int, void *, struct v_comp_channel *, int);
	int (*destroy_cq)(struct v_cq *);
	int (*get_cq_event)(struct v_comp_channel *, struct v_cq **, void **);
	void (*ack_cq_events)(struct v_cq *, unsigned);
	struct v_qp *(*create_qp)(struct v_pd *, struct v_qp_init_attr *);
	int (*destroy_qp)(struct v_qp *);
	int (*modify_qp)(struct v_qp *, struct v_qp_attr *, int);
} lib;

static const struct {
	const char *name;
	void **slot;
	int optional;
} symbols[] = {
#define NEED(f) { "ibv_" #f, (void **)&lib.f, 0 }
#define WANT(f) { "ibv_" #f, (void **)&lib.f, 1 }
	NEED(get_device_list), NEED(free_device_list), NEED(get_device_name), NEED(open_device),
	NEED(close_device), NEED(query_device), NEED(query_port), NEED(query_gid),
	NEED(alloc_pd), NEED(dealloc_pd),
	NEED(reg_mr), WANT(reg_mr_iova2), NEED(dereg_mr),
	NEED(create_comp_channel), NEED(destroy_comp_channel), NEED(create_cq), NEED(destroy_cq),
	NEED(get_cq_event), NEED(ack_cq_events), NEED(create_qp), NEED(destroy_qp), NEED(modify_qp),
};

const char *v_load(void)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	size_t i;

	if (!handle)
		return dlerror();
	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		*symbols[i].slot = dlsym(handle, symbols[i].name);
		if (!*symbols[i].slot && !symbols[i].optional)
			return dlerror();
	}
	return NULL;
}

/* Most calls return the errno; cgo reads it from errno. */
static int result(int err)
{
	if (err == 0)
		return 0;
	if (err > 0)
		errno = err;
	return -1;
}

struct v_device **v_get_device_list(int *n) { return lib.get_device_list(n); }
void v_free_device_list(struct v_device **list) { lib.free_device_list(list); }
const char *v_get_device_name(struct v_device *device) { return lib.get_device_name(device); }
struct v_device *v_device_at(struct v_device **list, int i) { return list[i]; }
struct v_context *v_open_device(struct v_device *device) { return lib.open_device(device); }
int v_close_device(struct v_context *context) { return result(lib.close_device(context)); }

static struct v_context_ex *extended(struct v_context *context)
{
	struct v_context_ex *ex;

	if (context->abi_compat != V_ABI_IS_EXTENDED)
		return NULL;
	ex = (struct v_context_ex *)((char *)context - offsetof(struct v_context_ex, context));
	return ex->size >= sizeof(*ex) && ex->query_device_ex ? ex : NULL;
}

int v_query_device(struct v_context *context, struct v_device_attr_ex *attr)
{
	struct v_context_ex *ex = extended(context);

	memset(attr, 0, sizeof(*attr));
	if (ex) {
		int err = ex->query_device_ex(context, NULL, attr, sizeof(*attr));

		if (err != EOPNOTSUPP && err != ENOSYS)
			return result(err);
	}
	memset(attr, 0, sizeof(*attr));
	return result(lib.query_device(context, &attr->orig));
}

int v_query_port(struct v_context *context, uint8_t port, struct v_port_attr *attr)
{
	memset(attr, 0, sizeof(*attr)); /* the symbol fills in all but port_cap_flags2 */
	return result(lib.query_port(context, port, attr));
}

int v_query_gid(struct v_context *context, uint8_t port, int index, uint8_t raw[16])
{
	union v_gid gid;
	int err = result(lib.query_gid(context, port, index, &gid));

	memcpy(raw, gid.raw, sizeof(gid.raw));
	return err;
}

struct v_pd *v_alloc_pd(struct v_context *context) { return lib.alloc_pd(context); }
int v_dealloc_pd(struct v_pd *pd) { return result(lib.dealloc_pd(pd)); }

struct v_mr *v_reg_mr(struct v_pd *pd, uintptr_t addr, size_t length, unsigned access)
{
	if (lib.reg_mr_iova2)
		return lib.reg_mr_iova2(pd, (void *)addr, length, addr, access);
	/* Older libraries know no optional flags; dropping them is what newer ones do on older kernels. */
	return lib.reg_mr(pd, (void *)addr, length, access & (V_ACCESS_OPTIONAL_FIRST - 1));
}

int v_dereg_mr(struct v_mr *mr) { return result(lib.dereg_mr(mr)); }

struct v_comp_channel *v_create_comp_channel(struct v_context *context) { return lib.create_comp_channel(context); }
int v_destroy_comp_channel(struct v_comp_channel *channel) { return result(lib.destroy_comp_channel(channel)); }

struct v_cq *v_create_cq(struct v_context *context, int entries, struct v_comp_channel *channel)
{
	return lib.create_cq(context, entries, NULL, channel, 0);
}

int v_destroy_cq(struct v_cq *cq) { return result(lib.destroy_cq(cq)); }
int v_poll_cq(struct v_cq *cq, int n, struct v_wc *wc) { return cq->context->ops.poll_cq(cq, n, wc); }
int v_req_notify_cq(struct v_cq *cq) { return result(cq->context->ops.req_notify_cq(cq, 0)); }

int v_get_cq_event(struct v_comp_channel *channel)
{
	struct v_cq *cq;
	void *unused;

	if (lib.get_cq_event(channel, &cq, &unused))
		return -1;
	lib.ack_cq_events(cq, 1);
	return 0;
}

struct v_qp *v_create_qp(struct v_pd *pd, struct v_cq *send_cq, struct v_cq *recv_cq, struct v_qp_cap *cap)
{
	struct v_qp_init_attr init = {
		.send_cq = send_cq, .recv_cq = recv_cq, .cap = *cap, .qp_type = V_QPT_RC, .sq_sig_all = 1
	};
	struct v_qp *qp = lib.create_qp(pd, &init);

	*cap = init.cap;
	return qp;
}

int v_destroy_qp(struct v_qp *qp) { return result(lib.destroy_qp(qp)); }
int v_modify_qp(struct v_qp *qp, struct v_qp_attr *attr, int mask) { return result(lib.modify_qp(qp, attr, mask)); }

int v_post_send(struct v_qp *qp, uint64_t id, int opcode, unsigned flags, struct v_sge local, uint64_t remote_addr,
		uint32_t rkey)
{
	struct v_send_wr wr = {
		.wr_id = id, .sg_list = &local, .num_sge = 1, .opcode = opcode, .send_flags = flags,
		.remote_addr = remote_addr, .rkey = rkey
	}, *bad;

	return result(qp->context->ops.post_send(qp, &wr, &bad));
}

int v_post_recv(struct v_qp *qp, uint64_t id, struct v_sge local)
{
	struct v_recv_wr wr = { .wr_id = id, .sg_list = &local, .num_sge = 1 }, *bad;

	return result(qp->context->ops.post_recv(qp, &wr, &bad));
}
