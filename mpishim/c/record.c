/*
 * Recording (PINWHEEL_RECORD): one pw_record for each buffer of each call of the
 * thread that called MPI_Init, in the order of time, into a ring that the Go side
 * empties into a .pwt file. See trace.Record for what the fields mean.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

struct pw_thread *pw_recorded;

/* The end of MPI_Init, which all ranks leave together. A barrier would tell
 * better, and hang where one rank does not record. */
static uint64_t origin_ns, origin_cpu_ns;

/* How long a call may be held up by a full ring before recording ends. */
#define PATIENCE_NS 2000000000ull

struct pw_record *pw_record_next(void)
{
	struct pw_recorder *r = pw.recorder;
	uint64_t since = 0;

	while (pw_unlikely(r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= PW_RECORDS)) {
		uint64_t now = pw_clock_ns(CLOCK_MONOTONIC);

		if (!since)
			since = now;
		if (now - since > PATIENCE_NS || r->failed) {
			r->failed = 1;
			pw_recorded = NULL;
			return NULL;
		}
		sched_yield();
	}
	return &r->record[r->head & (PW_RECORDS - 1)];
}

void pw_record_push(void) { __atomic_store_n(&pw.recorder->head, pw.recorder->head + 1, __ATOMIC_RELEASE); }

static uint32_t dir_of(int write) { return write ? 2 : 1; } /* trace.DirWrite, trace.DirRead */

static void fill(const struct pw_call *c, struct pw_record *r, int comm)
{
	memset(r, 0, sizeof *r);
	r->start_ns = c->start_ns;
	r->start_cpu_ns = c->start_cpu_ns;
	r->end_ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	r->end_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
	r->op = c->spec->op;
	r->peer = -2;
	r->comm = pw_comm_id(comm);
	pw_site_walk(c->thread->frame, c->thread->stack_end, r->frames);
}

void pw_record_begin(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;

	c->ending = NULL;
	if (s->ends >= PW_ENDS_ALL && s->ends <= PW_ENDS_SOME) {
		int64_t n = !c->arg[s->req] ? 0 : s->number ? pw_int(c, s->number) : 1; /* NULL: MPI will say so */

		c->ending = n <= 16 ? c->ending_few : malloc((size_t)n * sizeof *c->ending);
		for (int64_t i = 0; c->ending && i < n; i++)
			c->ending[i] = pw_request_slot(pw_request(c, (unsigned)i));
	}
	c->start_ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	c->start_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
	c->recorded = 1;
}

static void emit(const struct pw_record *r)
{
	struct pw_record *at = pw_record_next();

	if (!at)
		return;
	*at = *r;
	pw_record_push();
}

static void end_ending(struct pw_call *c)
{
	if (c->ending != c->ending_few)
		free(c->ending);
}

/* A wait line for each request that has completed. */
static void record_ends(struct pw_call *c, struct pw_record *r)
{
	const struct pw_spec *s = c->spec;
	int64_t n = s->number ? pw_int(c, s->number) : 1, done = n;
	const int *which = s->which ? (const int *)c->arg[s->which] : NULL;

	r->op = PW_WAIT;
	if (s->flag && !*(const int *)c->arg[s->flag])
		done = 0;
	else if (s->ends == PW_ENDS_ONE)
		done = 1;
	else if (s->ends == PW_ENDS_SOME)
		done = *(const int *)c->arg[s->some];
	for (int64_t k = 0; k < done && c->ending; k++) {
		int64_t i = s->ends == PW_ENDS_ALL ? k : which[k] - (c->language == PW_FORTRAN);

		if (i >= 0 && i < n && (r->req = pw_request_end(c->ending[i]))) /* else MPI_UNDEFINED, or not recorded */
			emit(r);
	}
	end_ending(c);
}

static void record_buffer(const struct pw_call *c, struct pw_record *r, const struct pw_buffer *b, int write, int comm)
{
	struct pw_extent e;

	if (!pw_extent_of(c, b, &e)) {
		e.start = c->arg[b->buf];
		e.bytes = 0;
	}
	r->addr = e.start;
	r->bytes = e.bytes;
	r->dir = dir_of(write);
	if (r->op == PW_ALLTOALLV && comm >= 0) { /* a line for each slice */
		for (int i = 0; i < pw_comm_members(comm); i++) {
			if (!pw_slice_of(c, b, i, &e))
				e.start = c->arg[b->buf];
			r->addr = e.start;
			r->bytes = e.bytes;
			r->peer = pw_world_rank(comm, i);
			emit(r);
		}
		return;
	}
	emit(r);
}

static int is_recordable(unsigned op) { return op <= PW_FINALIZE; }

static void start_persistent(const struct pw_call *c, struct pw_record *now)
{
	int64_t n = c->spec->number ? pw_int(c, c->spec->number) : 1;

	for (int64_t k = 0; k < n; k++) {
		uint64_t key = pw_request(c, (unsigned)k);
		const struct pw_record *made = pw_persistent_find(key);
		struct pw_record r;

		if (!made)
			continue;
		r = *made;
		r.start_ns = now->start_ns, r.end_ns = now->end_ns;
		r.start_cpu_ns = now->start_cpu_ns, r.end_cpu_ns = now->end_cpu_ns;
		memcpy(r.frames, now->frames, sizeof r.frames);
		r.req = pw_request_add(key);
		emit(&r);
		/* One call starts several; as records they follow each other. */
		now->start_ns = now->end_ns;
		now->start_cpu_ns = now->end_cpu_ns;
	}
}

void pw_record_end(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;
	struct pw_record r;
	int comm;

	if (!pw_recorded || !c->succeeded) { /* recording has ended in this call; or its results are not set */
		end_ending(c);
		return;
	}
	comm = s->comm ? pw_comm_at(pw_comm(c)) : -1;
	fill(c, &r, comm);
	if (s->ends >= PW_ENDS_ALL && s->ends <= PW_ENDS_SOME) {
		record_ends(c, &r);
		return;
	}
	if (s->ends == PW_STARTS) {
		start_persistent(c, &r);
		return;
	}
	if (!is_recordable(s->op))
		return;
	/* The trace has no nonblocking collectives: the call that starts one stands for it. */
	if (s->makes == PW_REQUEST && (s->op == PW_ISEND || s->op == PW_IRECV))
		r.req = pw_request_add(pw_request(c, 0));
	if (s->peer)
		r.peer = pw_world_rank(comm, pw_int(c, s->peer));
	if (s->tag)
		r.tag = (int32_t)pw_int(c, s->tag);
	if (r.op == PW_ALLTOALL || r.op == PW_ALLGATHER)
		r.peer = comm >= 0 ? pw_comm_members(comm) : -2;
	if (s->makes == PW_PERSISTENT) {
		const struct pw_buffer *b = s->send.many ? &s->send : &s->recv;
		struct pw_extent e;

		if (s->from) {
			r.peer = pw_world_rank(comm, pw_int(c, s->from));
			r.tag = (int32_t)pw_int(c, s->from_tag);
		}
		if (!pw_extent_of(c, b, &e))
			return;
		r.addr = e.start, r.bytes = e.bytes, r.dir = dir_of(b == &s->recv);
		pw_persistent_add(pw_request(c, 0), &r);
		return;
	}
	if (!s->send.many && !s->recv.many) {
		emit(&r);
		return;
	}
	if (s->send.many)
		record_buffer(c, &r, &s->send, r.op == PW_BCAST && r.peer != pw.rank, comm);
	if (s->recv.many && (s->rooted != PW_RECV_AT_ROOT || r.peer == pw.rank)) {
		if (s->from) {
			r.peer = pw_world_rank(comm, pw_int(c, s->from));
			r.tag = (int32_t)pw_int(c, s->from_tag);
		}
		record_buffer(c, &r, &s->recv, 1, comm);
	}
}

void pw_record_start(struct pw_thread *t)
{
	if (!pw.recorder || pw.recorder->failed)
		return;
	origin_ns = pw_clock_ns(CLOCK_MONOTONIC);
	origin_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	pw.recorder->on = 1;
	if (!pw_mpi.by_session)
		pw_comm_at(pw_mpi.comm_world);
	pw_recorded = t;
}

void pw_record_finish(void)
{
	struct pw_record r;

	if (!pw_recorded)
		return;
	memset(&r, 0, sizeof r);
	r.start_ns = r.end_ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	r.start_cpu_ns = r.end_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
	r.op = PW_FINALIZE;
	r.peer = -2;
	emit(&r);
	pw_recorded = NULL;
}
