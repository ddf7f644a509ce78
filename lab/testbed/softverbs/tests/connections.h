/* What the programs about librdmacm have in common: cases with deadlines, events, connections. */
#include "check.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>

#define SECONDS 30 /* for each case */

static const char *running;
static struct sockaddr_in here; /* with the port of the listener */

static inline void late(int signal)
{
	(void)signal;
	fprintf(stderr, "%s: not over after %d s\n", running, SECONDS);
	_exit(1);
}

static inline struct rdma_cm_event *next_of(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	CHECK(!rdma_get_cm_event(ch, &e));
	if (e->event != type) {
		fprintf(stderr, "%s: %s with status %d, expected %s\n", running, rdma_event_str(e->event), e->status,
			rdma_event_str(type));
		abort();
	}
	return e;
}

/* The next event, which is of this type; its identifier. */
static inline struct rdma_cm_id *next_id(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e = next_of(ch, type);
	struct rdma_cm_id *id = e->id;

	CHECK(e->status == status);
	CHECK(!rdma_ack_cm_event(e));
	return id;
}

static inline int readable(struct rdma_event_channel *ch)
{
	struct pollfd p = {ch->fd, POLLIN, 0};

	return poll(&p, 1, 0);
}

static inline void equip(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {.max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 1, .max_recv_sge = 1}};

	CHECK(!rdma_create_qp(id, NULL, &a));
	CHECK(id->send_cq && id->recv_cq && id->qp->state == IBV_QPS_INIT);
}

static inline struct rdma_cm_id *routed(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&here, 1000));
	CHECK(next_id(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0) == id && id->verbs && rdma_get_src_port(id));
	CHECK(!rdma_resolve_route(id, 1000));
	CHECK(next_id(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) == id);
	equip(id);
	return id;
}

static inline void ask(struct rdma_cm_id *id, const char *data)
{
	struct rdma_conn_param p = {.private_data = data, .private_data_len = (uint8_t)(strlen(data) + 1),
		.retry_count = 1, .rnr_retry_count = 7, .initiator_depth = 3, .responder_resources = RDMA_MAX_RESP_RES};

	CHECK(!rdma_connect(id, &p));
}

static inline struct rdma_cm_id *listener(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	here = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CHECK(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(id, (struct sockaddr *)&here));
	CHECK((here.sin_port = rdma_get_src_port(id)));
	CHECK(!rdma_listen(id, 8));
	return id;
}

static inline struct rdma_cm_id *connected(struct rdma_event_channel *a, struct rdma_event_channel *l,
					   struct rdma_cm_id **other)
{
	struct rdma_cm_id *id = routed(a);

	ask(id, "");
	*other = next_id(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	equip(*other);
	CHECK(!rdma_accept(*other, NULL));
	CHECK(next_id(a, RDMA_CM_EVENT_ESTABLISHED, 0) == id);
	CHECK(next_id(l, RDMA_CM_EVENT_ESTABLISHED, 0) == *other);
	return id;
}

struct test {
	const char *name;
	void (*run)(struct rdma_event_channel *a, struct rdma_event_channel *l); /* of the side that asks; of the listener */
};

static inline void run(const struct test *t)
{
	struct rdma_event_channel *a = rdma_create_event_channel(), *l = rdma_create_event_channel();

	running = t->name;
	signal(SIGALRM, late);
	alarm(SECONDS);
	CHECK(a && l);
	t->run(a, l);
	CHECK(!readable(a) && !readable(l));
	rdma_destroy_event_channel(a), rdma_destroy_event_channel(l);
	alarm(0);
}
