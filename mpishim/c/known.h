/*
 * Handles that the MPI library has accepted. It raises an error, or crashes, when it
 * is asked about any other, and the program's arguments may be wrong, or mean
 * nothing where they stand. So nothing is ever asked about a handle before a call
 * with it has succeeded: what was learned then is kept until the handle is freed.
 */
#ifndef PINWHEEL_KNOWN_H
#define PINWHEEL_KNOWN_H

#include <stdint.h>

typedef uintptr_t pw_word; /* an int, a pointer or a handle, as an argument */

/* A datatype: bytes of data of an element, and the memory that it spans. */
struct pw_shape {
	pw_word type;
	int64_t bytes; /* 0: of no use here */
	intptr_t low, extent;
};

/* A communicator. */
struct pw_members {
	pw_word comm;
	int rank, size;
	int is_inter, remote_size;
	int sources, destinations; /* neighbours: those that send to us, those that we send to */
};

void pw_known_init(void); /* what is predefined; at the end of MPI_Init */

/* Open hash tables, in known.c. */
#define PW_KNOWN (1u << 13)
extern struct pw_shape pw_shapes[PW_KNOWN];
extern struct pw_members pw_members[PW_KNOWN];
const struct pw_shape *pw_shape_find(pw_word type);
const struct pw_members *pw_members_find(pw_word comm);

static inline unsigned pw_known_place(pw_word handle)
{
	return (unsigned)((handle ^ handle >> 4) * 0x9e3779b97f4a7c15ull >> 51); /* PW_KNOWN is 2^13 */
}

/* NULL: not known. Any thread; no lock, no allocation. What is returned is good until the handle is freed. */
static inline const struct pw_shape *pw_shape_of(pw_word type)
{
	const struct pw_shape *s = &pw_shapes[pw_known_place(type)];

	return __builtin_expect(__atomic_load_n(&s->type, __ATOMIC_ACQUIRE) == type && type > 1, 1) ? s : pw_shape_find(type);
}

static inline const struct pw_members *pw_members_of(pw_word comm)
{
	const struct pw_members *m = &pw_members[pw_known_place(comm)];

	return __builtin_expect(__atomic_load_n(&m->comm, __ATOMIC_ACQUIRE) == comm && comm > 1, 1) ? m : pw_members_find(comm);
}

/* A call with this handle has succeeded: NULL for a null handle, or if there are too many. */
const struct pw_shape *pw_shape_learn(pw_word type);
const struct pw_members *pw_members_learn(pw_word comm);

/* Before a call that frees it: another thread may be given the same handle at once. */
void pw_shape_forget(pw_word type);
void pw_members_forget(pw_word comm);

#endif
