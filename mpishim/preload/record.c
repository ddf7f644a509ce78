/*
 * Recording (PINWHEEL_RECORD). Each buffer of each call of the thread that called MPI_Init
 * becomes one pw_record, in order of time, in a ring that the Go side empties
 * into a .pwt file. trace.Record documents the fields.
 */
#define _GNU_SOURCE
#include <string.h>

#include "extent.h"
#include "record.h"
#include "record_request.h"
#include "record_ring.h"
#include "record_status.h"
#include "record_wait.h"
#include "site.h"

static void left_out(enum pw_left_out why) { __atomic_add_fetch(&pw.recorder->left_out[why], 1, __ATOMIC_RELAXED); }

/* Whether a call moves data, or waits for others that call it too. */
static int communicates(const struct pw_spec *s)
{
	return s->op < PW_FREE && s->op != PW_WAIT && s->op != PW_PROBE && s->creates != PW_PERSISTENT;
}

void pw_record_left_out(const struct pw_call *c)
{
	if (communicates(c->spec) || c->spec->completes == PW_STARTS)
		left_out(PW_LEFT_THREADS);
}

void pw_record_created(const struct pw_call *c)
{
	const struct pw_spec *s = c->spec;
	int is_window = s->lifecycle == PW_WIN_CREATED;

	pw_comm_created(pw_handle_at(c, s->handle), s->comm ? pw_comm_global_id(pw_comm(c)) : 0,
		     is_window ? PW_WINDOW : s->by_group ? PW_BY_GROUP : PW_BY_PARENT);
}

/* The tag that a receive was given, as the trace has it. */
static int32_t tag_of(const struct pw_call *c)
{
	int32_t tag = (int32_t)pw_int(c, c->spec->from_tag);

	return tag == pw_mpi.any_tag ? PW_ANY_TAG : tag;
}

/* Whether a call receives from any source, or with any tag. */
static int receives_any(const struct pw_call *c)
{
	const struct pw_spec *s = c->spec;

	return s->from && (pw_int(c, s->from) == pw_mpi.any_source || tag_of(c) == PW_ANY_TAG);
}

void pw_record_begin(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;

	c->completing = NULL;
	pw_record_take(c);
	if (s->status && receives_any(c) && pw_status_is_ignored(c))
		pw_status_provide(c, 1);
	c->changes = pw_record_changes();
	pw_record_now(&c->start_ns, &c->start_cpu_ns);
	c->recorded = 1;
}

static void fill(const struct pw_call *c, struct pw_record *r)
{
	memset(r, 0, sizeof *r);
	r->start_ns = c->start_ns;
	r->start_cpu_ns = c->start_cpu_ns;
	r->changes = c->changes;
	pw_record_now(&r->end_ns, &r->end_cpu_ns);
	r->op = c->spec->op;
	r->peer = PW_NO_PEER;
	pw_site_walk(c->thread->frame, c->thread->stack_end, r->frames);
}

/* trace.DirWrite, trace.DirRead */
static void set_buffer(struct pw_record *r, uint64_t start, uint64_t bytes, int write)
{
	r->addr = bytes ? start : 0;
	r->bytes = bytes;
	r->dir = write ? 2 : 1;
}

/* Emits one record for the part of each peer. */
static void emit_parts(const struct pw_call *c, struct pw_record *r, const struct pw_buffer *b, int write,
		const struct pw_comm *comm)
{
	struct pw_extent all = {0}, e = {0};

	if (b->form == PW_COUNT_PER_PEER && comm->peers && pw_extent_of(c, b, &all) == 1)
		e.bytes = all.bytes / (uint64_t)comm->peers;
	for (int i = 0; i < comm->peers; i++) {
		if (b->form == PW_COUNT_PER_PEER)
			e.start = all.start + (all.end - all.start) / (uint64_t)comm->peers * (uint64_t)i;
		else
			pw_peer_extent_of(c, b, i, &e);
		set_buffer(r, e.start, e.bytes, write);
		r->peer = comm->peer[i];
		pw_record_emit(r);
	}
}

static void emit_buffer(const struct pw_call *c, struct pw_record *r, const struct pw_buffer *b, int write,
		const struct pw_comm *comm)
{
	struct pw_extent e;

	if (r->op == PW_ALLTOALLV) {
		emit_parts(c, r, b, write, comm);
		return;
	}
	if (pw_extent_of(c, b, &e) != 1)
		e.bytes = 0;
	set_buffer(r, e.start, e.bytes, write);
	pw_record_emit(r);
}

/* Sets peer and tag of a receive, as far as they are known. */
static void set_source(const struct pw_call *c, struct pw_record *r, const struct pw_comm *comm)
{
	const struct pw_spec *s = c->spec;
	const int *status = s->status && receives_any(c) && !pw_status_is_ignored(c) ? pw_status_at(c, 0) : NULL;
	int source = status ? pw_status_source(status) : (int)pw_int(c, s->from);

	r->peer = pw_world_rank(comm, source);
	r->tag = status ? pw_status_tag(status) : tag_of(c);
	if (status && source >= 0 && source < comm->peers)
		return;
	if (status) /* it received from MPI_PROC_NULL, or the status is empty */
		r->tag = tag_of(c);
}

/* Emits one record for each buffer of a call. */
static void emit_buffers(const struct pw_call *c, struct pw_record *r, const struct pw_comm *comm)
{
	const struct pw_spec *s = c->spec;
	int is_root = r->peer == pw.rank;

	if (!s->send.form && !s->recv.form) {
		pw_record_emit(r);
		return;
	}
	if (s->send.form && (s->rooted != PW_SEND_AT_ROOT || is_root))
		emit_buffer(c, r, &s->send, r->op == PW_BCAST && !is_root, comm);
	if (s->recv.form && (s->rooted != PW_RECV_AT_ROOT || is_root)) {
		if (s->from)
			set_source(c, r, comm);
		emit_buffer(c, r, &s->recv, 1, comm);
	}
}

/* A probe. If it has found a message for MPI_Mrecv, that call will need the peer and the tag. */
static void record_probe(const struct pw_call *c, struct pw_record *r, struct pw_comm *comm)
{
	const struct pw_spec *s = c->spec;
	struct pw_pending *p;

	if (s->flag && !*(const int *)c->arg[s->flag])
		return;
	set_source(c, r, comm);
	pw_record_emit(r);
	if (s->creates != PW_MESSAGE || !(p = pw_pending_new(comm)))
		return;
	p->record = *r;
	pw_pending_put(PW_MESSAGES, pw_key(c, s->message, 0), p);
}

/* Sets peer and tag of the message that a probe has found; 0 if that is not known. */
static int take_message(const struct pw_call *c, struct pw_record *r)
{
	struct pw_pending *p = c->completing ? c->completing[0] : NULL;

	if (!p)
		return 0;
	c->completing[0] = NULL;
	r->comm = p->record.comm;
	r->peer = p->record.peer;
	r->tag = p->record.tag;
	pw_pending_end(p);
	return 1;
}

/* Remembers an operation that completes later, or a persistent request. */
static void start_pending(const struct pw_call *c, struct pw_record *r, struct pw_comm *comm)
{
	const struct pw_spec *s = c->spec;
	struct pw_pending *p = pw_pending_new(comm);

	if (!p)
		return;
	p->is_any = receives_any(c);
	p->tag = s->from ? tag_of(c) : 0;
	if (s->lifecycle == PW_COMM_STARTED) {
		p->made = (const void *)c->arg[s->handle];
		p->is_fortran = c->language == PW_FORTRAN;
		p->parent = pw_comm_global_id(pw_comm(c));
	}
	p->record = *r;
	if (s->creates == PW_PERSISTENT) {
		const struct pw_buffer *b = s->send.form ? &s->send : &s->recv;
		struct pw_extent e = {0};

		if (s->from)
			set_source(c, &p->record, comm);
		if (pw_extent_of(c, b, &e) != 1)
			e.bytes = 0;
		set_buffer(&p->record, e.start, e.bytes, b == &s->recv);
		pw_pending_put(PW_PERSISTENTS, pw_request(c, 0), p);
		return;
	}
	p->number = r->req = pw_pending_number();
	if (s->creates == PW_NO_REQUEST) /* an access to a window */
		pw_pending_put(PW_RMA, PW_RMA_KEY(comm), p);
	else
		pw_pending_put(PW_REQUESTS, pw_request(c, 0), p);
}

static void record_call(const struct pw_call *c, struct pw_record *r, struct pw_comm *comm)
{
	const struct pw_spec *s = c->spec;

	if (r->op == PW_PROBE) {
		record_probe(c, r, comm);
		return;
	}
	if (s->creates == PW_PERSISTENT && !s->tag && !s->from)
		return; /* a collective; that its starts are left out is counted there */
	if (s->message && !take_message(c, r)) {
		left_out(PW_LEFT_MESSAGES);
		return;
	}
	if (s->peer)
		r->peer = pw_world_rank(comm, pw_int(c, s->peer));
	if (s->tag)
		r->tag = (int32_t)pw_int(c, s->tag);
	if (comm && comm->is_inter && r->op == PW_ALLTOALL)
		r->op = PW_ALLTOALLV; /* equal parts, but of the remote group */
	if (r->op == PW_ALLTOALL || r->op == PW_ALLGATHER)
		r->peer = comm->peers < pw.size ? comm->peers : pw.size;
	if (s->creates == PW_REQUEST || s->creates == PW_PERSISTENT || (s->win && r->op != PW_BARRIER))
		start_pending(c, r, comm);
	if (s->creates != PW_PERSISTENT && s->lifecycle != PW_COMM_STARTED)
		emit_buffers(c, r, comm);
}

/* Whether a receive was truncated. It has received all the same. */
static int is_truncated(const struct pw_call *c)
{
	int class = 0;

	return c->error && c->spec->recv.form && (c->spec->from || c->spec->message) && pw_mpi.error_class &&
	       !pw_mpi.error_class(c->error, &class) && class == pw_mpi.err_truncate;
}

/* A call that has succeeded, apart from the requests that it has completed. */
static void record_success(const struct pw_call *c, struct pw_record *r)
{
	const struct pw_spec *s = c->spec;
	struct pw_comm *comm = NULL;

	if (s->op >= PW_FREE && s->lifecycle != PW_COMM_STARTED)
		return;
	if (s->win || s->comm) {
		comm = s->win ? pw_comm_find(pw_win(c), 1) : pw_comm_find(pw_comm(c), 0);
		r->comm = pw_comm_id(comm);
	}
	if (r->comm < 0)
		left_out(PW_LEFT_COMMS);
	else
		record_call(c, r, comm);
	pw_comm_drop(comm);
}

void pw_record_end(struct pw_call *c)
{
	struct pw_record r;

	if (pw_is_recording()) { /* else recording has ended during this call */
		fill(c, &r);
		c->succeeded |= is_truncated(c);
		if (c->spec->completes && pw_record_ended(c, &r))
			; /* recorded */
		else if (c->succeeded)
			record_success(c, &r);
		else if (communicates(c->spec))
			left_out(PW_LEFT_FAILED);
	}
	pw_record_put_back(c);
}
