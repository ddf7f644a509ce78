/* Queue pairs: making and ending them, their states, address handles. */
#include "sv.h"

static struct sv_qp_obj *mine[SV_QPS];

struct sv_qp_obj *sv_qp_of(uint32_t qpn)
{
	struct sv_qp_obj *p = mine[qpn & (SV_QPS - 1)];

	return p && p->qp.qp_num == qpn ? p : NULL;
}

/* A free one, with a number that no other had for long: the peers of the last one must not reach this one. */
static struct sv_qp *take(uint32_t type)
{
	struct sv_qp *q = NULL;

	sv_lock(&sv->alloc);
	for (uint32_t i = 1; i < SV_QPS && !q; i++)
		if (!sv->qp[i].live) {
			q = &sv->qp[i];
			q->proc = sv_me, q->gen++, q->qpn = (q->gen << SV_QP_BITS | i) & 0xffffff, q->type = type;
			q->state = IBV_QPS_RESET, q->access = q->dest = q->srq = q->qkey = q->rnr_timer = q->established = 0;
		}
	if (q)
		__atomic_store_n(&q->live, 1, __ATOMIC_RELEASE);
	sv_unlock(&sv->alloc);
	return q;
}

static int acceptable(const struct ibv_qp_init_attr *a)
{
	return (a->qp_type == IBV_QPT_RC || a->qp_type == IBV_QPT_UD) && a->send_cq && a->recv_cq &&
	       a->cap.max_send_sge <= SV_SGE && a->cap.max_recv_sge <= SV_SGE && a->cap.max_inline_data <= SV_INLINE &&
	       a->cap.max_send_wr <= SV_MAX_WR && a->cap.max_recv_wr <= SV_MAX_WR;
}

SV_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct sv_qp_obj *p;
	struct sv_qp *q = NULL;
	uint32_t rq = 0;

	if (!acceptable(a)) {
		if (sv_debug)
			sv_say("no such queue pair: type %d, send %u x %u, receive %u x %u, inline %u", a->qp_type,
			       a->cap.max_send_wr, a->cap.max_send_sge, a->cap.max_recv_wr, a->cap.max_recv_sge,
			       a->cap.max_inline_data);
		return errno = EINVAL, NULL;
	}
	p = calloc(1, sizeof(*p));
	if (p)
		rq = a->srq ? a->srq->handle : sv_rq_make(a->cap.max_recv_wr, SV_SGE, sv_async_bell(pd->context));
	if (rq && !(q = take(a->qp_type)) && !a->srq)
		sv_rq_end(rq);
	if (!q) {
		free(p);
		return errno = ENOMEM, NULL;
	}
	q->pd = pd->handle, q->scq = a->send_cq->handle, q->rcq = a->recv_cq->handle, q->rq = rq;
	q->srq = a->srq != NULL, q->async = sv_async_bell(pd->context);
	a->cap.max_send_wr = a->cap.max_send_wr ? a->cap.max_send_wr : 1;
	a->cap.max_recv_wr = a->srq ? 0 : sv->rq[rq].cap;
	a->cap.max_send_sge = a->cap.max_recv_sge = SV_SGE, a->cap.max_inline_data = SV_INLINE;
	p->s = q, p->sig_all = a->sq_sig_all != 0, p->init = *a, p->max_send_wr = a->cap.max_send_wr;
	pthread_mutex_init(&p->lock, NULL);
	p->qp.context = pd->context, p->qp.qp_context = a->qp_context, p->qp.pd = pd, p->qp.srq = a->srq;
	p->qp.send_cq = a->send_cq, p->qp.recv_cq = a->recv_cq, p->qp.qp_type = a->qp_type, p->qp.state = IBV_QPS_RESET;
	p->qp.handle = (uint32_t)(q - sv->qp), p->qp.qp_num = q->qpn;
	pthread_mutex_init(&p->qp.mutex, NULL);
	pthread_cond_init(&p->qp.cond, NULL);
	sv_pd_count(pd, 1);
	sv_cq_count(a->send_cq, 1);
	sv_cq_count(a->recv_cq, 1);
	if (a->srq)
		sv_srq_count(a->srq, 1);
	mine[p->qp.handle] = p;
	return &p->qp;
}

/* Attributes that a change of state needs; ibv_modify_qp(3). */
static const struct step {
	enum ibv_qp_state from, to;
	int rc, ud;
} steps[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, 0},
	{IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, 0},
	{IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, 0},
};

static int permitted(const struct sv_qp *q, const struct ibv_qp_attr *a, int mask)
{
	enum ibv_qp_state from = (enum ibv_qp_state)q->state, to = mask & IBV_QP_STATE ? a->qp_state : from;

	if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != from)
		return 0;
	if ((mask & IBV_QP_PORT && a->port_num != 1) || (mask & IBV_QP_PKEY_INDEX && a->pkey_index))
		return 0;
	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET)
		return 1;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (steps[i].from == from && steps[i].to == to) {
			int need = q->type == IBV_QPT_UD ? steps[i].ud : steps[i].rc;

			return (mask & need) == need;
		}
	return 0;
}

static void remember(struct ibv_qp_attr *to, const struct ibv_qp_attr *a, int mask)
{
#define KEEP(flag, field) if (mask & (flag)) to->field = a->field
	KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IBV_QP_PKEY_INDEX, pkey_index);
	KEEP(IBV_QP_PORT, port_num);
	KEEP(IBV_QP_QKEY, qkey);
	KEEP(IBV_QP_AV, ah_attr);
	KEEP(IBV_QP_PATH_MTU, path_mtu);
	KEEP(IBV_QP_TIMEOUT, timeout);
	KEEP(IBV_QP_RETRY_CNT, retry_cnt);
	KEEP(IBV_QP_RNR_RETRY, rnr_retry);
	KEEP(IBV_QP_RQ_PSN, rq_psn);
	KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IBV_QP_SQ_PSN, sq_psn);
	KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IBV_QP_DEST_QPN, dest_qp_num);
#undef KEEP
}

SV_API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct sv_qp_obj *p = (struct sv_qp_obj *)qp;
	struct sv_qp *q = p->s;

	sv_lock(&q->lock);
	if (!permitted(q, a, mask)) {
		sv_unlock(&q->lock);
		return EINVAL;
	}
	remember(&p->attr, a, mask);
	q->access = p->attr.qp_access_flags, q->dest = p->attr.dest_qp_num, q->qkey = p->attr.qkey;
	q->rnr_timer = p->attr.min_rnr_timer;
	if (!(mask & IBV_QP_STATE)) {
		sv_unlock(&q->lock);
		return 0;
	}
	if (a->qp_state == IBV_QPS_ERR)
		sv_qp_fail(q, SV_QUIETLY);
	else
		__atomic_store_n(&q->state, a->qp_state, __ATOMIC_RELEASE);
	sv_unlock(&q->lock);
	qp->state = a->qp_state;
	sv_cq_check(q->rcq);
	if (a->qp_state == IBV_QPS_ERR)
		sv_send_flush(p, 0);
	if (a->qp_state == IBV_QPS_RESET) {
		sv_send_flush(p, 1);
		sv_cq_forget(q->scq, qp->qp_num);
		sv_cq_forget(q->rcq, qp->qp_num);
		if (!q->srq) {
			sv_rq_lock(&sv->rq[q->rq]);
			sv->rq[q->rq].head = sv->rq[q->rq].tail;
			sv_unlock(&sv->rq[q->rq].lock);
		}
	}
	return 0;
}

SV_API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
	struct sv_qp_obj *p = (struct sv_qp_obj *)qp;

	(void)mask;
	*a = p->attr;
	a->qp_state = a->cur_qp_state = (enum ibv_qp_state)__atomic_load_n(&p->s->state, __ATOMIC_ACQUIRE);
	a->cap = p->init.cap;
	if (init)
		*init = p->init;
	return 0;
}

SV_API int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct sv_qp_obj *p = (struct sv_qp_obj *)qp;
	struct sv_qp *q = p->s;

	mine[qp->handle] = NULL;
	sv_lock(&q->lock); /* a peer's transfer ends first */
	q->state = IBV_QPS_RESET;
	sv_unlock(&q->lock);
	sv_send_flush(p, 1);
	sv_cq_forget(q->scq, qp->qp_num);
	sv_cq_forget(q->rcq, qp->qp_num);
	if (q->srq)
		sv_srq_count(qp->srq, -1);
	sv_lock(&q->lock);
	__atomic_store_n(&q->live, 0, __ATOMIC_RELEASE);
	sv_unlock(&q->lock);
	if (!q->srq)
		sv_rq_end(q->rq);
	sv_cq_count(qp->send_cq, -1);
	sv_cq_count(qp->recv_cq, -1);
	sv_pd_count(qp->pd, -1);
	free(p);
	return 0;
}

SV_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
	struct ibv_ah *h = a->port_num == 1 ? calloc(1, sizeof(*h)) : NULL;

	if (!h)
		return errno = a->port_num == 1 ? ENOMEM : EINVAL, NULL;
	h->context = pd->context, h->pd = pd;
	sv_pd_count(pd, 1);
	return h;
}

SV_API int ibv_destroy_ah(struct ibv_ah *h)
{
	sv_pd_count(h->pd, -1);
	free(h);
	return 0;
}
