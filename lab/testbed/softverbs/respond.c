/*
 * One work request, from end to end: the process that posts does the work of both sides, holding the lock of
 * the other side's queue pair. Errors are those of the InfiniBand Architecture Specification, volume 1,
 * sections 9.9 (what each side does) and 11.6.2 (completions).
 */
#include "sv.h"

static const struct {
	enum ibv_wc_opcode wc, far; /* of the completion here, and of the receive's */
	unsigned local, remote;     /* rights that it needs */
	int receive, imm;
} kind[] = {
	[IBV_WR_RDMA_WRITE] = {IBV_WC_RDMA_WRITE, 0, 0, IBV_ACCESS_REMOTE_WRITE, 0, 0},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, 0, IBV_ACCESS_REMOTE_WRITE, 1, 1},
	[IBV_WR_SEND] = {IBV_WC_SEND, IBV_WC_RECV, 0, 0, 1, 0},
	[IBV_WR_SEND_WITH_IMM] = {IBV_WC_SEND, IBV_WC_RECV, 0, 0, 1, 1},
	[IBV_WR_RDMA_READ] = {IBV_WC_RDMA_READ, 0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, 0, 0},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {IBV_WC_COMP_SWAP, 0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, 0, 0},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {IBV_WC_FETCH_ADD, 0, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, 0, 0},
};

enum ibv_wc_opcode sv_wc_opcode(uint32_t wr_opcode) { return kind[wr_opcode].wc; }

void sv_qp_fail(struct sv_qp *q, enum ibv_event_type why)
{
	struct sv_rq *r = &sv->rq[q->rq];

	if (q->state == IBV_QPS_ERR)
		return;
	__atomic_store_n(&q->state, IBV_QPS_ERR, __ATOMIC_RELEASE);
	if (why != SV_QUIETLY)
		sv_bell_ring(q->proc, &q->async, (struct sv_note){why, q->qpn, 0});
	if (q->srq) {
		sv_bell_ring(q->proc, &q->async, (struct sv_note){IBV_EVENT_QP_LAST_WQE_REACHED, q->qpn, 0});
		return;
	}
	sv_rq_lock(r);
	while (r->head != r->tail) {
		struct sv_cqe *e;

		r->cq = q->rcq;
		if (!(e = sv_cqe_begin(&sv->cq[q->rcq])))
			break;
		e->wr_id = ((struct sv_rwqe *)sv_at(r->ring) + (r->head & (r->cap - 1)))->wr_id;
		e->status = IBV_WC_WR_FLUSH_ERR, e->opcode = IBV_WC_RECV, e->qpn = q->qpn;
		sv_rq_take(r, &sv->cq[q->rcq], 1);
	}
	sv_unlock(&r->lock);
}

static struct sv_side here(const struct sv_work *w)
{
	return (struct sv_side){sv_me, w->nsge, w->sge, w->flags & IBV_SEND_INLINE ? w->data : NULL};
}

/* Leaves out the first bytes of a receive. */
static void skip(struct sv_rwqe *r, uint32_t bytes)
{
	uint32_t i = 0;

	while (i < r->nsge && bytes >= r->sge[i].length)
		bytes -= r->sge[i++].length;
	r->nsge -= i;
	memmove(r->sge, r->sge + i, sizeof(*r->sge) * r->nsge);
	if (r->nsge && bytes)
		r->sge[0].addr += bytes, r->sge[0].length -= bytes;
}

/* A send into the entry r: what the receiver's completion says, and *st what the sender's says. */
static enum ibv_wc_status deliver(const struct sv_qp *to, struct sv_rwqe *r, const struct sv_work *w, int *st)
{
	struct sv_side from = here(w), into = {to->proc, 0, r->sge, NULL};
	uint64_t room = 0;

	from.send = 1;

	for (uint32_t i = 0; i < r->nsge; i++) {
		const struct ibv_sge *s = &r->sge[i];

		room += s->length;
		if (s->length && !sv_key_permits(s->lkey, to->proc, to->pd, s->addr, s->length, IBV_ACCESS_LOCAL_WRITE)) {
			*st = IBV_WC_REM_OP_ERR;
			return IBV_WC_LOC_PROT_ERR;
		}
	}
	if (to->type == IBV_QPT_UD)
		room = room < SV_GRH ? 0 : room - SV_GRH, skip(r, SV_GRH);
	if (room < w->bytes) {
		*st = IBV_WC_REM_INV_REQ_ERR;
		return IBV_WC_LOC_LEN_ERR;
	}
	into.nsge = (int)r->nsge;
	switch (sv_move(&into, &from, w->bytes)) {
	case 0:
		*st = IBV_WC_SUCCESS;
		return IBV_WC_SUCCESS;
	case SV_MOVE_SRC:
		*st = IBV_WC_LOC_PROT_ERR;
		return IBV_WC_SUCCESS;
	default:
		*st = IBV_WC_REM_OP_ERR;
		return IBV_WC_LOC_PROT_ERR;
	}
}

/* The first receive of the other side, if there is one, and its completion. */
static int receive(const struct sv_qp *q, struct sv_qp *to, const struct sv_work *w)
{
	struct sv_rq *rq = &sv->rq[to->rq];
	struct sv_cq *cq = &sv->cq[to->rcq];
	int send = w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM, st = IBV_WC_SUCCESS;
	enum ibv_wc_status far = IBV_WC_SUCCESS;
	struct sv_rwqe r;
	struct sv_cqe *e;

	sv_rq_lock(rq);
	if (!rq->live || rq->head == rq->tail) {
		sv_unlock(&rq->lock);
		return SV_NOT_READY;
	}
	r = *((struct sv_rwqe *)sv_at(rq->ring) + (rq->head & (rq->cap - 1)));
	if (send)
		far = deliver(to, &r, w, &st);
	if (st == IBV_WC_LOC_PROT_ERR || (to->type == IBV_QPT_UD && far != IBV_WC_SUCCESS)) { /* nothing arrived */
		sv_unlock(&rq->lock);
		return st;
	}
	rq->cq = to->rcq;
	if (!(e = sv_cqe_begin(cq))) {
		sv_unlock(&rq->lock);
		sv_qp_fail(to, IBV_EVENT_QP_FATAL);
		return IBV_WC_REM_OP_ERR;
	}
	e->wr_id = r.wr_id, e->qpn = to->qpn, e->src_qp = q->qpn, e->status = far, e->opcode = kind[w->opcode].far;
	e->byte_len = (uint32_t)w->bytes + (to->type == IBV_QPT_UD ? SV_GRH : 0);
	if (kind[w->opcode].imm)
		e->flags = IBV_WC_WITH_IMM, e->imm = w->imm;
	sv_rq_take(rq, cq, far != IBV_WC_SUCCESS || (w->flags & IBV_SEND_SOLICITED));
	sv_unlock(&rq->lock);
	return st;
}

/* Eight bytes there, read and written under the lock of that process; the old value comes here. */
static int atomic(const struct sv_qp *to, const struct sv_work *w)
{
	struct ibv_sge there = {w->remote, 8, w->rkey};
	struct sv_side far = {to->proc, 1, &there, NULL}, near = here(w);
	uint64_t old, value;
	int failed;

	sv_lock(&sv->proc[to->proc].atomics);
	if (!(failed = sv_fetch(&far, &old))) {
		value = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + w->compare_add : old == w->compare_add ? w->swap : old;
		if (value != old)
			failed = sv_move(&far, &(struct sv_side){.inlined = &value}, 8);
	}
	sv_unlock(&sv->proc[to->proc].atomics);
	if (failed)
		return IBV_WC_REM_ACCESS_ERR;
	return sv_move(&near, &(struct sv_side){.inlined = &old}, 8) ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

static int reliable(struct sv_qp *q, struct sv_qp *to, const struct sv_work *w)
{
	struct ibv_sge there = {w->remote, (uint32_t)w->bytes, w->rkey};
	struct sv_side far = {to->proc, 1, &there, NULL}, near = here(w);
	int is_atomic = w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	int is_read = w->opcode == IBV_WR_RDMA_READ, failed;
	unsigned need = kind[w->opcode].remote;

	if (is_atomic && (w->remote & 7 || w->bytes != 8))
		return IBV_WC_REM_INV_REQ_ERR;
	if (need && w->bytes) {
		if (!(to->access & need) || !sv_key_permits(w->rkey, to->proc, to->pd, w->remote, w->bytes, need))
			return IBV_WC_REM_ACCESS_ERR;
		if (is_atomic)
			return atomic(to, w);
		failed = is_read ? sv_move(&near, &far, w->bytes) : sv_move(&far, &near, w->bytes);
		if (failed)
			return (failed == SV_MOVE_DST) == is_read ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR;
	}
	return kind[w->opcode].receive ? receive(q, to, w) : IBV_WC_SUCCESS;
}

/* An error that the responder has noticed is the end of its queue pair too. */
static void blame(struct sv_qp *to, int st)
{
	if (st == IBV_WC_REM_ACCESS_ERR)
		sv_qp_fail(to, IBV_EVENT_QP_ACCESS_ERR);
	else if (st == IBV_WC_REM_INV_REQ_ERR)
		sv_qp_fail(to, IBV_EVENT_QP_REQ_ERR);
	else if (st == IBV_WC_REM_OP_ERR)
		sv_qp_fail(to, SV_QUIETLY);
}

/* An enum ibv_wc_status, SV_NOT_READY or SV_NO_ANSWER. */
int sv_respond(struct sv_qp_obj *p, struct sv_work *w, uint32_t *rnr_timer)
{
	struct sv_qp *q = p->s, *to;
	int ud = q->type == IBV_QPT_UD, st;
	uint32_t qpn = ud ? w->qpn : q->dest;

	if (__atomic_load_n(&q->state, __ATOMIC_ACQUIRE) == IBV_QPS_ERR)
		return IBV_WC_WR_FLUSH_ERR;
	for (int i = 0; i < w->nsge && !(w->flags & IBV_SEND_INLINE); i++)
		if (w->sge[i].length && !sv_key_permits(w->sge[i].lkey, sv_me, q->pd, w->sge[i].addr, w->sge[i].length,
							kind[w->opcode].local))
			return IBV_WC_LOC_PROT_ERR;
	if (w->bytes > (ud ? 4096 : SV_MAX_MESSAGE))
		return IBV_WC_LOC_LEN_ERR;
	to = &sv->qp[qpn & (SV_QPS - 1)];
	sv_lock(&to->lock);
	if (!to->live || to->qpn != qpn || to->type != q->type || (!ud && to->dest != q->qpn) || !sv_alive(to->proc) ||
	    (to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS)) {
		st = SV_NO_ANSWER;
	} else if (ud) { /* what nobody expects is lost */
		st = to->qkey == (w->qkey & 1u << 31 ? q->qkey : w->qkey) ? receive(q, to, w) : IBV_WC_SUCCESS;
	} else {
		if (to->state == IBV_QPS_RTR && !to->established) {
			to->established = 1;
			sv_bell_ring(to->proc, &to->async, (struct sv_note){IBV_EVENT_COMM_EST, to->qpn, 0});
		}
		st = reliable(q, to, w);
		*rnr_timer = to->rnr_timer;
		blame(to, st);
	}
	sv_unlock(&to->lock);
	sv_cq_check(to->rcq);
	return ud && st != IBV_WC_LOC_PROT_ERR ? IBV_WC_SUCCESS : st;
}
