/* The device, and identifiers: making and ending them, their addresses, their channels. */
#include "cm.h"

struct cm_id *cm_ids;

static struct {
	pid_t owner;
	struct ibv_context *context;
	struct ibv_pd *pd;
} device;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

/* Opened once in a process, and for good: domains outlast their identifiers. *pd: what those use that name none. */
struct ibv_context *cm_device(struct ibv_pd **pd)
{
	struct ibv_context *c;

	pthread_mutex_lock(&device_lock);
	if (device.owner != getpid()) { /* after a fork it is the parent's */
		struct ibv_device **l = ibv_get_device_list(NULL);

		device.owner = 0, device.pd = NULL;
		if (l && l[0] && (device.context = ibv_open_device(l[0])))
			device.owner = getpid();
		ibv_free_device_list(l);
	}
	c = device.owner ? device.context : NULL;
	if (c && pd && !device.pd)
		device.pd = ibv_alloc_pd(c);
	if (pd)
		*pd = device.pd;
	pthread_mutex_unlock(&device_lock);
	if (!c)
		errno = ENODEV;
	return c;
}

CM_API struct ibv_context **rdma_get_devices(int *n)
{
	struct ibv_context **l = calloc(2, sizeof(*l));

	if (l)
		l[0] = cm_device(NULL);
	if (n)
		*n = l && l[0];
	return l;
}

CM_API void rdma_free_devices(struct ibv_context **l) { free(l); }

int cm_set_device(struct cm_id *id)
{
	struct rdma_ib_addr *a = &id->id.route.addr.addr.ibaddr;

	if (!(id->id.verbs = cm_device(&id->id.pd)))
		return ENODEV;
	id->id.port_num = 1;
	ibv_query_gid(id->id.verbs, 1, 0, &a->sgid);
	a->dgid = a->sgid, a->pkey = 0xffff;
	return 0;
}

/* With cm_lock. */
struct cm_id *cm_make(struct rdma_event_channel *ch, void *context, enum rdma_port_space ps)
{
	static uint64_t last;
	struct cm_id *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->id.channel = ch, i->id.context = context, i->id.ps = ps, i->id.qp_type = IBV_QPT_RC;
	i->sock = -1, i->serial = ++last;
	i->next = cm_ids;
	cm_ids = i;
	return i;
}

CM_API int rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *i;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_IB)
		return cm_fail(EPROTONOSUPPORT);
	if (!ch && !(own = rdma_create_event_channel()))
		return -1;
	cm_lock();
	if ((i = cm_make(own ? own : ch, context, ps)))
		i->synchronous = own != NULL;
	cm_unlock();
	if (!i) {
		if (own)
			rdma_destroy_event_channel(own);
		return cm_fail(ENOMEM);
	}
	*id = &i->id;
	return 0;
}

void cm_detach(struct cm_id *id)
{
	struct cm_id **at = &cm_ids, *i;

	cm_close(id);
	cm_events_drop(id);
	while ((i = *at)) {
		if (i == id) {
			*at = i->next;
		} else if (i->listener == id) {
			cm_discard(i);
			at = &cm_ids;
		} else {
			at = &i->next;
		}
	}
}

void cm_discard(struct cm_id *id)
{
	cm_detach(id);
	free(id);
}

CM_API int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct cm_id *i = cm_of(id);

	if (id->event)
		rdma_ack_cm_event(id->event);
	cm_lock();
	cm_detach(i);
	cm_events_settle(i);
	cm_unlock();
	if (i->synchronous && id->channel)
		rdma_destroy_event_channel(id->channel);
	free(i->qp_init);
	free(i);
	return 0;
}

CM_API int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *ch)
{
	struct cm_id *i = cm_of(id);
	struct rdma_event_channel *old = i->synchronous ? id->channel : NULL, *own = NULL;

	if (i->synchronous && !ch)
		return cm_fail(EINVAL);
	if (!ch && !(ch = own = rdma_create_event_channel()))
		return -1;
	if (old && id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	cm_lock();
	for (struct cm_id *c = cm_ids; c; c = c->next)
		if (c->listener == i)
			c->id.channel = ch;
	cm_events_move(i, ch);
	i->synchronous = own != NULL;
	cm_unlock();
	if (old)
		rdma_destroy_event_channel(old);
	return 0;
}

CM_API int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *a)
{
	struct cm_id *i = cm_of(id);
	int err;

	if (i->state != CM_IDLE)
		return cm_fail(EINVAL);
	if (!cm_is_local(a))
		return cm_fail(EADDRNOTAVAIL);
	if ((err = cm_bind(i, a)) || (!cm_is_any(a) && (err = cm_set_device(i))))
		return cm_fail(err);
	i->state = CM_BOUND;
	return 0;
}

/* A machine's own addresses are all that can be reached, and they are resolved at once. */
CM_API int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct cm_id *i = cm_of(id);
	struct rdma_addr *a = &id->route.addr;
	int err = 0;

	(void)timeout_ms;
	if ((i->state != CM_IDLE && i->state != CM_BOUND) || !cm_size(dst))
		return cm_fail(EINVAL);
	if (i->state == CM_IDLE && src && !cm_is_local(src))
		return cm_fail(EADDRNOTAVAIL);
	if (i->state == CM_IDLE)
		err = cm_bind(i, src);
	if (!err)
		err = cm_set_device(i);
	if (err)
		return cm_fail(err);
	i->state = CM_BOUND;
	memcpy(&a->dst_storage, dst, cm_size(dst));
	if (!cm_size(&a->src_addr) || cm_is_any(&a->src_addr))
		cm_take_host(&a->src_addr, dst);
	cm_lock();
	if (cm_is_local(dst)) {
		i->state = CM_RESOLVED;
		cm_event_push(i, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL);
	} else {
		cm_event_push(i, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, NULL);
	}
	cm_unlock();
	return cm_complete(i);
}

CM_API int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct cm_id *i = cm_of(id);

	(void)timeout_ms;
	if (i->state != CM_RESOLVED)
		return cm_fail(EINVAL);
	cm_lock();
	i->state = CM_ROUTED;
	cm_event_push(i, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
	cm_unlock();
	return cm_complete(i);
}

/* Type of service, the use of a port by several, timeouts: accepted, without an effect. */
CM_API int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	(void)id, (void)name, (void)value, (void)len;
	return level == RDMA_OPTION_ID ? 0 : cm_fail(ENOSYS);
}

CM_API __be16 rdma_get_src_port(struct rdma_cm_id *id) { return htons(cm_port(&id->route.addr.src_addr)); }
CM_API __be16 rdma_get_dst_port(struct rdma_cm_id *id) { return htons(cm_port(&id->route.addr.dst_addr)); }
