/* The device: what it is, contexts, asynchronous events. */
#include "sv.h"
#include <fcntl.h>
#undef ibv_query_port

#define GUID 0x0200000000005673ull

static struct {
	struct ibv_device dev;
	char verbs_device[4096]; /* providers such as libmlx5 look behind what they were given */
} device;

struct context {
	struct sv_bell async;
	uint32_t children;
	struct verbs_context v;
};

SV_API int verbs_allow_disassociate_destroy; /* a variable of the library, read by libmlx5 */

static struct context *of(struct ibv_context *c)
{
	return (struct context *)((char *)c - offsetof(struct context, v.context));
}
struct sv_bell sv_async_bell(struct ibv_context *c) { return of(c)->async; }

SV_API struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **l = calloc(2, sizeof(*l));
	const char *e;
	int err;

	if (!l)
		return NULL;
	if ((err = sv_cost_open()))
		return free(l), errno = err, NULL;
	sv_debug = getenv("SOFTVERBS_DEBUG") != NULL;
	sv_engine = (e = getenv("SOFTVERBS_ENGINE")) && *e == '1';
	device.dev.node_type = IBV_NODE_CA;
	device.dev.transport_type = IBV_TRANSPORT_IB;
	strcpy(device.dev.name, "sv0");
	strcpy(device.dev.dev_name, "uverbs0");
	strcpy(device.dev.dev_path, "/sys/class/infiniband_verbs/uverbs0");
	strcpy(device.dev.ibdev_path, "/sys/class/infiniband/sv0");
	l[0] = &device.dev;
	if (n)
		*n = 1;
	return l;
}

SV_API void ibv_free_device_list(struct ibv_device **l) { free(l); }
SV_API const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }
SV_API int ibv_get_device_index(struct ibv_device *d) { return d == &device.dev ? 0 : -1; }
SV_API __be64 ibv_get_device_guid(struct ibv_device *d) { return d == &device.dev ? __builtin_bswap64(GUID) : 0; }
SV_API int ibv_fork_init(void) { return 0; } /* pinned pages stay the parent's: io_uring breaks copy-on-write first */
SV_API enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }

SV_API const char *ibv_get_sysfs_path(void)
{
	const char *p = getenv("SYSFS_PATH");

	return p ? p : "/sys";
}

SV_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = 0;
	else if (n >= 0 && (size_t)n < size)
		buf[n] = 0;
	return (int)n;
}

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a, size_t len)
{
	const struct ibv_port_attr r = {.state = IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 1, .max_msg_sz = SV_MAX_MESSAGE, .pkey_tbl_len = 1, .lid = 1, .sm_lid = 1, .max_vl_num = 1,
		.active_width = 2, .active_speed = 32, .phys_state = 5, .link_layer = IBV_LINK_LAYER_INFINIBAND};

	(void)c;
	if (port != 1)
		return EINVAL;
	memcpy(a, &r, len < sizeof(r) ? len : sizeof(r));
	return 0;
}

SV_API int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *a)
{
	return query_port(c, port, (struct ibv_port_attr *)a, offsetof(struct ibv_port_attr, port_cap_flags2));
}

SV_API int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	*a = (struct ibv_device_attr){.fw_ver = "softverbs 1", .node_guid = __builtin_bswap64(GUID),
		.sys_image_guid = __builtin_bswap64(GUID), .max_mr_size = 1ull << 40, .page_size_cap = 4096,
		.vendor_id = 0x5673, .vendor_part_id = 1, .max_qp = SV_QPS - 1, .max_qp_wr = SV_MAX_WR,
		.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN,
		.max_sge = SV_SGE, .max_sge_rd = SV_SGE, .max_cq = SV_CQS - 1, .max_cqe = SV_MAX_CQE, .max_mr = SV_KEYS - 1,
		.max_pd = 1 << 22, .max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16, .max_res_rd_atom = 1 << 17,
		.atomic_cap = IBV_ATOMIC_HCA, .max_ah = 1 << 20, .max_srq = SV_RQS - 1, .max_srq_wr = SV_MAX_WR,
		.max_srq_sge = SV_SGE, .max_pkeys = 1, .local_ca_ack_delay = 15, .phys_port_cnt = 1};
	return 0;
}

static int query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
			   struct ibv_device_attr_ex *a, size_t len)
{
	(void)in;
	memset(a, 0, len);
	return ibv_query_device(c, &a->orig_attr);
}

SV_API int ibv_query_gid(struct ibv_context *c, uint8_t port, int i, union ibv_gid *g)
{
	(void)c;
	if (port != 1 || i)
		return errno = EINVAL, -1;
	memset(g, 0, sizeof(*g));
	g->global.subnet_prefix = __builtin_bswap64(0xfe80000000000000ull);
	g->global.interface_id = __builtin_bswap64(GUID);
	return 0;
}

SV_API int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned i, unsigned *type)
{
	(void)c;
	if (port != 1 || i)
		return errno = EINVAL, -1;
	*type = 0;
	return 0;
}

SV_API int ibv_query_pkey(struct ibv_context *c, uint8_t port, int i, __be16 *k)
{
	(void)c;
	if (port != 1 || i)
		return errno = EINVAL, -1;
	*k = 0xffff;
	return 0;
}

SV_API int ibv_get_pkey_index(struct ibv_context *c, uint8_t port, __be16 k)
{
	(void)c;
	return port == 1 && k == 0xffff ? 0 : -1;
}

SV_API struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct context *c;
	int err = d != &device.dev ? ENODEV : sv_open();

	if (err)
		return errno = err, NULL;
	if (!(c = calloc(1, sizeof(*c))))
		return NULL;
	if ((err = sv_bell_make(&c->v.context.async_fd, &c->async))) {
		free(c);
		return errno = err, NULL;
	}
	c->v.sz = sizeof(c->v);
	c->v.query_port = query_port;
	c->v.query_device_ex = query_device_ex;
	c->v.context.device = d;
	c->v.context.cmd_fd = -1;
	c->v.context.num_comp_vectors = 1;
	pthread_mutex_init(&c->v.context.mutex, NULL);
	c->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->v.context.ops.poll_cq = sv_poll_cq;
	c->v.context.ops.req_notify_cq = sv_req_notify_cq;
	c->v.context.ops.post_send = sv_post_send;
	c->v.context.ops.post_recv = sv_post_recv;
	c->v.context.ops.post_srq_recv = sv_post_srq_recv;
	return &c->v.context;
}

SV_API int ibv_close_device(struct ibv_context *c)
{
	close(c->async_fd);
	close(of(c)->async.fd);
	free(of(c));
	return 0;
}

SV_API int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	for (;;) {
		struct sv_note n;

		if (read(c->async_fd, &n, sizeof(n)) != sizeof(n))
			return -1;
		e->event_type = (enum ibv_event_type)n.type;
		switch (n.type) {
		case IBV_EVENT_CQ_ERR:
			e->element.cq = sv_cq_of(n.index, n.gen);
			break;
		case IBV_EVENT_SRQ_LIMIT_REACHED:
			e->element.srq = sv_srq_of(n.index, n.gen);
			break;
		default:
			e->element.qp = (struct ibv_qp *)sv_qp_of(n.index);
		}
		if (e->element.qp) /* else it is destroyed */
			return 0;
	}
}

/* An object's destroyer does not wait for this, unlike with a kernel's device. */
SV_API void ibv_ack_async_event(struct ibv_async_event *e) { (void)e; }
