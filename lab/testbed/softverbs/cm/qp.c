/* Queue pairs of identifiers, their completion queues, and identifiers made with them (rdma_create_ep). */
#include "cm.h"
#include <rdma/rdma_verbs.h>

#define ACK_TIMEOUT 14 /* 4.096 us << 14 */

static const int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
static const int rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC;

/* As drivers/infiniband/core/cm.c does it: cm_init_qp_init_attr and the two that follow. */
CM_API int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *a, int *mask)
{
	const struct cm_id *i = cm_of(id);
	const enum ibv_qp_state to = a->qp_state;

	memset(a, 0, sizeof(*a));
	a->qp_state = to;
	switch (to) {
	case IBV_QPS_INIT:
		*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		a->port_num = 1;
		if (i->state >= CM_REQUESTED)
			a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		return 0;
	case IBV_QPS_RTR:
		*mask = rtr_mask;
		a->ah_attr.dlid = 1, a->ah_attr.port_num = 1, a->path_mtu = IBV_MTU_4096, a->dest_qp_num = i->peer.qp_num;
		a->max_dest_rd_atomic = i->mine.responder_resources;
		return 0;
	case IBV_QPS_RTS:
		*mask = rts_mask;
		a->timeout = ACK_TIMEOUT, a->retry_cnt = i->mine.retry_count, a->rnr_retry = i->peer.rnr_retry_count;
		a->max_rd_atomic = i->mine.initiator_depth;
		return 0;
	default:
		return cm_fail(EINVAL);
	}
}

int cm_qp_connect(struct cm_id *id)
{
	static const enum ibv_qp_state step[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	int mask, err = 0;

	for (int i = 0; i < 3 && !err; i++) {
		struct ibv_qp_attr a = {.qp_state = step[i]};

		rdma_init_qp_attr(&id->id, &a, &mask);
		err = ibv_modify_qp(id->id.qp, &a, mask);
	}
	return err;
}

int cm_qp_fail(struct cm_id *id)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	return id->id.qp ? ibv_modify_qp(id->id.qp, &a, IBV_QP_STATE) : 0;
}

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->send_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int create_cq(struct rdma_cm_id *id, uint32_t n, struct ibv_comp_channel **ch, struct ibv_cq **cq)
{
	if (*cq || !n)
		return 0;
	if (!(*ch = ibv_create_comp_channel(id->verbs)))
		return -1;
	return (*cq = ibv_create_cq(id->verbs, (int)n, id, *ch, 0)) ? 0 : -1;
}

CM_API int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT};
	int mask, err;

	pd = pd ? pd : id->pd;
	if (id->qp || !pd || pd->context != id->verbs)
		return cm_fail(EINVAL);
	if ((!a->send_cq && create_cq(id, a->cap.max_send_wr, &id->send_cq_channel, &id->send_cq)) ||
	    (!a->recv_cq && create_cq(id, a->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq)))
		goto failed;
	a->send_cq = a->send_cq ? a->send_cq : id->send_cq;
	a->recv_cq = a->recv_cq ? a->recv_cq : id->recv_cq;
	a->srq = a->srq ? a->srq : id->srq;
	if (!(id->qp = ibv_create_qp(pd, a)))
		goto failed;
	rdma_init_qp_attr(id, &init, &mask);
	if ((err = ibv_modify_qp(id->qp, &init, mask))) {
		rdma_destroy_qp(id);
		return cm_fail(err);
	}
	id->pd = pd;
	return 0;
failed:
	err = errno;
	destroy_cqs(id);
	return cm_fail(err);
}

/* The extended form begins like the other one. */
CM_API int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *a)
{
	if (a->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD)
		return cm_fail(EOPNOTSUPP);
	return rdma_create_qp(id, a->comp_mask ? a->pd : NULL, (struct ibv_qp_init_attr *)a);
}

CM_API void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

CM_API int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	pd = pd ? pd : id->pd;
	if (!pd)
		return cm_fail(EINVAL);
	if (!(id->srq = ibv_create_srq(pd, a)))
		return -1;
	id->pd = pd;
	return 0;
}

CM_API void rdma_destroy_srq(struct rdma_cm_id *id)
{
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
}

static int prepare(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct cm_id *i = cm_of(id);

	if (a)
		a->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (!(res->ai_flags & RAI_PASSIVE))
		return rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, 2000) || rdma_resolve_route(id, 2000) ||
		       (a && rdma_create_qp(id, pd, a)) ? -1 : 0;
	if (rdma_bind_addr(id, res->ai_src_addr))
		return -1;
	if (a) {
		if (!(i->qp_init = malloc(sizeof(*a))))
			return -1;
		*i->qp_init = *a;
	}
	id->pd = pd ? pd : id->pd;
	return 0;
}

CM_API int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *a)
{
	int err;

	if (rdma_create_id(NULL, id, NULL, (enum rdma_port_space)res->ai_port_space))
		return -1;
	if (prepare(*id, res, pd, a)) {
		err = errno;
		rdma_destroy_ep(*id);
		return cm_fail(err);
	}
	return 0;
}

CM_API void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

CM_API int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id)
{
	struct cm_id *l = cm_of(listener);
	struct rdma_cm_event *e;

	if (!l->synchronous)
		return cm_fail(EINVAL);
	if (listener->event)
		rdma_ack_cm_event(listener->event);
	listener->event = NULL;
	if (rdma_get_cm_event(listener->channel, &e))
		return -1;
	if (l->qp_init) {
		struct ibv_qp_init_attr a = *l->qp_init;

		if (rdma_create_qp(e->id, listener->pd, &a)) {
			listener->event = e;
			return -1;
		}
	}
	*id = e->id;
	(*id)->event = e;
	return 0;
}
