/* Recording: the start and the completion of operations that outlast a call. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "record_request.h"
#include "record_ring.h"
#include "record_status.h"
#include "record_wait.h"

/* How many requests a call is given. */
static int64_t requests(const struct pw_call *c)
{
	const struct pw_spec *s = c->spec;

	return !c->arg[s->req] ? 0 : s->number ? pw_int(c, s->number) : 1; /* NULL is an error that MPI reports */
}

/* How many places c->ending has. */
static int64_t taken(const struct pw_call *c)
{
	return c->spec->message ? 1 : c->spec->completes == PW_FREES ? 2 : requests(c);
}

static int is_wait(const struct pw_spec *s)
{
	return s->completes >= PW_COMPLETES_ALL && s->completes <= PW_COMPLETES_SOME;
}

void pw_record_take(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;
	int needs_status = 0;
	struct pw_pending *p;
	int64_t n;

	if (s->message && s->op != PW_PROBE && c->arg[s->message]) {
		c->completing = c->inline_requests;
		c->completing[0] = pw_pending_take(PW_MESSAGES, pw_key(c, s->message, 0));
		return;
	}
	if (s->completes == PW_CANCELS && c->arg[s->req] && (p = pw_pending_see(PW_REQUESTS, pw_request(c, 0))))
		p->is_cancelled = 1;
	if (s->completes == PW_FREES && c->arg[s->req]) {
		c->completing = c->inline_requests;
		c->completing[0] = pw_pending_take(PW_REQUESTS, pw_request(c, 0));
		c->completing[1] = pw_pending_take(PW_PERSISTENTS, pw_request(c, 0));
	}
	if (!is_wait(s) || (n = requests(c)) <= 0)
		return;
	c->completing = n <= PW_INLINE_REQUESTS ? c->inline_requests : malloc((size_t)n * sizeof *c->completing);
	for (int64_t i = 0; c->completing && i < n; i++)
		if ((c->completing[i] = p = pw_pending_take(PW_REQUESTS, pw_request(c, (unsigned)i))))
			needs_status |= p->is_any || p->is_cancelled;
	if (needs_status && pw_status_is_ignored(c))
		pw_status_provide(c, s->completes == PW_COMPLETES_ONE ? 1 : n);
}

void pw_record_put_back(struct pw_call *c)
{
	static const enum pw_table freed[] = {PW_REQUESTS, PW_PERSISTENTS};

	for (int64_t i = c->completing ? taken(c) : 0; i-- > 0;) /* backwards, so that the first is taken first again */
		if (c->completing[i])
			pw_pending_put_back(c->spec->message ? PW_MESSAGES : c->spec->completes == PW_FREES
					? freed[i] : PW_REQUESTS, c->completing[i]);
	if (c->completing != c->inline_requests)
		free(c->completing);
	c->completing = NULL;
}

static void matched(uint32_t number, int32_t peer, int32_t tag)
{
	struct pw_record r = {.op = PW_MATCH, .req = number, .peer = peer, .tag = tag};

	pw_record_emit(&r);
}

/* MPI_Comm_idup has completed, and its communicator can be used. */
static void made(const struct pw_pending *p)
{
	pw_word handle = p->is_fortran ? pw_mpi.comm_f2c(*(const int *)p->made)
			 : pw_mpi.handle_bytes == 4 ? *(const uint32_t *)p->made : *(const pw_word *)p->made;

	pw_comm_created(handle, p->parent, PW_NONBLOCKING);
}

/* A request has ended; status may be NULL. */
static void end(const struct pw_call *c, struct pw_pending *p, struct pw_record *r, const int *status)
{
	/* MPICH 4.0 leaves the status of an MPI_Isendrecv empty. */
	int is_right = status && p->is_any && (p->tag == PW_ANY_TAG || p->tag == pw_status_tag(status));
	int source = is_right ? pw_status_source(status) : -1;

	if (p->made) {
		if (c->succeeded)
			made(p);
		pw_pending_end(p);
		return;
	}
	if (p->is_cancelled && status && pw_status_is_cancelled(status))
		matched(p->number, PW_NO_PEER, 0);
	else if (source >= 0 && p->comm && source < p->comm->peers)
		matched(p->number, pw_world_rank(p->comm, source), pw_status_tag(status));
	r->req = p->number;
	pw_record_emit(r);
	pw_pending_end(p);
}

static void end_at(struct pw_call *c, struct pw_record *r, int64_t i, const int *status)
{
	if (i < 0 || i >= requests(c) || !c->completing[i]) /* MPI_UNDEFINED, or not recorded */
		return;
	end(c, c->completing[i], r, status);
	c->completing[i] = NULL;
}

/* A wait line for each request that has completed. */
static void record_wait(struct pw_call *c, struct pw_record *r)
{
	const struct pw_spec *s = c->spec;
	const int *which = s->which ? (const int *)c->arg[s->which] : NULL;
	int64_t n = requests(c), done = n;
	int has_statuses = !pw_status_is_ignored(c);

	r->op = PW_WAIT;
	if (!c->succeeded) { /* a request whose handle has changed has completed, well or not */
		for (int64_t i = 0; i < n; i++)
			if (c->completing[i] && pw_request(c, (unsigned)i) != c->completing[i]->key)
				end_at(c, r, i, NULL);
		return;
	}
	if (s->flag && !*(const int *)c->arg[s->flag])
		done = 0;
	else if (s->completes == PW_COMPLETES_ONE)
		done = 1;
	else if (s->completes == PW_COMPLETES_SOME)
		done = *(const int *)c->arg[s->some];
	for (int64_t k = 0; k < done; k++)
		end_at(c, r, s->completes == PW_COMPLETES_ALL ? k : which[k] - (c->language == PW_FORTRAN),
				has_statuses ? pw_status_at(c, k) : NULL);
}

/* A freed request, for which nobody will wait. */
static void record_free(struct pw_call *c, struct pw_record *r)
{
	struct pw_pending *p = c->completing[0];

	r->op = PW_FREE;
	pw_pending_end(c->completing[1]);
	if (p && p->is_cancelled) /* whether it was cancelled is never known */
		__atomic_add_fetch(&pw.recorder->left_out[PW_LEFT_CANCELLED], 1, __ATOMIC_RELAXED);
	if (p) {
		r->req = p->number;
		pw_record_emit(r);
		pw_pending_end(p);
	}
	c->completing = NULL;
}

static void record_starts(const struct pw_call *c, struct pw_record *now)
{
	int64_t n = requests(c);

	for (int64_t k = 0; k < n; k++) {
		uint64_t key = pw_request(c, (unsigned)k);
		const struct pw_pending *made = pw_pending_see(PW_PERSISTENTS, key);
		struct pw_pending *p = made ? pw_pending_new(made->comm) : NULL;
		struct pw_record r;

		if (!p) {
			__atomic_add_fetch(&pw.recorder->left_out[PW_LEFT_PERSISTENT], 1, __ATOMIC_RELAXED);
			continue;
		}
		r = made->record;
		r.start_ns = now->start_ns, r.end_ns = now->end_ns;
		r.start_cpu_ns = now->start_cpu_ns, r.end_cpu_ns = now->end_cpu_ns;
		r.changes = now->changes;
		memcpy(r.frames, now->frames, sizeof r.frames);
		p->number = r.req = pw_pending_number();
		p->is_any = made->is_any;
		p->tag = made->tag;
		pw_pending_put(PW_REQUESTS, key, p);
		pw_record_emit(&r);
		/* One call starts several; as records they follow each other. */
		now->start_ns = now->end_ns;
		now->start_cpu_ns = now->end_cpu_ns;
	}
}

/* The one-sided operations on a window, or on one target in it, have completed. */
static void record_accesses(const struct pw_call *c, struct pw_record *r)
{
	struct pw_comm *win = pw_comm_find(pw_win(c), 1);
	int32_t target = win && c->spec->peer ? pw_world_rank(win, pw_int(c, c->spec->peer)) : PW_NO_PEER;
	struct pw_pending *others = NULL, *p;
	unsigned op = r->op;

	r->op = PW_WAIT;
	while (win && (p = pw_pending_take(PW_RMA, PW_RMA_KEY(win)))) {
		if (c->spec->peer && p->record.peer != target) {
			p->next = others;
			others = p;
			continue;
		}
		end(c, p, r, NULL);
	}
	while ((p = others)) { /* the last first, so that their order is as before */
		others = p->next;
		pw_pending_put_back(PW_RMA, p);
	}
	r->op = op;
	r->req = 0;
	r->start_ns = r->end_ns; /* the synchronization of the call itself follows */
	r->start_cpu_ns = r->end_cpu_ns;
	pw_comm_drop(win);
}

int pw_record_ended(struct pw_call *c, struct pw_record *r)
{
	const struct pw_spec *s = c->spec;

	if (is_wait(s) && c->completing)
		record_wait(c, r);
	else if (c->succeeded && s->completes == PW_FREES && c->completing)
		record_free(c, r);
	else if (c->succeeded && s->completes == PW_STARTS)
		record_starts(c, r);
	else if (c->succeeded && s->completes == PW_COMPLETES_RMA)
		record_accesses(c, r);
	return s->completes != PW_COMPLETES_RMA;
}
