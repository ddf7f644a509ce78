/*
 * Announced buffers: which memory the program has passed to which MPI call. A transport
 * registers a buffer inside whatever call makes progress, or on a thread of its own. So a
 * registration is attributed to a call by its address.
 *
 * Budget of pw_announce_call and pw_find_announced: no system call, no allocation, no lock.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "announce.h"
#include "extent.h"
#include "site.h"
#include "thread.h"

static void set_call(struct pw_announced *p, uint64_t seq, uint64_t op, struct pw_site *site)
{
	__atomic_store_n(&p->call.seq, seq, __ATOMIC_RELAXED);
	__atomic_store_n(&p->call.op, op, __ATOMIC_RELAXED);
	__atomic_store_n(&p->call.site, site, __ATOMIC_RELEASE); /* what it points to is there */
}

/*
 * Whole pages, because a transport that registers a long buffer in chunks rounds them to pages.
 *
 * Other threads may be reading, so an entry has no start while it changes. A reader in that
 * moment may see the call of another buffer, which misleads nobody but the predictor.
 */
static inline void add(struct pw_thread *t, uint64_t start, uint64_t end, uint64_t op, struct pw_site *site)
{
	uint32_t n = pw_announced_count(t);
	struct pw_announced *p = &t->announced[n & (PW_ANNOUNCED - 1)];

	__atomic_store_n(&p->start, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->end, (end + pw.page_mask) & ~pw.page_mask, __ATOMIC_RELEASE); /* not before start is 0 */
	set_call(p, t->seq, op, site);
	__atomic_store_n(&p->start, start & ~pw.page_mask, __ATOMIC_RELEASE);
	/* orders nothing: each entry says itself whether it is valid */
	__atomic_store_n(&t->announced_count, n + 1, __ATOMIC_RELAXED);
}

/* The first message that comes near the threshold has the server prepare for those that reach it. */
static __attribute__((noinline)) void come_near(void)
{
	__atomic_store_n(&pw.notice, pw.threshold, __ATOMIC_RELAXED);
	__atomic_store_n(&pw.near, 1, __ATOMIC_RELAXED); /* the doorbell orders it */
	pw_ring_doorbell();
}

static inline void note_size(struct pw_thread *t, uint64_t bytes)
{
	if (t->largest_seq != t->seq || bytes > t->largest) {
		t->largest_seq = t->seq;
		t->largest = bytes;
	}
}

static inline __attribute__((always_inline)) void announce_buffer(struct pw_call *c, const struct pw_buffer *b,
		struct pw_site **site)
{
	struct pw_thread *t = c->thread;
	struct pw_extent e;
	int found = pw_extent_of(c, b, &e);

	if (found == PW_UNKNOWN)
		c->unknown = 1;
	if (found != 1 || e.bytes < pw_notice())
		return;
	if (pw_unlikely(pw_notice() < pw.threshold))
		come_near();
	if (e.bytes < pw.threshold)
		return;
	if (!*site)
		*site = pw_site_here(t, t->frame);
	if (e.end - e.start != e.bytes)
		t->packed_seq = t->seq;
	note_size(t, e.bytes);
	add(t, e.start, e.end, t->op, *site);
}

/* Persistent requests. Their buffers are announced again at each start. */
#define PERSISTENT 1024u
static pthread_mutex_t persistent_lock = PTHREAD_MUTEX_INITIALIZER; /* of persistent; a leaf, held for a few loads */
struct persistent {
	uint64_t request;
	struct pw_extent send, recv; /* of no bytes where there is none */
	int is_collective;
};
static struct persistent persistent[PERSISTENT];

static unsigned place_of(uint64_t request) { return (unsigned)((request >> 1) * 0x9e3779b97f4a7c15ull >> 54); }

#define PROBES 16u

/* The extent of a buffer that is large enough, or none. */
static struct pw_extent large_extent_of(const struct pw_call *c, const struct pw_buffer *b)
{
	struct pw_extent e;

	if (!b->form || pw_extent_of(c, b, &e) != 1 || e.bytes < pw.threshold)
		return (struct pw_extent){0};
	return e;
}

void pw_announce_persistent(const struct pw_call *c)
{
	const struct pw_spec *s = c->spec;
	struct persistent p = {.is_collective = !s->tag && !s->from};

	if (!pw_is_in_place(c, s->send.buf)) /* else the data lies in the other */
		p.send = large_extent_of(c, &s->send);
	p.recv = large_extent_of(c, &s->recv);
	if (!p.send.bytes && !p.recv.bytes)
		return;
	p.request = pw_request(c, 0);
	pthread_mutex_lock(&persistent_lock);
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned at = (place_of(p.request) + i) % PERSISTENT;

		if (persistent[at].request && persistent[at].request != p.request)
			continue;
		persistent[at] = p;
		break; /* if no entry is free, its registrations pass through */
	}
	pthread_mutex_unlock(&persistent_lock);
}

static void add_extent(struct pw_thread *t, const struct pw_extent *e, struct pw_site *site)
{
	if (!e->bytes)
		return;
	note_size(t, e->bytes);
	add(t, e->start, e->end, PW_START, site);
}

static void each_persistent(const struct pw_call *c, uint64_t request, struct pw_site *site)
{
	struct pw_thread *t = c->thread;

	pthread_mutex_lock(&persistent_lock);
	for (unsigned i = 0; i < PROBES; i++) {
		struct persistent *p = &persistent[(place_of(request) + i) % PERSISTENT];

		if (!request || p->request != request)
			continue;
		if (c->spec->completes == PW_FREES) {
			p->request = 0;
			break;
		}
		if (p->is_collective)
			t->packed_seq = t->seq; /* MPI may copy the data */
		add_extent(t, &p->send, site);
		add_extent(t, &p->recv, site);
		break;
	}
	pthread_mutex_unlock(&persistent_lock);
}

/* Not inline: its registers would be saved at every call. */
static __attribute__((noinline)) void each_request(const struct pw_call *c)
{
	struct pw_thread *t = c->thread;
	int64_t n = c->spec->number ? pw_int(c, c->spec->number) : 1;
	struct pw_site *site = c->spec->completes == PW_FREES ? NULL : pw_site_here(t, t->frame);

	if (c->spec->ready) {
		each_persistent(c, pw_ready_request(c), site);
		return;
	}
	if (!c->arg[c->spec->req])
		return; /* MPI will complain */
	for (int64_t k = 0; k < n; k++)
		each_persistent(c, pw_request(c, (unsigned)k), site);
}

void pw_announce_call(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;
	struct pw_site *site = NULL;

	if (pw_is_of_persistent(s)) {
		each_request(c);
		return;
	}
	if (s->creates == PW_PERSISTENT)
		return; /* announced when it is started */
	if (s->send.form && !pw_is_in_place(c, s->send.buf))
		announce_buffer(c, &s->send, &site);
	if (s->recv.form && (s->recv.buf != s->send.buf || !site))
		announce_buffer(c, &s->recv, &site);
}

static const struct pw_announced *find_in(const struct pw_thread *t, uint64_t start, uint64_t end)
{
	uint32_t n = pw_announced_count(t), most = n < PW_ANNOUNCED ? n : PW_ANNOUNCED;

	for (uint32_t i = 1; i <= most; i++) {
		const struct pw_announced *p = &t->announced[(n - i) & (PW_ANNOUNCED - 1)];

		if (pw_announced_contains(p, start, end))
			return p;
	}
	return NULL;
}

/*
 * Whether memory that was not announced may be a copy that MPI makes of an announced
 * buffer. Anything larger is a pool that the transport creates while it
 * connects, and is left alone.
 */
static int uses_own_memory(const struct pw_thread *t, uint64_t bytes)
{
	if (t->largest_seq != t->seq || bytes > t->largest)
		return 0;
	return (t->op >= PW_BCAST && t->op <= PW_ALLTOALLV) || (t->op >= PW_GATHER && t->op <= PW_ACCUMULATE) ||
			t->op == PW_FILE || t->op == PW_OTHER ||
	       t->packed_seq == t->seq;
}

const struct pw_announced *pw_find_older_announced(struct pw_thread *t, uint64_t start, uint64_t end)
{
	const struct pw_announced *p = find_in(t, start, end);

	for (struct pw_thread *o = __atomic_load_n(&pw.threads, __ATOMIC_ACQUIRE); o && !p; o = o->next)
		if (o != t)
			p = find_in(o, start, end);
	if (p || !t->depth || !uses_own_memory(t, end - start))
		return p;
	if (pw_announced_call(&t->internal).seq != t->seq)
		set_call(&t->internal, t->seq, t->op, pw_site_here(t, t->frame));
	return &t->internal;
}

/* Direct-mapped. The words of an entry are of two registrations at worst, which only misleads: what is cached is safe
 * for any memory. */
#define RETURNED 256u
static struct {
	uint64_t start, bytes;
} returned[RETURNED];

static unsigned returned_place(uint64_t start) { return (unsigned)(start * 0x9e3779b97f4a7c15ull >> 56); }

void pw_note_returned(uint64_t start, uint64_t bytes)
{
	unsigned at = returned_place(start);

	__atomic_store_n(&returned[at].start, start, __ATOMIC_RELAXED);
	__atomic_store_n(&returned[at].bytes, bytes, __ATOMIC_RELAXED);
}

const struct pw_announced *pw_find_returned(struct pw_thread *t, uint64_t start, uint64_t bytes, void *caller)
{
	unsigned at = returned_place(start);

	if (__atomic_load_n(&returned[at].start, __ATOMIC_RELAXED) != start ||
			__atomic_load_n(&returned[at].bytes, __ATOMIC_RELAXED) != bytes)
		return NULL;
	if (t->depth)
		set_call(&t->internal, t->seq, t->op, pw_site_here(t, t->frame));
	else
		set_call(&t->internal, t->seq, PW_OTHER, pw_site_at(t, (uint64_t)caller));
	return &t->internal;
}
