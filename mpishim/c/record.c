/*
 * Recording (PINWHEEL_RECORD): one pw_record for each buffer of each call of the
 * thread that called MPI_Init, in the order of time, into a ring that the Go side
 * empties into a .pwt file. See trace.Record for what the fields mean.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

struct pw_thread *pw_recorded;

/* The end of MPI_Init, which all ranks leave together. A barrier would tell
 * better, and hang where one rank does not record. */
static uint64_t origin_ns, origin_cpu_ns;

/* How long a call may be held up by a full ring before recording ends. */
#define PATIENCE_NS 2000000000ull

static struct pw_record *next(void)
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

static void push(void) { __atomic_store_n(&pw.recorder->head, pw.recorder->head + 1, __ATOMIC_RELEASE); }

/* Communicators: their IDs and members. Only the recorded thread uses them. */
#define COMMS 512
static struct {
	pw_word comm;
	int32_t id;
	int n, *world; /* world ranks; stays here */
} comms[COMMS];
static unsigned comm_count;
static int32_t next_comm;

static int *members_of(pw_word comm, int n)
{
	pw_word group = 0, world = 0;
	int *ranks = malloc((size_t)n * sizeof *ranks), *others = malloc((size_t)n * sizeof *others), ok = 0;

	if (ranks && others && !pw_mpi.comm_group(comm, &group) && !pw_mpi.comm_group(pw_mpi.comm_world, &world)) {
		for (int i = 0; i < n; i++)
			ranks[i] = i;
		ok = !pw_mpi.group_translate(group, n, ranks, world, others);
		for (int i = 0; i < n; i++)
			ok = ok && others[i] >= 0 && others[i] < pw.size;
		pw_mpi.group_free(&group);
		pw_mpi.group_free(&world);
	}
	free(ranks);
	if (ok)
		return others;
	free(others);
	return NULL;
}

/* The place of a communicator, announced if it is new; -1 if it can't be described. */
static int comm_at(pw_word comm)
{
	int n = 0, *world, *copy;
	struct pw_record *r;

	for (unsigned i = 0; i < comm_count; i++)
		if (comms[i].comm == comm)
			return (int)i;
	if (comm_count == COMMS || pw_mpi.comm_size(comm, &n) || n <= 0 || !(world = members_of(comm, n)))
		return -1;
	copy = malloc((size_t)n * sizeof *copy);
	if (!copy || !(r = next())) {
		free(copy);
		free(world);
		return -1;
	}
	memcpy(copy, world, (size_t)n * sizeof *copy);
	memset(r, 0, sizeof *r);
	r->op = PW_COMM;
	r->comm = next_comm;
	r->addr = (uint64_t)copy;
	r->bytes = (uint64_t)n;
	push();
	comms[comm_count].comm = comm;
	comms[comm_count].id = next_comm++;
	comms[comm_count].n = n;
	comms[comm_count].world = world;
	return (int)comm_count++;
}

static void forget_comm(pw_word comm)
{
	for (unsigned i = 1; i < comm_count; i++)
		if (comms[i].comm == comm) {
			free(comms[i].world);
			comms[i] = comms[--comm_count];
			return;
		}
}

/* Requests: the number that each got. */
#define REQUESTS (1u << 14)
#define PROBES 64u
static struct {
	uint64_t key;
	uint32_t number;
} requests[REQUESTS];
static uint32_t next_request;

static unsigned place_of(uint64_t key) { return (unsigned)((key >> 1) * 0x9e3779b97f4a7c15ull >> 50) % REQUESTS; }

static void add_request(uint64_t key, uint32_t number)
{
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned at = (place_of(key) + i) % REQUESTS;

		if (requests[at].key && requests[at].key != key && requests[at].number)
			continue;
		requests[at].key = key;
		requests[at].number = number;
		return;
	}
}

static uint32_t *request_at(uint64_t key)
{
	for (unsigned i = 0; key && i < PROBES; i++) {
		unsigned at = (place_of(key) + i) % REQUESTS;

		if (requests[at].key == key)
			return &requests[at].number;
		if (!requests[at].key)
			return NULL;
	}
	return NULL;
}

/* What persistent requests do when they are started; they are remembered to the end. */
#define PERSISTENTS 4096
static struct {
	uint64_t key;
	struct pw_record record;
} persistents[PERSISTENTS];
static unsigned persistent_count;

static uint32_t dir_of(int write) { return write ? 2 : 1; } /* trace.DirWrite, trace.DirRead */

static int32_t world_rank(int comm, int64_t peer)
{
	if (comm >= 0 && peer >= 0 && peer < comms[comm].n)
		return comms[comm].world[peer];
	/* MPI_ANY_SOURCE is -1 in Open MPI and -2 in MPICH; MPI_PROC_NULL is the other. */
	return peer == (pw_mpi.handle_bytes == 4 ? -2 : -1) ? -1 : -2;
}

static void fill(const struct pw_call *c, struct pw_record *r, int comm)
{
	memset(r, 0, sizeof *r);
	r->start_ns = c->start_ns;
	r->start_cpu_ns = c->start_cpu_ns;
	r->end_ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	r->end_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
	r->op = c->spec->op;
	r->peer = -2;
	r->comm = comm >= 0 ? comms[comm].id : 0;
	pw_site_walk(c->thread->frame, c->thread->stack_end, r->frames);
}

void pw_record_begin(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;

	c->ending = NULL;
	if (s->ends == PW_FREES_COMM) {
		const char *at = (const char *)c->arg[s->req];

		forget_comm(c->language == PW_FORTRAN ? pw_mpi.comm_f2c(*(const int *)at)
			    : pw_mpi.handle_bytes == 4 ? *(const uint32_t *)at
							: *(const pw_word *)at);
		return;
	}
	if (s->ends >= PW_ENDS_ALL && s->ends <= PW_ENDS_SOME) {
		int64_t n = s->number ? pw_int(c, s->number) : 1;

		c->ending = n <= 16 ? c->ending_few : malloc((size_t)n * sizeof *c->ending);
		for (int64_t i = 0; c->ending && i < n; i++) {
			uint32_t *number = request_at(pw_request(c, (unsigned)i));

			c->ending[i] = number ? *number : 0;
		}
	}
	c->start_ns = pw_clock_ns(CLOCK_MONOTONIC) - origin_ns;
	c->start_cpu_ns = pw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - origin_cpu_ns;
	c->recorded = 1;
}

static void emit(const struct pw_record *r)
{
	struct pw_record *at = next();

	if (!at)
		return;
	*at = *r;
	push();
}

static void end_request(uint32_t number)
{
	for (unsigned i = 0; number && i < REQUESTS; i++)
		if (requests[i].number == number) {
			requests[i].number = 0;
			return;
		}
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

		if (i < 0 || i >= n || !c->ending[i])
			continue; /* MPI_UNDEFINED; a request that was not recorded */
		r->req = c->ending[i];
		end_request(c->ending[i]);
		emit(r);
	}
	if (c->ending != c->ending_few)
		free(c->ending);
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
	if (b->many == PW_VEC && r->op == PW_ALLTOALLV && comm >= 0) { /* a line for each slice */
		const int *counts = (const int *)c->arg[b->count], *displs = (const int *)c->arg[b->displs];
		intptr_t low, extent = 0;
		int size = 0;

		pw_mpi.type_size(pw_type(c, b->type), &size);
		pw_mpi.type_extent(pw_type(c, b->type), &low, &extent);
		for (int i = 0; i < comms[comm].n; i++) {
			r->addr = c->arg[b->buf] + (uint64_t)((intptr_t)displs[i] * extent);
			r->bytes = (uint64_t)counts[i] * (uint64_t)size;
			r->peer = comms[comm].world[i];
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

		for (unsigned i = 0; i < persistent_count; i++) {
			struct pw_record r = persistents[i].record;

			if (persistents[i].key != key)
				continue;
			r.start_ns = now->start_ns, r.end_ns = now->end_ns;
			r.start_cpu_ns = now->start_cpu_ns, r.end_cpu_ns = now->end_cpu_ns;
			memcpy(r.frames, now->frames, sizeof r.frames);
			r.req = ++next_request;
			add_request(key, r.req);
			emit(&r);
			/* One call starts several; as records they follow each other. */
			now->start_ns = now->end_ns;
			now->start_cpu_ns = now->end_cpu_ns;
			break;
		}
	}
}

void pw_record_end(struct pw_call *c)
{
	const struct pw_spec *s = c->spec;
	struct pw_record r;
	int comm;

	if (!pw_recorded)
		return;
	comm = s->comm ? comm_at(pw_comm(c)) : -1;
	fill(c, &r, comm);
	if (s->ends >= PW_ENDS_ALL && s->ends <= PW_ENDS_SOME) {
		record_ends(c, &r);
		return;
	}
	if (s->ends == PW_STARTS) {
		start_persistent(c, &r);
		return;
	}
	if (!is_recordable(s->op) || s->ends)
		return;
	/* The trace has no nonblocking collectives: the call that starts one stands for it. */
	if (s->makes && (s->op == PW_ISEND || s->op == PW_IRECV)) {
		r.req = ++next_request;
		if (s->makes == PW_REQUEST)
			add_request(pw_request(c, 0), r.req);
	}
	if (s->peer)
		r.peer = world_rank(comm, pw_int(c, s->peer));
	if (s->tag)
		r.tag = (int32_t)pw_int(c, s->tag);
	if (r.op == PW_ALLTOALL || r.op == PW_ALLGATHER)
		r.peer = comm >= 0 ? comms[comm].n : -2;
	if (s->makes == PW_PERSISTENT) {
		const struct pw_buffer *b = s->send.many ? &s->send : &s->recv;
		struct pw_extent e;

		if (s->from) {
			r.peer = world_rank(comm, pw_int(c, s->from));
			r.tag = (int32_t)pw_int(c, s->from_tag);
		}
		if (persistent_count == PERSISTENTS || !pw_extent_of(c, b, &e))
			return;
		r.addr = e.start, r.bytes = e.bytes, r.dir = dir_of(b == &s->recv);
		persistents[persistent_count].key = pw_request(c, 0);
		persistents[persistent_count++].record = r;
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
			r.peer = world_rank(comm, pw_int(c, s->from));
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
	comm_at(pw_mpi.comm_world);
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
