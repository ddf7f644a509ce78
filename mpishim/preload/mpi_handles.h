/*
 * Handles that the MPI library has accepted. The library raises an error or crashes when it
 * is asked about any other handle, and an argument of the program may be wrong or mean
 * nothing. So Pinwheel asks about a handle only after a call with it has
 * succeeded, and keeps the answer until the handle is freed.
 */
#ifndef PINWHEEL_MPI_HANDLES_H
#define PINWHEEL_MPI_HANDLES_H

#include "mpilib.h"

/* A datatype: the bytes of data in an element, and the memory that an element spans. */
struct pw_datatype {
	pw_word type;
	int64_t bytes; /* 0 if such buffers are ignored */
	intptr_t low, extent;
};

/* A communicator. */
struct pw_comm_info {
	pw_word comm;
	int rank, size;
	int is_inter, remote_size;
	int sources, destinations; /* neighbors that send to this rank, and that it sends to */
};

void pw_mpi_handles_init(void); /* learns the predefined handles, at the end of MPI_Init */

/* Open hash tables, in mpi_handles.c. */
#define PW_KNOWN_HANDLES (1u << 13)
extern struct pw_datatype pw_datatypes[PW_KNOWN_HANDLES];
extern struct pw_comm_info pw_comm_info[PW_KNOWN_HANDLES];
const struct pw_datatype *pw_datatype_find(pw_word type);
const struct pw_comm_info *pw_comm_info_find(pw_word comm);

static inline unsigned pw_known_hash(pw_word handle)
{
	return (unsigned)((handle ^ handle >> 4) * 0x9e3779b97f4a7c15ull >> 51); /* PW_KNOWN_HANDLES is 2^13 */
}

/* A datatype that is where it is looked for first, as nearly all are; NULL for others. */
static inline const struct pw_datatype *pw_datatype_known(pw_word type)
{
	const struct pw_datatype *s = &pw_datatypes[pw_known_hash(type)];

	return __builtin_expect(__atomic_load_n(&s->type, __ATOMIC_ACQUIRE) == type && type > 1, 1) ? s : NULL;
}

/* NULL if the handle is not known. Any thread may call it; it takes no lock and does not allocate. The result is
 * valid until the handle is freed. */
static inline const struct pw_datatype *pw_datatype_of(pw_word type)
{
	const struct pw_datatype *s = pw_datatype_known(type);

	return s ? s : pw_datatype_find(type);
}

static inline const struct pw_comm_info *pw_comm_info_of(pw_word comm)
{
	const struct pw_comm_info *m = &pw_comm_info[pw_known_hash(comm)];

	return __builtin_expect(__atomic_load_n(&m->comm, __ATOMIC_ACQUIRE) == comm && comm > 1,
			1) ? m : pw_comm_info_find(comm);
}

/* Call it after a call with this handle has succeeded. NULL for a null handle, or if there are too many. */
const struct pw_datatype *pw_datatype_learn(pw_word type);
const struct pw_comm_info *pw_comm_info_learn(pw_word comm);

/* Call it before the call that frees the handle, since another thread may be given the same one at once. */
void pw_datatype_forget(pw_word type);
void pw_comm_info_forget(pw_word comm);

#endif
