/* One MPI call under way, as every wrapper sees it. */
#ifndef PINWHEEL_CALL_H
#define PINWHEEL_CALL_H

#include "shim.h"

typedef uintptr_t pw_word; /* an int, a pointer or a handle, as an argument */

enum pw_many {
	PW_NOTHING,
	PW_ONE,
	PW_EACH, /* count elements for every member of the communicator */
	PW_VEC,	 /* as counts and displacements say */
	PW_VECW, /* so too, each of another type, displacements in bytes */
	PW_SUM,	 /* all counts together, without gaps */
	PW_MINE, /* the count of this rank */
};
enum pw_makes { PW_NO_REQUEST, PW_REQUEST, PW_PERSISTENT };
enum pw_ends { PW_ENDS_NONE, PW_ENDS_ALL, PW_ENDS_ONE, PW_ENDS_SOME, PW_STARTS, PW_FREES, PW_FREES_COMM };
enum pw_rooted { PW_EVERYWHERE, PW_SEND_AT_ROOT, PW_RECV_AT_ROOT };

/* Positions of arguments, from 1; see calls.h. */
struct pw_buffer {
	uint8_t buf, count, type, displs, many;
};

struct pw_spec {
	uint8_t op, makes, ends, rooted;
	struct pw_buffer send, recv;
	uint8_t peer, tag, from, from_tag, comm;
	uint8_t req, number, which, some, flag;
	uint8_t near;  /* the members are the neighbours of a topology */
	uint8_t aints; /* displacements are MPI_Aint */
	uint8_t wide;  /* MPI_Count for int, MPI_Aint for displacements: the MPI_x_c of MPI-4 */
};

enum pw_language { PW_C, PW_FORTRAN };

struct pw_call {
	const struct pw_spec *spec;
	const pw_word *arg; /* from 1 */
	struct pw_thread *thread; /* NULL: nothing to be done at its end */
	enum pw_language language;
	int recorded;
	uint64_t start_ns, start_cpu_ns;
	uint32_t *ending; /* slots of the requests given to a wait or test; of recording */
	uint32_t ending_few[16];
};

/* mpilib.c: the MPI library behind us, whatever it is */
struct pw_mpi {
	int known;           /* handles and constants are known */
	unsigned handle_bytes; /* of a request in C */
	pw_word comm_world;
	int (*type_size)(pw_word type, int *bytes);
	int (*type_extent)(pw_word type, intptr_t *low, intptr_t *extent);
	int (*comm_size)(pw_word comm, int *n);
	int (*comm_rank)(pw_word comm, int *rank);
	int (*comm_test_inter)(pw_word comm, int *flag);
	int (*comm_remote_size)(pw_word comm, int *n);
	int (*comm_group)(pw_word comm, pw_word *group);
	int (*group_translate)(pw_word group, int n, const int *ranks, pw_word other, int *others);
	int (*group_free)(pw_word *group);
	pw_word (*comm_f2c)(int comm);
	pw_word (*type_f2c)(int type);
	int (*topo_test)(pw_word comm, int *kind);
	int (*cartdim_get)(pw_word comm, int *n);
	int (*graph_neighbors_count)(pw_word comm, int rank, int *n);
	int (*dist_graph_neighbors_count)(pw_word comm, int *in, int *out, int *weighted);
	int topo_graph, topo_cart, topo_dist_graph, root; /* MPI_GRAPH, ..., MPI_ROOT */
	void *fortran_in_place;
};
extern struct pw_mpi pw_mpi;
void pw_mpi_init(void); /* at the end of MPI_Init */

static inline int64_t pw_int(const struct pw_call *c, unsigned i)
{
	return c->language == PW_C ? (int)c->arg[i] : *(const int *)c->arg[i];
}

/* A count of elements. */
static inline int64_t pw_count(const struct pw_call *c, unsigned i)
{
	return c->spec->wide ? (int64_t)c->arg[i] : pw_int(c, i);
}

/* A handle given in C: an int comes in a register whose upper half is anything. */
static inline pw_word pw_handle_value(pw_word arg) { return pw_mpi.handle_bytes == 4 ? (uint32_t)arg : arg; }

static inline pw_word pw_type(const struct pw_call *c, unsigned i)
{
	return c->language == PW_C ? pw_handle_value(c->arg[i]) : pw_mpi.type_f2c(*(const int *)c->arg[i]);
}

/* One of an array of datatypes. */
static inline pw_word pw_type_at(const struct pw_call *c, unsigned argument, int i)
{
	const void *array = (const void *)c->arg[argument];

	if (c->language == PW_FORTRAN)
		return pw_mpi.type_f2c(((const int *)array)[i]);
	return pw_mpi.handle_bytes == 4 ? ((const uint32_t *)array)[i] : ((const pw_word *)array)[i];
}

static inline pw_word pw_comm(const struct pw_call *c)
{
	unsigned i = c->spec->comm;

	if (!i)
		return pw_mpi.comm_world;
	return c->language == PW_C ? pw_handle_value(c->arg[i]) : pw_mpi.comm_f2c(*(const int *)c->arg[i]);
}

/* A request as a key: its handle. */
static inline uint64_t pw_request(const struct pw_call *c, unsigned index)
{
	const char *at = (const char *)c->arg[c->spec->req];

	if (c->language == PW_FORTRAN || pw_mpi.handle_bytes == 4)
		return (uint64_t)((const uint32_t *)at)[index] << 1 | (c->language == PW_FORTRAN);
	return ((const uint64_t *)at)[index];
}

/* Whether an argument is a buffer at all, and not MPI_BOTTOM, MPI_IN_PLACE or the like. */
static inline int pw_is_buffer(pw_word address)
{
	return address > 4096 && address < (pw_word)1 << 56 && address != (pw_word)pw_mpi.fortran_in_place;
}

/* What a buffer argument is: bytes of data, and the memory they lie in. Returns 0 for none. */
struct pw_extent {
	uint64_t start, end, bytes;
};
/* extent.c */
int pw_extent_of(const struct pw_call *c, const struct pw_buffer *b, struct pw_extent *e);
int pw_slice_of(const struct pw_call *c, const struct pw_buffer *b, int i, struct pw_extent *e); /* of PW_VEC, PW_VECW */

/* topology.c */
int pw_is_inter(pw_word comm);
int pw_neighbours(pw_word comm, int sources); /* how many: those that send to us, or those that we send to */

/* post.c */
void pw_post_call(const struct pw_call *c);
void pw_post_request(const struct pw_call *c); /* a persistent request was made */

/* record.c */
void pw_record_begin(struct pw_call *c);
void pw_record_end(struct pw_call *c);
void pw_record_start(struct pw_thread *t); /* at the end of MPI_Init */
void pw_record_finish(void);               /* at the beginning of MPI_Finalize */

extern struct pw_thread *pw_recorded; /* the thread whose calls are recorded; NULL: none */

static inline int pw_recording(const struct pw_thread *t) { return pw_unlikely(pw_recorded != NULL) && t == pw_recorded; }

#endif
