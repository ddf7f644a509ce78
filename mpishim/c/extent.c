/*
 * What the buffer arguments of a call are: how much data, and the memory that it lies in.
 *
 * Budget: no system call, no allocation, no lock; the MPI library is asked for
 * sizes, which it knows.
 */
#define _GNU_SOURCE
#include "call.h"

/* A datatype: bytes of data of an element, and the memory that it spans. */
struct shape {
	int size;
	intptr_t low, extent;
};

static int shape_of(pw_word type, struct shape *s)
{
	return !pw_mpi.type_size(type, &s->size) && s->size > 0 && !pw_mpi.type_extent(type, &s->low, &s->extent) &&
	       s->extent > 0;
}

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
static int members(const struct pw_call *c, const struct pw_buffer *b)
{
	int n = 0;

	if (c->spec->near)
		return pw_neighbours(pw_comm(c), b == &c->spec->recv);
	if (c->spec->op != PW_REDUCE_SCATTER && pw_is_inter(pw_comm(c)))
		return pw_mpi.comm_remote_size(pw_comm(c), &n) ? 0 : n;
	return pw_mpi.comm_size(pw_comm(c), &n) ? 0 : n;
}

static int slice_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct shape *s, struct pw_extent *e)
{
	int64_t count = count_at(c, b, i), displacement = element(c, b->displs, i, c->spec->wide || c->spec->aints);

	if (count <= 0)
		return 0;
	if (b->many == PW_VECW) {
		if (!shape_of(pw_type_at(c, b->type, i), s))
			return 0;
		e->start = c->arg[b->buf] + (uint64_t)displacement;
	} else {
		e->start = c->arg[b->buf] + (uint64_t)displacement * (uint64_t)s->extent;
	}
	e->start += (uint64_t)s->low;
	e->end = e->start + (uint64_t)count * (uint64_t)s->extent;
	e->bytes = (uint64_t)count * (uint64_t)s->size;
	return 1;
}

int pw_slice_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct pw_extent *e)
{
	struct shape s;

	*e = (struct pw_extent){0};
	return (b->many == PW_VECW || shape_of(pw_type(c, b->type), &s)) && slice_of(c, b, i, &s, e);
}

/* Sum and span of the slices of a vector argument. */
static int vector_extent(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e)
{
	int n = members(c, b);
	struct pw_extent slice;
	struct shape s;

	if (b->many == PW_VEC && !shape_of(pw_type(c, b->type), &s))
		return 0;
	e->start = UINT64_MAX;
	for (int i = 0; i < n; i++) {
		if (!slice_of(c, b, i, &s, &slice))
			continue;
		e->bytes += slice.bytes;
		if (slice.start < e->start)
			e->start = slice.start;
		if (slice.end > e->end)
			e->end = slice.end;
	}
	return e->bytes != 0;
}

/* Elements of a buffer without displacements. */
static int64_t total(const struct pw_call *c, const struct pw_buffer *b)
{
	int64_t sum = 0;
	int n;

	switch (b->many) {
	case PW_EACH:
		return pw_count(c, b->count) * members(c, b);
	case PW_SUM:
		n = members(c, b);
		for (int i = 0; i < n; i++)
			sum += count_at(c, b, i);
		return sum;
	case PW_MINE:
		return pw_mpi.comm_rank(pw_comm(c), &n) ? 0 : count_at(c, b, n);
	default:
		return pw_count(c, b->count);
	}
}

int pw_extent_of(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e)
{
	const struct pw_buffer *send = &c->spec->send;
	struct pw_buffer in_place;
	struct shape s;
	int64_t count;

	*e = (struct pw_extent){0};
	if (!pw_is_buffer(c->arg[b->buf]))
		return 0;
	if (b->many == PW_VEC || b->many == PW_VECW)
		return vector_extent(c, b, e);
	if (b == &c->spec->recv && b->many != send->many && b->count == send->count && !pw_is_buffer(c->arg[send->buf])) {
		in_place = *send; /* MPI_IN_PLACE: what is to be sent is there first */
		in_place.buf = b->buf;
		b = &in_place;
	}
	/* Without elements the datatype may be none, and the MPI library would not like to be asked. */
	if ((count = total(c, b)) <= 0 || pw_mpi.type_size(pw_type(c, b->type), &s.size) || s.size <= 0)
		return 0;
	e->bytes = (uint64_t)count * (uint64_t)s.size;
	if (e->bytes < pw.threshold) { /* nobody asks where it lies */
		e->start = c->arg[b->buf];
		e->end = e->start + e->bytes;
		return 1;
	}
	if (!shape_of(pw_type(c, b->type), &s))
		return 0;
	e->start = c->arg[b->buf] + (uint64_t)s.low;
	e->end = e->start + (uint64_t)count * (uint64_t)s.extent;
	return 1;
}
