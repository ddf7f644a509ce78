/*
 * The extent of a buffer argument: how many bytes of data, and in which memory. What most calls need is
 * inline, since every call with a large buffer asks; extent.c has the rest.
 *
 * This reads no argument that MPI declares insignificant in this process, and asks the MPI
 * library nothing before it has accepted the arguments; see mpi_handles.h.
 *
 * Budget: no system call, no allocation, and no lock unless a handle is learned.
 */
#ifndef PINWHEEL_EXTENT_H
#define PINWHEEL_EXTENT_H

#include "call.h"

/* The bytes of data of a buffer argument, and the memory they lie in. */
struct pw_extent {
	uint64_t start, end, bytes;
};

/* Whether MPI reads or writes a buffer in this process; m may be NULL where it isn't needed. */
static inline __attribute__((always_inline)) int pw_is_significant(const struct pw_call *c, const struct pw_buffer *b,
		const struct pw_comm_info *m)
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

/* NULL if the datatype can be known only after the call has succeeded, or if the table of them is full. */
static inline const struct pw_datatype *pw_datatype_in(const struct pw_call *c, pw_word type)
{
	const struct pw_datatype *s = pw_datatype_of(type);

	return s || !c->succeeded ? s : pw_datatype_learn(type);
}

/* The memory of count elements. 0 if there are no elements or no address. */
static inline int pw_extent_of_elements(pw_word address, int64_t count, const struct pw_datatype *s,
		struct pw_extent *e)
{
	if (count <= 0 || !s->bytes)
		return 0;
	e->start = address + (uint64_t)s->low;
	e->end = e->start + (uint64_t)count * (uint64_t)s->extent;
	e->bytes = (uint64_t)count * (uint64_t)s->bytes;
	return e->start > 4096 && e->start < (uint64_t)1 << 56;
}

#define PW_UNKNOWN (-1)
/* Of a call whose buffers depend on each other or on the communicator; returns what pw_extent_of does. */
int pw_extent_in_collective(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e);
/* The part of peer i, of PW_COUNTS and PW_COUNTS_TYPES; 0 or 1. */
int pw_peer_extent_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct pw_extent *e);

/*
 * Returns 1, or 0 if there is no data or the argument means nothing in this process,
 * or PW_UNKNOWN if the extent can be known only after the call has succeeded.
 */
static inline __attribute__((always_inline)) int pw_extent_of(const struct pw_call *c, const struct pw_buffer *b,
		struct pw_extent *e)
{
	const struct pw_datatype *s;
	int64_t count;
	int found;

	*e = (struct pw_extent){0};
	if (c->spec->tag || c->spec->from || !c->spec->recv.form) { /* point to point, or MPI_Bcast */
		if (!pw_is_significant(c, b, NULL) || (count = pw_elements(c, b)) <= 0)
			return 0;
		if (pw_likely((s = pw_datatype_in(c, pw_type(c, b->type))) != NULL))
			return pw_extent_of_elements(pw_address(c, b->buf), count, s, e);
		found = PW_UNKNOWN;
	} else {
		found = pw_extent_in_collective(c, b, e);
	}
	return found == PW_UNKNOWN && c->succeeded ? 0 : found; /* the tables of handles are full */
}

#endif
