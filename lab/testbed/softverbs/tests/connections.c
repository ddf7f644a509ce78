/* librdmacm within a process: connections, their data, their ends at any moment, ports, events. */
#include "connections.h"

#define MANY 200

static void carries_data(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_cm_id *lid = listener(l), *other, *id = routed(a);
	struct rdma_conn_param p = {.private_data = "welcome", .private_data_len = 8, .rnr_retry_count = 7};
	struct rdma_cm_event *e;
	struct region x, y;

	CHECK(!readable(a) && !readable(l));
	ask(id, "hello");
	e = next_of(l, RDMA_CM_EVENT_CONNECT_REQUEST);
	other = e->id;
	CHECK(e->listen_id == lid && other->verbs == id->verbs && !strcmp(e->param.conn.private_data, "hello"));
	CHECK(e->param.conn.responder_resources == 3 && rdma_get_dst_port(other) == rdma_get_src_port(id));
	CHECK(!rdma_ack_cm_event(e));
	equip(other);
	CHECK(!rdma_accept(other, &p));
	e = next_of(a, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(e->id == id && !strcmp(e->param.conn.private_data, "welcome"));
	CHECK(!rdma_ack_cm_event(e));
	CHECK(next_id(l, RDMA_CM_EVENT_ESTABLISHED, 0) == other);
	x = region(id->pd, 4096, ALL_RIGHTS), y = region(other->pd, 4096, ALL_RIGHTS);
	memset(x.p, 'c', 4096);
	CHECK(!post(id->qp, IBV_WR_RDMA_WRITE, 1, x, 4096, y));
	expect(id->send_cq, 1, IBV_WC_SUCCESS);
	CHECK(y.p[0] == 'c' && y.p[4095] == 'c');
	CHECK(!rdma_disconnect(id) && id->qp->state == IBV_QPS_ERR);
	CHECK(next_id(a, RDMA_CM_EVENT_DISCONNECTED, 0) == id);
	CHECK(next_id(l, RDMA_CM_EVENT_DISCONNECTED, 0) == other);
	CHECK(!rdma_disconnect(other) && !readable(a) && !readable(l));
	ibv_dereg_mr(x.mr), ibv_dereg_mr(y.mr);
	rdma_destroy_ep(other), rdma_destroy_ep(id), rdma_destroy_ep(lid);
}

static void is_rejected(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_cm_id *lid = listener(l), *other, *id = routed(a);
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("203.0.113.9"), .sin_port = 1};
	struct rdma_cm_event *e;

	ask(id, "");
	other = next_id(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	CHECK(!rdma_reject(other, "no", 3));
	e = next_of(a, RDMA_CM_EVENT_REJECTED);
	CHECK(e->status == 28 && !strcmp(e->param.conn.private_data, "no"));
	CHECK(!rdma_ack_cm_event(e));
	CHECK(!rdma_destroy_id(other));
	CHECK(rdma_disconnect(id) == 0 && !readable(a));
	rdma_destroy_ep(id);
	CHECK(!rdma_destroy_id(lid));
	id = routed(a); /* nobody listens any more */
	ask(id, "");
	CHECK(next_id(a, RDMA_CM_EVENT_REJECTED, 8) == id);
	rdma_destroy_ep(id);
	CHECK(!rdma_create_id(a, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, 1000));
	CHECK(next_id(a, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH) == id);
	CHECK(!rdma_destroy_id(id));
}

static void has_ports(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_cm_id *lid = listener(l), *id;
	struct rdma_cm_event *e;

	CHECK(!rdma_create_id(a, &id, NULL, RDMA_PS_TCP));
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&here) == -1 && errno == EADDRINUSE);
	CHECK(!rdma_destroy_id(lid));
	CHECK(!rdma_bind_addr(id, (struct sockaddr *)&here));
	CHECK(!rdma_destroy_id(id));
	CHECK(!fcntl(a->fd, F_SETFL, O_NONBLOCK));
	CHECK(rdma_get_cm_event(a, &e) == -1 && errno == EAGAIN);
	CHECK(!fcntl(a->fd, F_SETFL, 0));
	CHECK(rdma_create_id(a, &id, NULL, RDMA_PS_UDP) == -1 && errno == EPROTONOSUPPORT);
}

static void are_many(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_cm_id *lid = listener(l), *id[MANY], *other[MANY];

	for (int i = 0; i < MANY; i++)
		ask(id[i] = routed(a), "");
	for (int i = 0; i < MANY; i++)
		equip(other[i] = next_id(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0));
	for (int i = 0; i < MANY; i++)
		CHECK(!rdma_accept(other[i], NULL));
	for (int i = 0; i < MANY; i++)
		next_id(a, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (int i = 0; i < MANY; i++)
		next_id(l, RDMA_CM_EVENT_ESTABLISHED, 0);
	for (int i = 0; i < MANY; i++)
		rdma_destroy_ep(id[i]); /* is a disconnection too */
	for (int i = 0; i < MANY; i++)
		rdma_destroy_ep(next_id(l, RDMA_CM_EVENT_DISCONNECTED, 0));
	CHECK(!rdma_destroy_id(lid) && !readable(a) && !readable(l));
}

static void end_at_any_moment(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_cm_id *lid = listener(l), *other, *id, *second;
	struct rdma_event_channel *gone;

	CHECK(!rdma_create_id(a, &id, NULL, RDMA_PS_TCP)); /* with an event that waits */
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&here, 1000) && readable(a));
	CHECK(!rdma_destroy_id(id) && !readable(a));
	ask(id = routed(a), ""); /* before it is accepted: either side */
	rdma_destroy_ep(id);
	other = next_id(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	CHECK(next_id(l, RDMA_CM_EVENT_REJECTED, 28) == other);
	CHECK(rdma_accept(other, &(struct rdma_conn_param){0}) == -1);
	CHECK(!rdma_destroy_id(other));
	ask(id = routed(a), "");
	CHECK(!rdma_destroy_id(next_id(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0)));
	CHECK(next_id(a, RDMA_CM_EVENT_REJECTED, 28) == id);
	rdma_destroy_ep(id);
	id = connected(a, l, &other); /* and a listener with requests that nobody took */
	ask(second = routed(a), "");
	while (!readable(l))
		;
	CHECK(!rdma_destroy_id(lid) && !readable(l));
	CHECK(next_id(a, RDMA_CM_EVENT_REJECTED, 28) == second);
	rdma_destroy_ep(second);
	rdma_destroy_ep(other);
	CHECK((gone = rdma_create_event_channel())); /* events move with their identifier; a channel goes before it */
	while (!readable(a))
		;
	CHECK(!rdma_migrate_id(id, gone) && !readable(a));
	CHECK(readable(gone));
	rdma_destroy_event_channel(gone);
	rdma_destroy_ep(id);
}

static void *serve(void *l)
{
	struct rdma_cm_id *id;
	struct region r;
	struct ibv_wc wc;

	CHECK(!rdma_get_request(l, &id));
	r = region(id->pd, 4096, ALL_RIGHTS);
	CHECK(!rdma_post_recv(id, NULL, r.p, 4096, r.mr));
	CHECK(!rdma_accept(id, NULL));
	CHECK(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && !strcmp(r.p, "in step"));
	CHECK(!rdma_disconnect(id));
	ibv_dereg_mr(r.mr);
	rdma_destroy_ep(id);
	return NULL;
}

static void are_synchronous(struct rdma_event_channel *a, struct rdma_event_channel *l)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res;
	struct ibv_qp_init_attr init = {.sq_sig_all = 1, .cap = {4, 4, 1, 1, 0}}, again = init;
	struct rdma_cm_id *lid, *id;
	struct region r;
	struct ibv_wc wc;
	pthread_t t;
	char port[8];

	(void)a, (void)l;
	CHECK(!rdma_getaddrinfo("127.0.0.1", "0", &hints, &res));
	CHECK(!rdma_create_ep(&lid, res, NULL, &init));
	rdma_freeaddrinfo(res);
	CHECK(!rdma_listen(lid, 0) && !pthread_create(&t, NULL, serve, lid));
	snprintf(port, sizeof(port), "%d", ntohs(rdma_get_src_port(lid)));
	hints.ai_flags = 0;
	CHECK(!rdma_getaddrinfo("127.0.0.1", port, &hints, &res));
	CHECK(!rdma_create_ep(&id, res, NULL, &again));
	rdma_freeaddrinfo(res);
	CHECK(!rdma_connect(id, NULL));
	r = region(id->pd, 4096, ALL_RIGHTS);
	strcpy(r.p, "in step");
	CHECK(!rdma_post_send(id, NULL, r.p, 8, r.mr, 0));
	CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(!rdma_disconnect(id) && !pthread_join(t, NULL));
	ibv_dereg_mr(r.mr);
	rdma_destroy_ep(id), rdma_destroy_ep(lid);
}

int main(void)
{
	static const struct test tests[] = {{"carries data", carries_data}, {"is rejected", is_rejected},
		{"has ports", has_ports}, {"are many", are_many}, {"end at any moment", end_at_any_moment}, {"are synchronous", are_synchronous}};

	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		run(&tests[i]);
	puts("ok    connections");
	return 0;
}
