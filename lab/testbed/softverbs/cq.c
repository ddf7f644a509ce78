/* Completion queues and completion channels. */
#include "sv.h"

struct cq {
	struct ibv_cq cq; /* first: users see it */
	uint32_t users, got; /* queue pairs; events given out */
};
struct channel {
	struct ibv_comp_channel ch;
	struct sv_bell bell;
};

static struct cq *mine[SV_CQS];
static pthread_mutex_t mine_lock = PTHREAD_MUTEX_INITIALIZER;

void sv_cq_count(struct ibv_cq *cq, int n) { __atomic_add_fetch(&((struct cq *)cq)->users, n, __ATOMIC_RELAXED); }

/* With mine_lock held, so that it is not destroyed. */
static struct cq *find(uint32_t index, uint32_t gen)
{
	return index < SV_CQS && mine[index] && sv->cq[index].gen == gen ? mine[index] : NULL;
}

struct ibv_cq *sv_cq_of(uint32_t index, uint32_t gen)
{
	struct cq *q;

	pthread_mutex_lock(&mine_lock);
	q = find(index, gen);
	pthread_mutex_unlock(&mine_lock);
	return q ? &q->cq : NULL;
}

/* A process may have died between the two queues of a receive: the rest of its steps is done for it. */
void sv_cq_lock(struct sv_cq *q)
{
	if (sv_lock(&q->lock) && q->redo.valid) {
		__atomic_store_n(&q->tail, q->redo.tail, __ATOMIC_RELEASE);
		sv->rq[q->redo.rq].head = q->redo.rq_head;
		__atomic_store_n(&q->redo.valid, 0, __ATOMIC_RELEASE);
	}
}

struct sv_cqe *sv_cqe_begin(struct sv_cq *q)
{
	struct sv_cqe *e;

	sv_cq_lock(q);
	if (q->live && !q->overrun && q->tail - q->head == q->cap) {
		__atomic_store_n(&q->overrun, SV_OVERRUN, __ATOMIC_RELEASE);
		sv_bell_ring(q->proc, &q->async, (struct sv_note){IBV_EVENT_CQ_ERR, (uint32_t)(q - sv->cq), q->gen});
	}
	if (!q->live || q->overrun) {
		sv_unlock(&q->lock);
		return NULL;
	}
	e = (struct sv_cqe *)sv_at(q->ring) + (q->tail & (q->cap - 1));
	memset(e, 0, sizeof(*e));
	return e;
}

void sv_cqe_end(struct sv_cq *q, int solicited)
{
	uint32_t armed = q->armed;

	__atomic_store_n(&q->tail, q->redo.valid ? q->redo.tail : q->tail + 1, __ATOMIC_RELEASE);
	if (armed == 1 || (armed == 2 && solicited)) {
		q->armed = 0;
		if (q->channel.serial)
			sv_bell_ring(q->proc, &q->channel, (struct sv_note){0, (uint32_t)(q - sv->cq), q->gen});
	}
}

/*
 * After an overrun nobody knows what the queue has lost: its queue pairs go to ERR (InfiniBand, volume 1, 11.6.3).
 * Whoever comes by does that, with no lock of shared memory, because other queue pairs' locks are needed.
 */
void sv_cq_check(uint32_t cq)
{
	struct sv_cq *c = &sv->cq[cq];
	uint32_t expected = SV_OVERRUN;

	if (__atomic_load_n(&c->overrun, __ATOMIC_ACQUIRE) != SV_OVERRUN)
		return;
	for (struct sv_qp *q = sv->qp; q < sv->qp + SV_QPS; q++) {
		if (!q->live || (q->scq != cq && q->rcq != cq))
			continue;
		sv_lock(&q->lock);
		if (q->live && (q->scq == cq || q->rcq == cq))
			sv_qp_fail(q, IBV_EVENT_QP_FATAL);
		sv_unlock(&q->lock);
	}
	__atomic_compare_exchange_n(&c->overrun, &expected, SV_OVERRUN_TOLD, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void sv_complete(uint32_t cq, const struct sv_cqe *c, int solicited)
{
	struct sv_cq *q = &sv->cq[cq];
	struct sv_cqe *e = sv_cqe_begin(q);

	if (!e) {
		sv_cq_check(cq);
		return;
	}
	*e = *c;
	sv_cqe_end(q, solicited);
	sv_unlock(&q->lock);
}

/* What a queue pair has completed and nobody polled goes with it. */
void sv_cq_forget(uint32_t cq, uint32_t qpn)
{
	struct sv_cq *q = &sv->cq[cq];

	sv_cq_lock(q);
	for (uint32_t i = q->head; i != q->tail; i++) {
		struct sv_cqe *e = (struct sv_cqe *)sv_at(q->ring) + (i & (q->cap - 1));

		if (e->qpn == qpn)
			e->qpn = 0;
	}
	sv_unlock(&q->lock);
}

int sv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct sv_cq *q = &sv->cq[cq->handle];
	int got = 0;

	if (!sv_engine)
		sv_retry_waiting();
	if (__atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) == q->head)
		return 0;
	sv_cq_lock(q);
	for (; got < n && q->head != q->tail; q->head++) {
		const struct sv_cqe *e = (struct sv_cqe *)sv_at(q->ring) + (q->head & (q->cap - 1));

		if (e->qpn)
			wc[got++] = (struct ibv_wc){.wr_id = e->wr_id, .status = (enum ibv_wc_status)e->status,
				.opcode = (enum ibv_wc_opcode)e->opcode, .byte_len = e->byte_len, .imm_data = e->imm,
				.qp_num = e->qpn, .src_qp = e->src_qp, .wc_flags = e->flags, .slid = 1};
	}
	sv_unlock(&q->lock);
	return got;
}

int sv_req_notify_cq(struct ibv_cq *cq, int solicited)
{
	struct sv_cq *q = &sv->cq[cq->handle];

	sv_cq_lock(q);
	if (!solicited || !q->armed)
		q->armed = solicited ? 2 : 1;
	sv_unlock(&q->lock);
	return 0;
}

SV_API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	struct channel *h = calloc(1, sizeof(*h));
	int err = h ? sv_bell_make(&h->ch.fd, &h->bell) : ENOMEM;

	if (err) {
		free(h);
		return errno = err, NULL;
	}
	h->ch.context = c;
	return &h->ch;
}

SV_API int ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	struct channel *h = (struct channel *)ch;

	if (__atomic_load_n(&ch->refcnt, __ATOMIC_RELAXED))
		return EBUSY;
	close(ch->fd);
	close(h->bell.fd);
	free(h);
	return 0;
}

SV_API int ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **context)
{
	for (;;) {
		struct sv_note n;
		struct cq *q;

		if (read(ch->fd, &n, sizeof(n)) != sizeof(n))
			return -1;
		pthread_mutex_lock(&mine_lock);
		if ((q = find(n.index, n.gen)))
			q->got++;
		pthread_mutex_unlock(&mine_lock);
		if (!q)
			continue; /* destroyed */
		*cq = &q->cq;
		*context = q->cq.cq_context;
		return 0;
	}
}

SV_API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

SV_API struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *context, struct ibv_comp_channel *ch,
				    int vector)
{
	struct cq *cq;
	struct sv_cq *q = NULL;
	uint32_t i, cap = 16;
	uint64_t ring;

	if (cqe < 1 || (uint32_t)cqe > SV_MAX_CQE || vector < 0 || vector >= c->num_comp_vectors)
		return errno = EINVAL, NULL;
	while (cap < (uint32_t)cqe)
		cap *= 2;
	cq = calloc(1, sizeof(*cq));
	ring = cq ? sv_alloc(cap * sizeof(struct sv_cqe)) : 0;
	if (!ring) {
		free(cq);
		return errno = ENOMEM, NULL;
	}
	sv_lock(&sv->alloc);
	for (i = 1; i < SV_CQS && sv->cq[i].live; i++)
		;
	if (i < SV_CQS) {
		q = &sv->cq[i];
		q->proc = sv_me, q->gen++, q->cap = cap, q->head = q->tail = q->armed = q->overrun = q->redo.valid = 0;
		q->channel = ch ? ((struct channel *)ch)->bell : (struct sv_bell){-1, 0};
		q->async = sv_async_bell(c), q->ring = ring;
		__atomic_store_n(&q->live, 1, __ATOMIC_RELEASE);
	}
	sv_unlock(&sv->alloc);
	if (!q) {
		sv_free(ring, cap * sizeof(struct sv_cqe));
		free(cq);
		return errno = ENOMEM, NULL;
	}
	if (ch)
		__atomic_add_fetch(&ch->refcnt, 1, __ATOMIC_RELAXED);
	cq->cq.context = c, cq->cq.channel = ch, cq->cq.cq_context = context, cq->cq.handle = i, cq->cq.cqe = (int)cap;
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	pthread_mutex_lock(&mine_lock);
	mine[i] = cq;
	pthread_mutex_unlock(&mine_lock);
	return &cq->cq;
}

SV_API int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct sv_cq *q = &sv->cq[cq->handle];
	struct cq *c = (struct cq *)cq;

	if (__atomic_load_n(&c->users, __ATOMIC_RELAXED))
		return EBUSY;
	pthread_mutex_lock(&mine_lock);
	mine[cq->handle] = NULL;
	pthread_mutex_unlock(&mine_lock);
	pthread_mutex_lock(&cq->mutex);
	while (cq->comp_events_completed != c->got)
		pthread_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
	sv_cq_lock(q);
	__atomic_store_n(&q->live, 0, __ATOMIC_RELEASE);
	sv_free(q->ring, q->cap * sizeof(struct sv_cqe));
	sv_unlock(&q->lock);
	if (cq->channel)
		__atomic_sub_fetch(&cq->channel->refcnt, 1, __ATOMIC_RELAXED);
	free(c);
	return 0;
}

SV_API int ibv_resize_cq(struct ibv_cq *cq, int n)
{
	struct sv_cq *q = &sv->cq[cq->handle];
	uint32_t cap = 16, old_cap, count;
	uint64_t ring, old;

	if (n < 1 || (uint32_t)n > SV_MAX_CQE)
		return EINVAL;
	while (cap < (uint32_t)n)
		cap *= 2;
	if (!(ring = sv_alloc(cap * sizeof(struct sv_cqe))))
		return ENOMEM;
	sv_cq_lock(q);
	if ((count = q->tail - q->head) > cap) {
		sv_unlock(&q->lock);
		sv_free(ring, cap * sizeof(struct sv_cqe));
		return EINVAL;
	}
	for (uint32_t i = 0; i < count; i++)
		((struct sv_cqe *)sv_at(ring))[i] = ((struct sv_cqe *)sv_at(q->ring))[(q->head + i) & (q->cap - 1)];
	old = q->ring, old_cap = q->cap;
	__atomic_store_n(&q->live, 0, __ATOMIC_RELEASE); /* a process killed below leaves nothing half done to others */
	q->ring = ring, q->cap = cap, q->head = 0, q->tail = count;
	__atomic_store_n(&q->live, 1, __ATOMIC_RELEASE);
	cq->cqe = (int)cap;
	sv_unlock(&q->lock);
	sv_free(old, old_cap * sizeof(struct sv_cqe));
	return 0;
}
