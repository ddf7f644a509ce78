/* Receive queues: of a queue pair, or shared (SRQ). */
#include "sv.h"

struct srq {
	struct ibv_srq srq; /* first: users see it */
	uint32_t users;
};

static struct srq *mine[SV_RQS];

void sv_srq_count(struct ibv_srq *s, int n) { __atomic_add_fetch(&((struct srq *)s)->users, n, __ATOMIC_RELAXED); }

struct ibv_srq *sv_srq_of(uint32_t index, uint32_t gen)
{
	return index < SV_RQS && mine[index] && sv->rq[index].gen == gen ? &mine[index]->srq : NULL;
}

/* Who died with the lock may have died in the middle of a completion: the lock of that queue has it ended. */
void sv_rq_lock(struct sv_rq *q)
{
	if (sv_lock(&q->lock)) {
		sv_cq_lock(&sv->cq[q->cq]);
		sv_unlock(&sv->cq[q->cq].lock);
	}
}

/* The entry's completion, which sv_cqe_begin began, and the entry's end: both or, if killed here, none or both. */
void sv_rq_take(struct sv_rq *q, struct sv_cq *c, int solicited)
{
	c->redo.tail = c->tail + 1, c->redo.rq = (uint32_t)(q - sv->rq), c->redo.rq_head = q->head + 1;
	__atomic_store_n(&c->redo.valid, 1, __ATOMIC_RELEASE);
	sv_cqe_end(c, solicited);
	q->head = c->redo.rq_head;
	__atomic_store_n(&c->redo.valid, 0, __ATOMIC_RELEASE);
	sv_unlock(&c->lock);
	if (q->tail - q->head < q->limit) {
		q->limit = 0;
		sv_bell_ring(q->proc, &q->async, (struct sv_note){IBV_EVENT_SRQ_LIMIT_REACHED, (uint32_t)(q - sv->rq), q->gen});
	}
}

uint32_t sv_rq_make(uint32_t wr, uint32_t sge, struct sv_bell async)
{
	uint32_t i, cap = 4;
	uint64_t ring;

	while (cap < wr)
		cap *= 2;
	if (!(ring = sv_alloc(cap * sizeof(struct sv_rwqe))))
		return 0;
	sv_lock(&sv->alloc);
	for (i = 1; i < SV_RQS && sv->rq[i].live; i++)
		;
	if (i < SV_RQS) {
		struct sv_rq *q = &sv->rq[i];

		q->proc = sv_me, q->gen++, q->cap = cap, q->max_sge = sge, q->head = q->tail = q->limit = q->cq = 0;
		q->async = async, q->ring = ring;
		__atomic_store_n(&q->live, 1, __ATOMIC_RELEASE);
	}
	sv_unlock(&sv->alloc);
	if (i == SV_RQS)
		sv_free(ring, cap * sizeof(struct sv_rwqe));
	return i == SV_RQS ? 0 : i;
}

void sv_rq_end(uint32_t i)
{
	struct sv_rq *q = &sv->rq[i];

	sv_rq_lock(q);
	__atomic_store_n(&q->live, 0, __ATOMIC_RELEASE);
	sv_free(q->ring, q->cap * sizeof(struct sv_rwqe));
	sv_unlock(&q->lock);
}

/* Posts until *wr is NULL. ECANCELED: the queue pair, whose state that is, has failed: flush the rest. */
int sv_rq_post(struct sv_rq *q, const uint32_t *state, struct ibv_recv_wr **wr)
{
	int err = 0;

	sv_rq_lock(q);
	if (state && __atomic_load_n(state, __ATOMIC_ACQUIRE) == IBV_QPS_ERR)
		err = ECANCELED;
	for (; *wr && !err; *wr = (*wr)->next) {
		struct sv_rwqe *r = (struct sv_rwqe *)sv_at(q->ring) + (q->tail & (q->cap - 1));

		if (q->tail - q->head == q->cap)
			err = ENOMEM;
		else if ((*wr)->num_sge < 0 || (uint32_t)(*wr)->num_sge > q->max_sge)
			err = EINVAL;
		if (err)
			break;
		r->wr_id = (*wr)->wr_id;
		r->nsge = (uint32_t)(*wr)->num_sge;
		memcpy(r->sge, (*wr)->sg_list, sizeof(*r->sge) * r->nsge);
		__atomic_store_n(&q->tail, q->tail + 1, __ATOMIC_RELEASE);
	}
	sv_unlock(&q->lock);
	return err;
}

int sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = sv_rq_post(&sv->rq[srq->handle], NULL, &wr);

	*bad = wr;
	return err;
}

SV_API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct srq *s = calloc(1, sizeof(*s));
	uint32_t i = 0;

	if (s && a->attr.max_wr && a->attr.max_wr <= SV_MAX_WR && a->attr.max_sge <= SV_SGE)
		i = sv_rq_make(a->attr.max_wr, SV_SGE, sv_async_bell(pd->context));
	else
		errno = s ? EINVAL : ENOMEM;
	if (!i) {
		free(s);
		return NULL;
	}
	a->attr.max_wr = sv->rq[i].cap, a->attr.max_sge = SV_SGE;
	s->srq.context = pd->context, s->srq.srq_context = a->srq_context, s->srq.pd = pd, s->srq.handle = i;
	pthread_mutex_init(&s->srq.mutex, NULL);
	pthread_cond_init(&s->srq.cond, NULL);
	mine[i] = s;
	sv_pd_count(pd, 1);
	return &s->srq;
}

SV_API int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *a, int mask)
{
	struct sv_rq *q = &sv->rq[srq->handle];

	if (mask & ~IBV_SRQ_LIMIT || a->srq_limit > q->cap)
		return EINVAL;
	sv_rq_lock(q);
	if (mask & IBV_SRQ_LIMIT)
		q->limit = a->srq_limit;
	sv_unlock(&q->lock);
	return 0;
}

SV_API int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *a)
{
	*a = (struct ibv_srq_attr){sv->rq[srq->handle].cap, SV_SGE, sv->rq[srq->handle].limit};
	return 0;
}

SV_API int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct srq *s = (struct srq *)srq;

	if (__atomic_load_n(&s->users, __ATOMIC_RELAXED))
		return EBUSY;
	mine[srq->handle] = NULL;
	sv_rq_end(srq->handle);
	sv_pd_count(srq->pd, -1);
	free(s);
	return 0;
}
