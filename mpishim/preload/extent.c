/* The extents of buffers that depend on each other or on the communicator: see extent.h. */
#define _GNU_SOURCE
#include "extent.h"

static const struct pw_comm_info *comm_info_of(const struct pw_call *c)
{
	const struct pw_comm_info *m = pw_comm_info_of(pw_comm(c));

	return m || !c->succeeded ? m : pw_comm_info_learn(pw_comm(c));
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

/* One part of a buffer with displacements. */
static int part_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct pw_extent *e)
{
	int64_t displacement;
	const struct pw_datatype *s;

	if (count_at(c, b, i) <= 0)
		return 0; /* its datatype may be null */
	if (!(s = pw_datatype_in(c, b->form == PW_COUNTS_TYPES ? pw_type_at(c, b->type, i) : pw_type(c, b->type))))
		return PW_UNKNOWN;
	displacement = element(c, b->displs, i, c->spec->wide || c->spec->aints);
	if (b->form == PW_COUNTS)
		displacement *= s->extent;
	return pw_extent_of_elements(pw_address(c, b->buf) + (uint64_t)displacement, count_at(c, b, i), s, e);
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
	if (!pw_is_significant(c, b, r->comm) || !(r->buffer = data_buffer(c, b, &r->in_place)))
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

int pw_extent_in_collective(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e)
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
	if (!(type = pw_datatype_in(c, pw_type(c, b->type))))
		return PW_UNKNOWN;
	return pw_extent_of_elements(pw_address(c, b->buf), count, type, e);
}
