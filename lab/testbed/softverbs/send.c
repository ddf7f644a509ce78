/* The send queue: posting, and requests that wait because the other side is not ready or does not answer. */
#include "sv.h"
#include <time.h>

static struct sv_qp_obj *waiters; /* queue pairs with requests that wait */
static uint32_t nwaiters;
static uint64_t earliest; /* no request is to be repeated before */
static uint64_t added; /* the same of those that came during a pass */
/* The order of locks: pass, waiters_lock, a queue pair's. Who has pass takes requests out of queues. */
static pthread_mutex_t pass = PTHREAD_MUTEX_INITIALIZER, waiters_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t flushing; /* threads that want pass: one that is always busy would take it again before they wake */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The codes of InfiniBand, volume 1, 9.7.5.2.8, in units of 10 us. */
static uint64_t rnr_ns(uint32_t timer)
{
	static const uint32_t unit[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512,
		768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return unit[timer & 31] * 10000ull;
}

/* 1 if the request is over, well or not; 0 if it has to wait. */
static int step(struct sv_qp_obj *p, struct sv_work *w)
{
	const struct ibv_qp_attr *a = &p->attr;
	uint32_t timer = 0;
	int st = sv_respond(p, w, &timer);

	if (st == SV_NOT_READY) {
		if (w->rnr_left || a->rnr_retry == 7) {
			w->rnr_left -= a->rnr_retry != 7;
			w->retry_at = now() + rnr_ns(timer);
			return 0;
		}
		st = IBV_WC_RNR_RETRY_EXC_ERR;
	} else if (st == SV_NO_ANSWER) {
		if (w->retries_left || !a->timeout) { /* a timeout of 0 is none */
			w->retries_left -= w->retries_left > 0;
			w->retry_at = now() + (a->timeout ? 4096ull << a->timeout : 10000000);
			return 0;
		}
		st = IBV_WC_RETRY_EXC_ERR;
	}
	if (st == IBV_WC_SUCCESS)
		sv_stats_request(w->opcode, w->bytes);
	if (st != IBV_WC_SUCCESS && st != IBV_WC_WR_FLUSH_ERR) {
		if (sv_debug)
			sv_say("queue pair %#x: request %u of %lu bytes: %s", p->qp.qp_num, w->opcode, (unsigned long)w->bytes,
			       ibv_wc_status_str((enum ibv_wc_status)st));
		sv_lock(&p->s->lock);
		sv_qp_fail(p->s, SV_QUIETLY);
		sv_unlock(&p->s->lock);
	}
	if (st != IBV_WC_SUCCESS || p->sig_all || w->flags & IBV_SEND_SIGNALED) {
		struct sv_cqe e = {.wr_id = w->wr_id, .status = (uint32_t)st, .opcode = sv_wc_opcode(w->opcode),
				   .qpn = p->qp.qp_num, .byte_len = (uint32_t)w->bytes};

		sv_complete(p->s->scq, &e, st != IBV_WC_SUCCESS);
	}
	return 1;
}

/*
 * Those whose time has come, but none that was posted meanwhile: other queue pairs are next. Returns when the first of
 * the rest has its time. The caller holds pass and p->lock, which is not held while data moves: the program goes on
 * posting, as it can beside an adapter.
 */
static uint64_t retry(struct sv_qp_obj *p, uint64_t at)
{
	const struct sv_work *last = p->last;
	struct sv_work *w;
	int over = 0;

	while ((w = p->first) && !over) {
		int failed = __atomic_load_n(&p->s->state, __ATOMIC_ACQUIRE) == IBV_QPS_ERR, done;

		if (w->retry_at > at && !failed)
			return w->retry_at;
		pthread_mutex_unlock(&p->lock);
		done = step(p, w);
		pthread_mutex_lock(&p->lock);
		if (!done)
			return w->retry_at;
		over = w == last;
		if (!(p->first = w->next))
			p->last = NULL;
		p->pending--;
		free(w);
	}
	return p->first ? p->first->retry_at : UINT64_MAX;
}

uint64_t sv_retry_waiting(void)
{
	uint64_t at, due, first = UINT64_MAX;
	struct sv_qp_obj *p, *following;

	if (!__atomic_load_n(&nwaiters, __ATOMIC_ACQUIRE))
		return UINT64_MAX;
	at = now();
	if (at < (due = __atomic_load_n(&earliest, __ATOMIC_RELAXED)))
		return due;
	if (__atomic_load_n(&flushing, __ATOMIC_ACQUIRE) || pthread_mutex_trylock(&pass))
		return at + 100000; /* another thread is at it */
	pthread_mutex_lock(&waiters_lock);
	p = waiters;
	waiters = NULL;
	added = UINT64_MAX; /* earliest stays: who looks at it now has to come again */
	pthread_mutex_unlock(&waiters_lock);
	for (; p; p = following) {
		uint64_t next;
		int waits;

		following = p->next_waiting;
		pthread_mutex_lock(&p->lock);
		next = retry(p, at);
		first = next < first ? next : first;
		if (!(waits = p->first != NULL)) {
			p->queued = 0;
			__atomic_sub_fetch(&nwaiters, 1, __ATOMIC_RELEASE);
		}
		pthread_mutex_unlock(&p->lock);
		if (waits) { /* still queued: nobody else adds it */
			pthread_mutex_lock(&waiters_lock);
			p->next_waiting = waiters;
			waiters = p;
			pthread_mutex_unlock(&waiters_lock);
		}
	}
	pthread_mutex_lock(&waiters_lock);
	first = added < first ? added : first;
	__atomic_store_n(&earliest, first, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&waiters_lock);
	pthread_mutex_unlock(&pass);
	return first;
}

/* The queue pair is in ERR, so that all that waits is completed as flushed; silently: it goes, and they with it. */
void sv_send_flush(struct sv_qp_obj *p, int silently)
{
	__atomic_add_fetch(&flushing, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&pass); /* what moves ends first */
	__atomic_sub_fetch(&flushing, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&waiters_lock); /* until p is no waiter: what is posted meanwhile relies on that */
	pthread_mutex_lock(&p->lock);
	while (!silently && p->first)
		retry(p, UINT64_MAX);
	for (struct sv_work *w; (w = p->first); free(w))
		p->first = w->next;
	p->last = NULL;
	p->pending = 0;
	for (struct sv_qp_obj **from = &waiters; p->queued; from = &(*from)->next_waiting)
		if (*from == p) {
			*from = p->next_waiting;
			p->queued = 0;
			__atomic_sub_fetch(&nwaiters, 1, __ATOMIC_RELEASE);
			break;
		}
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&waiters_lock);
	pthread_mutex_unlock(&pass);
}

static void enqueue(struct sv_qp_obj *p)
{
	int wake = 0;

	pthread_mutex_lock(&waiters_lock);
	pthread_mutex_lock(&p->lock);
	if (!p->queued && p->first) {
		p->queued = 1;
		p->next_waiting = waiters;
		waiters = p;
		added = p->first->retry_at < added ? p->first->retry_at : added;
		if (!__atomic_fetch_add(&nwaiters, 1, __ATOMIC_RELEASE) || p->first->retry_at < earliest) {
			__atomic_store_n(&earliest, p->first->retry_at, __ATOMIC_RELAXED);
			wake = 1;
		}
	}
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&waiters_lock);
	if (wake)
		sv_thread_wake();
}

static int copy_inline(struct sv_work *w, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (w->bytes + s->length > SV_INLINE)
			return EINVAL;
		memcpy(w->data + w->bytes, (void *)(uintptr_t)s->addr, s->length);
		w->bytes += s->length;
	}
	return 0;
}

static int post_one(struct sv_qp_obj *p, const struct ibv_send_wr *wr)
{
	int ud = p->s->type == IBV_QPT_UD;
	int atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct sv_work w, *kept;

	if (wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD || wr->num_sge < 0 || wr->num_sge > SV_SGE ||
	    (ud && wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM))
		return EINVAL;
	if (p->pending >= p->max_send_wr)
		return ENOMEM;
	w.next = NULL;
	w.wr_id = wr->wr_id, w.opcode = wr->opcode, w.flags = wr->send_flags, w.imm = wr->imm_data, w.bytes = 0, w.nsge = 0;
	w.rnr_left = p->attr.rnr_retry, w.retries_left = p->attr.retry_cnt + 1u, w.retry_at = 0;
	if (atomic) {
		w.remote = wr->wr.atomic.remote_addr, w.rkey = wr->wr.atomic.rkey;
		w.compare_add = wr->wr.atomic.compare_add, w.swap = wr->wr.atomic.swap;
	} else if (ud) {
		w.qpn = wr->wr.ud.remote_qpn, w.qkey = wr->wr.ud.remote_qkey;
	} else {
		w.remote = wr->wr.rdma.remote_addr, w.rkey = wr->wr.rdma.rkey;
	}
	if (w.flags & IBV_SEND_INLINE) {
		if (wr->opcode == IBV_WR_RDMA_READ || atomic || copy_inline(&w, wr))
			return EINVAL;
	} else {
		for (; w.nsge < wr->num_sge; w.bytes += wr->sg_list[w.nsge++].length)
			w.sge[w.nsge] = wr->sg_list[w.nsge];
	}
	if (!p->first && !(sv_engine && w.bytes >= SV_LARGE) && step(p, &w))
		return 0;
	if (!(kept = malloc(sizeof(*kept))))
		return ENOMEM;
	*kept = w;
	if (p->last)
		p->last->next = kept;
	else
		p->first = kept;
	p->last = kept;
	p->pending++;
	return 0;
}

int sv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sv_qp_obj *p = (struct sv_qp_obj *)qp;
	int err = 0, queue;

	pthread_mutex_lock(&p->lock);
	if (p->s->state != IBV_QPS_RTS && p->s->state != IBV_QPS_ERR)
		err = EINVAL;
	for (; wr && !err; wr = wr->next)
		if ((err = post_one(p, wr)))
			break;
	if (err)
		*bad = wr;
	queue = p->first && !p->queued;
	pthread_mutex_unlock(&p->lock);
	if (queue)
		enqueue(p);
	return err;
}

int sv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_qp_obj *p = (struct sv_qp_obj *)qp;
	int err;

	if (p->s->srq || p->s->state == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	err = sv_rq_post(&sv->rq[p->s->rq], &p->s->state, &wr);
	if (err == ECANCELED)
		for (err = 0; wr; wr = wr->next) {
			struct sv_cqe e = {.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV,
				.qpn = qp->qp_num};

			sv_complete(p->s->rcq, &e, 1);
		}
	if (err)
		*bad = wr;
	return err;
}
