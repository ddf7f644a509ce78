/* MPI_Init, MPI_Init_thread and MPI_Finalize in the three languages. */
#define _GNU_SOURCE
#include "call.h"

/* MPI works now: learn what it is, and start if the transport uses verbs or the user wants a report. */
static void initialized(void)
{
	struct pw_thread *t = pw_self();
	int n = -1;

	if (!t || pw.is_init)
		return;
	pw_mpi_init();
	if (!pw_mpi.known)
		return;
	pw_known_init();
	if (!pw_mpi.comm_rank(pw_mpi.comm_world, &n))
		pw.rank = n;
	if (!pw_mpi.comm_size(pw_mpi.comm_world, &n))
		pw.size = n;
	pw_site_init();
	if (pw.verbs_used || pw_wanted())
		pw_start();
	pw_record_start(t);
	__atomic_store_n(&pw.is_init, 1, __ATOMIC_RELEASE);
}

/*
 * The order of the end: recording; no more new registrations of ours; the helper;
 * what is idle. Then the transport closes: it gives back what it still holds, and
 * with each protection domain its cache goes (ibv_dealloc_pd in verbs.c). The Go
 * side stays loaded, asleep: a Go library can not be unloaded.
 */
static void finalizing(void)
{
	if (!pw.is_init)
		return;
	pw_record_finish();
	__atomic_store_n(&pw.is_init, 0, __ATOMIC_RELEASE);
	pw_stop();
}

#define REAL(type, symbol) \
	static type real; \
	if (!real && !(real = (type)pw_symbol(symbol))) { \
		pw_say("%s is called but no MPI library has it", symbol); \
		return MPI_ERR_INTERN_; \
	}
#define MPI_ERR_INTERN_ 17 /* any error will do */

typedef int (*fn0)(void);
typedef int (*fn1)(void *);
typedef int (*fn2)(void *, void *);
typedef int (*fn3)(void *, void *, void *);
typedef int (*fn4)(void *, void *, int, void *);

PW_EXPORT int MPI_Init(void *argc, void *argv);
PW_EXPORT int MPI_Init(void *argc, void *argv)
{
	REAL(fn2, "MPI_Init")
	int rc = real(argc, argv);

	if (!rc)
		initialized();
	return rc;
}

PW_EXPORT int MPI_Init_thread(void *argc, void *argv, int required, void *provided);
PW_EXPORT int MPI_Init_thread(void *argc, void *argv, int required, void *provided)
{
	REAL(fn4, "MPI_Init_thread")
	int rc = real(argc, argv, required, provided);

	if (!rc)
		initialized();
	return rc;
}

PW_EXPORT int MPI_Finalize(void);
PW_EXPORT int MPI_Finalize(void)
{
	REAL(fn0, "MPI_Finalize")
	finalizing();
	return real();
}

/* Fortran: all by reference, the error code last; what a failed MPI_Init leaves is noticed later. */
#define FORTRAN_INIT(symbol) \
	PW_EXPORT int symbol(void *ierror); \
	PW_EXPORT int symbol(void *ierror) \
	{ \
		REAL(fn1, #symbol) \
		int rc = real(ierror); \
		initialized(); \
		return rc; \
	}
#define FORTRAN_INIT_THREAD(symbol) \
	PW_EXPORT int symbol(void *required, void *provided, void *ierror); \
	PW_EXPORT int symbol(void *required, void *provided, void *ierror) \
	{ \
		REAL(fn3, #symbol) \
		int rc = real(required, provided, ierror); \
		initialized(); \
		return rc; \
	}
#define FORTRAN_FINALIZE(symbol) \
	PW_EXPORT int symbol(void *ierror); \
	PW_EXPORT int symbol(void *ierror) \
	{ \
		REAL(fn1, #symbol) \
		finalizing(); \
		return real(ierror); \
	}

FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
FORTRAN_FINALIZE(mpi_finalize_)
FORTRAN_FINALIZE(mpi_finalize_f08_)
