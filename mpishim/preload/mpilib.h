/* The MPI library behind us, whichever it is. */
#ifndef PINWHEEL_MPILIB_H
#define PINWHEEL_MPILIB_H

#include "process.h"
#include "symbol.h"

typedef uintptr_t pw_word; /* an int, a pointer or a handle, as an argument */

enum pw_language { PW_C, PW_FORTRAN };

struct pw_datatype;

#define PW_IGNORES 4

struct pw_mpi {
	int known;           /* handles and constants are known */
	int standard;        /* it is the ABI of MPI-5 */
	unsigned handle_bytes; /* bytes of a handle in C */
	int by_session;      /* initialized by a session instead of MPI_Init, so there is no MPI_COMM_WORLD */
	pw_word session;     /* that session; 0 after its end */
	pw_word comm_world, comm_self, comm_null, type_null;
	int (*type_size)(pw_word type, int *bytes);
	int (*type_size_x)(pw_word type, int64_t *bytes); /* of MPI-3 */
	int (*type_extent)(pw_word type, intptr_t *low, intptr_t *extent);
	int (*comm_size)(pw_word comm, int *n);
	int (*comm_rank)(pw_word comm, int *rank);
	int (*comm_test_inter)(pw_word comm, int *flag);
	int (*comm_remote_size)(pw_word comm, int *n);
	int (*comm_get_parent)(pw_word *comm);
	int (*comm_group)(pw_word comm, pw_word *group);
	int (*group_translate)(pw_word group, int n, const int *ranks, pw_word other, int *others);
	int (*group_free)(pw_word *group);
	int (*group_rank)(pw_word group, int *rank);
	int (*group_size)(pw_word group, int *n);
	int (*group_from_session_pset)(pw_word session, const char *name, pw_word *group);
	int (*comm_remote_group)(pw_word comm, pw_word *group);
	int (*win_group)(pw_word win, pw_word *group);
	int (*test_cancelled)(const int *status, int *flag);
	int (*error_class)(int error, int *class);
	pw_word (*comm_f2c)(int comm);
	pw_word (*type_f2c)(int type);
	pw_word (*win_f2c)(int win);
	pw_word (*request_f2c)(int request);
	pw_word (*message_f2c)(int message);
	int (*topo_test)(pw_word comm, int *kind);
	int (*cartdim_get)(pw_word comm, int *n);
	int (*graph_neighbors_count)(pw_word comm, int rank, int *n);
	int (*dist_graph_neighbors_count)(pw_word comm, int *in, int *out, int *weighted);
	int topo_graph, topo_cart, topo_dist_graph, root, proc_null; /* MPI_GRAPH, ..., MPI_ROOT, MPI_PROC_NULL */
	int any_source, any_tag, err_truncate;
	unsigned status_ints, status_source; /* size of a status in ints, and the index of MPI_SOURCE; MPI_TAG follows it */
	pw_word status_ignore;		     /* MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE in C */
	pw_word *fortran_ignore[PW_IGNORES]; /* pointers to the variables that have their addresses, or NULL */
	pw_word in_place[2], bottom[2];	/* by enum pw_language */
};
extern struct pw_mpi pw_mpi;
void pw_mpi_init(void); /* fills in pw_mpi, at the end of MPI_Init or MPI_Session_init */
void pw_mpi_world(int32_t *rank, int32_t *size); /* of this process in the job; unchanged if they are not known */
int pw_mpi_is_spawned(void);
int pw_mpi_world_group(pw_word *group); /* returns 0 and a group that the caller frees */
pw_word pw_mpi_session(const void *at, enum pw_language language);
void pw_mpi_each_type(const struct pw_datatype *(*see)(pw_word type)); /* for each predefined datatype */
int64_t pw_mpi_basic_bytes(pw_word type); /* 0 if the handle does not encode its size */

/* For a communicator that MPI has accepted. */
int pw_is_inter(pw_word comm);
void pw_neighbor_counts(pw_word comm, int rank, int *sources, int *destinations);

/* A handle passed in C. The upper half of a register that holds an int is undefined. */
static inline pw_word pw_mpi_handle(pw_word arg) { return pw_mpi.handle_bytes == 4 ? (uint32_t)arg : arg; }

#endif
