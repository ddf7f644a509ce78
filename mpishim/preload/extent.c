/*
 * The extent of a buffer argument: how many bytes of data, and in which memory.
 *
 * This reads no argument that MPI declares insignificant in this process, and asks the MPI
 * library nothing before it has accepted the arguments; see mpi_handles.h.
 *
 * Budget: no system call, no allocation, and no lock unless a handle is learned.
 */
#define _GNU_SOURCE
#include "call.h"

static const struct pw_comm_info *comm_info_of(const struct pw_call *c)
{
	const struct pw_comm_info *m = pw_comm_info_of(pw_comm(c));

	return m || !c->succeeded ? m : pw_comm_info_learn(pw_comm(c));
}

static const struct pw_datatype *datatype_of(const struct pw_call *c, pw_word type)
{
	const struct pw_datatype *s = pw_datatype_of(type);

	return s || !c->succeeded ? s : pw_datatype_learn(type);
}

/* One of an array of counts or displacements. */
static int64_t element(const struct pw_call *c, unsigned argument, int i, int is_wide)
{
	const void *array = (const void *)c->arg[argument];

	return is_wide ? ((const int64_t *)array)[i] : ((const int *)array)[i];
}

static int64_t count_at(const struct pw_call *c, const struct pw_buffer *b, int i)
{
	return element(c, b->count, i, c->spec->wide);
}

/* How many parts a buffer of a collective has. */
static int parts(const struct pw_call *c, const struct pw_buffer *b, const struct pw_comm_info *m)
{
	if (c->spec->neighborhood)
		return b == &c->spec->recv ? m->sources : m->destinations;
	return c->spec->op != PW_REDUCE_SCATTER && m->is_inter ? m->remote_size : m->size;
}

/* Whether the extent of a buffer depends on the communicator. */
static int needs_comm_info(const struct pw_call *c, const struct pw_buffer *b)
{
	return b->form != PW_COUNT || pw_is_of_root(c->spec, b);
}

/* Whether MPI reads or writes a buffer in this process; m may be NULL where it isn't needed. */
static int is_significant(const struct pw_call *c, const struct pw_buffer *b, const struct pw_comm_info *m)
{
	const struct pw_spec *s = c->spec;
	int64_t root;

	if (s->tag && b == &s->send)
		return pw_int(c, s->peer) != pw_mpi.proc_null;
	if (s->from && b == &s->recv)
		return pw_int(c, s->from) != pw_mpi.proc_null;
	if (!s->peer)
		return 1;
	root = pw_int(c, s->peer);
	if (pw_is_of_root(s, b))
		return m->is_inter ? root == pw_mpi.root : root == m->rank;
	/* In the root's group of an intercommunicator only the root has data. */
	return root >= 0 || (root == pw_mpi.root && s->rooted == PW_EVERYWHERE);
}

/* The memory of count elements. 0 if there are no elements or no address. */
static int set_extent(pw_word address, int64_t count, const struct pw_datatype *s, struct pw_extent *e)
{
	if (count <= 0 || !s->bytes)
		return 0;
	e->start = address + (uint64_t)s->low;
	e->end = e->start + (uint64_t)count * (uint64_t)s->extent;
	e->bytes = (uint64_t)count * (uint64_t)s->bytes;
	return e->start > 4096 && e->start < (uint64_t)1 << 56;
}

/* One part of a buffer with displacements. */
static int part_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct pw_extent *e)
{
	int64_t displacement;
	const struct pw_datatype *s;

	if (count_at(c, b, i) <= 0)
		return 0; /* its datatype may be null */
	if (!(s = datatype_of(c, b->form == PW_COUNTS_TYPES ? pw_type_at(c, b->type, i) : pw_type(c, b->type))))
		return PW_UNKNOWN;
	displacement = element(c, b->displs, i, c->spec->wide || c->spec->aints);
	if (b->form == PW_COUNTS)
		displacement *= s->extent;
	return set_extent(pw_address(c, b->buf) + (uint64_t)displacement, count_at(c, b, i), s, e);
}

static int has_arrays(const struct pw_call *c, const struct pw_buffer *b)
{
	return c->arg[b->count] && c->arg[b->displs] && (b->form != PW_COUNTS_TYPES || c->arg[b->type]);
}

/* Sum and span of the parts. */
static int vector_extent(const struct pw_call *c, const struct pw_buffer *b, int n, struct pw_extent *e)
{
	struct pw_extent part;

	e->start = UINT64_MAX;
	for (int i = 0; i < n && has_arrays(c, b); i++) {
		int found = part_of(c, b, i, &part);

		if (found == PW_UNKNOWN)
			return found;
		if (!found)
			continue;
		e->bytes += part.bytes;
		if (part.start < e->start)
			e->start = part.start;
		if (part.end > e->end)
			e->end = part.end;
	}
	return e->bytes != 0;
}

/* Elements of a buffer without displacements. */
static int64_t total(const struct pw_call *c, const struct pw_buffer *b, const struct pw_comm_info *m)
{
	int64_t sum = 0;

	switch (b->form) {
	case PW_COUNT_PER_PEER:
		return pw_count(c, b->count) * parts(c, b, m);
	case PW_COUNTS_SUM:
		for (int i = 0; i < parts(c, b, m) && c->arg[b->count]; i++)
			sum += count_at(c, b, i);
		return sum;
	case PW_COUNTS_OWN:
		return c->arg[b->count] ? count_at(c, b, m->rank) : 0;
	default:
		return pw_count(c, b->count);
	}
}

/*
 * The buffer that holds the data of this one. With MPI_IN_PLACE the data to send lies in the
 * receive buffer, and the arguments of the send side mean nothing. NULL if there is no data.
 */
static const struct pw_buffer *data_buffer(const struct pw_call *c, const struct pw_buffer *b,
		struct pw_buffer *in_place)
{
	const struct pw_spec *s = c->spec;

	if (!s->send.form || !s->recv.form)
		return b;
	if (pw_is_in_place(c, s->recv.buf)) /* the root of MPI_Scatter keeps its own part */
		return b == &s->send ? b : NULL;
	if (!pw_is_in_place(c, s->send.buf))
		return b;
	if (s->op == PW_ALLTOALL || s->op == PW_ALLTOALLV)
		return &s->recv;
	if (s->send.count != s->recv.count) /* the own part of a gather is in place already */
		return b == &s->recv ? b : NULL;
	*in_place = s->send; /* a reduction reads its operands there first */
	in_place->buf = s->recv.buf;
	return in_place;
}

/* A buffer that has data in this process. */
struct resolved {
	const struct pw_buffer *buffer; /* the one that holds the data */
	const struct pw_comm_info *comm; /* NULL where nothing depends on it */
	struct pw_buffer in_place; /* room for the buffer */
};

/* 1 and what the data of a buffer depends on; 0: it has none; PW_UNKNOWN: the communicator is not known. */
static int resolve(const struct pw_call *c, const struct pw_buffer *b, struct resolved *r)
{
	r->comm = NULL;
	if (needs_comm_info(c, b) && !(r->comm = comm_info_of(c)))
		return PW_UNKNOWN;
	if (!is_significant(c, b, r->comm) || !(r->buffer = data_buffer(c, b, &r->in_place)))
		return 0;
	if (needs_comm_info(c, r->buffer) && !r->comm && !(r->comm = comm_info_of(c)))
		return PW_UNKNOWN;
	return 1;
}

int pw_peer_extent_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct pw_extent *e)
{
	struct resolved r;

	*e = (struct pw_extent){0};
	if (resolve(c, b, &r) == 1 && i < parts(c, r.buffer, r.comm) && has_arrays(c, r.buffer) && part_of(c,
			r.buffer, i, e) == 1)
		return e->bytes != 0;
	*e = (struct pw_extent){0};
	return 0;
}

/* Of a call whose buffers depend on each other or on the communicator. */
static __attribute__((noinline)) int extent_of(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e)
{
	const struct pw_datatype *type;
	struct resolved r;
	int64_t count;
	int found = resolve(c, b, &r);

	if (found != 1)
		return found;
	b = r.buffer;
	if (b->form == PW_COUNTS || b->form == PW_COUNTS_TYPES)
		return vector_extent(c, b, parts(c, b, r.comm), e);
	if ((count = total(c, b, r.comm)) <= 0)
		return 0; /* the datatype may be null */
	if (!(type = datatype_of(c, pw_type(c, b->type))))
		return PW_UNKNOWN;
	return set_extent(pw_address(c, b->buf), count, type, e);
}

int pw_extent_of(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e)
{
	const struct pw_datatype *s;
	int64_t count;
	int found;

	*e = (struct pw_extent){0};
	if (c->spec->tag || c->spec->from || !c->spec->recv.form) { /* point to point, or MPI_Bcast */
		if (!is_significant(c, b, NULL) || (count = pw_count(c, b->count)) <= 0)
			return 0;
		if (pw_likely((s = datatype_of(c, pw_type(c, b->type))) != NULL))
			return set_extent(pw_address(c, b->buf), count, s, e);
		found = PW_UNKNOWN;
	} else {
		found = extent_of(c, b, e);
	}
	return found == PW_UNKNOWN && c->succeeded ? 0 : found; /* the tables of handles are full */
}
