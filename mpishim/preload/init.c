/* The beginning and the end of MPI in a process, in the three languages. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "init.h"
#include "mpi_handles.h"
#include "mr.h"
#include "recording.h"
#include "site.h"
#include "start.h"
#include "thread.h"

/* MPI may be in use by MPI_Init, by any number of sessions (MPI-4), or by both. */
/* protects the next line; held while the Go side starts and stops */
static pthread_mutex_t using = PTHREAD_MUTEX_INITIALIZER;
static int has_world, sessions, has_ended;
static __thread int inside; /* one form of a call may call another */

static int is_given(const char *name)
{
	const char *v = getenv(name);

	return v && *v && strcmp(v, "n");
}

/* Whether the user wants a report or a trace, even if nothing is registered. */
static int wants_output(void) { return is_given("PINWHEEL_STATS") || is_given("PINWHEEL_RECORD"); }

static int has_failed; /* exit(3) has got another status than 0 */

static void note_status(int status, void *unused)
{
	(void)unused;
	has_failed = status != 0;
}

#define SAVE_TIMEOUT_S 3 /* to stop the helper, and for the other ranks of the node to end, too */

/* A run that came to its end is worth keeping a profile for. The helper may wait for a lock that this thread
 * holds, if the program exits inside a callback or a signal handler. */
void pw_exit(void)
{
	struct pw_thread *t = pw_self_;

	if (!t || !pw_is_init() || has_failed || !is_given("PINWHEEL_PROFILE") || pw_is_disabled())
		return;
	__atomic_store_n(&pw.mode, PW_PLAIN, __ATOMIC_RELEASE);
	if (pw_ask_within(t, PW_ASK_SAVE, SAVE_TIMEOUT_S) && __atomic_load_n(&pw.serving, __ATOMIC_ACQUIRE))
		pw_warn("the process ends before the helper library is done; what this run has learned may not be kept "
			"(see PINWHEEL_PROFILE)"); /* another rank may have it and write it */
}

/* MPI works now. Learns which library it is, and starts the Go side if the transport uses verbs or the
 * user wants a report. */
static void initialized(const void *session, enum pw_language language)
{
	struct pw_thread *t = pw_self();

	if (!t || pw_is_init())
		return;
	if (has_ended) {
		if (wants_output())
			pw_warn("MPI is initialized again after its end; that part of the program is not looked at");
		return;
	}
	pw_mpi_init();
	if (!pw_mpi.known)
		return;
	if ((pw_mpi.by_session = session != NULL))
		pw_mpi.session = pw_mpi_session(session, language);
	pw_mpi_world(&pw.rank, &pw.size);
	pw.spawned = (uint32_t)pw_mpi_is_spawned();
	pw_mpi_handles_init();
	pw_site_init();
	if (pw_uses_verbs() || wants_output())
		pw_start();
	if (is_given("PINWHEEL_PROFILE"))
		on_exit(note_status, NULL); /* if that can't be done, any status is taken for 0 */
	pw_record_start(t);
	__atomic_store_n(&pw.is_init, 1, __ATOMIC_RELEASE);
}

/*
 * The end has an order: recording ends, nothing new is managed, the helper ends, and what is idle is
 * released. Then the transport closes. It deregisters what it still holds, and the cache
 * of each protection domain goes with that (ibv_dealloc_pd in verbs.c). The Go side
 * stays loaded and sleeps, because a Go library cannot be unloaded.
 */
static void finalizing(void)
{
	if (!pw_is_init())
		return;
	pw_record_finish();
	__atomic_store_n(&pw.is_init, 0, __ATOMIC_RELEASE);
	has_ended = 1;
	pw.kept_regs = pw_mr_taken(); /* all communication has ended: this is a cache of the transport */
	pw_stop();
}

static void world_begins(int failed)
{
	pthread_mutex_lock(&using);
	if (!failed) {
		has_world = 1;
		initialized(NULL, PW_C);
	}
	pthread_mutex_unlock(&using);
}

static void world_ends(void)
{
	pthread_mutex_lock(&using);
	if (has_world && !sessions)
		finalizing();
	has_world = 0;
	pthread_mutex_unlock(&using);
}

static void session_begins(const void *session, enum pw_language language)
{
	pthread_mutex_lock(&using);
	sessions++;
	initialized(session, language);
	pthread_mutex_unlock(&using);
}

static void session_ends(const void *session, enum pw_language language)
{
	pthread_mutex_lock(&using);
	if (sessions && !--sessions && !has_world)
		finalizing();
	if (pw_mpi.session && pw_mpi_session(session, language) == pw_mpi.session)
		pw_mpi.session = 0; /* MPI answers no more questions about it */
	pthread_mutex_unlock(&using);
}

#define REAL(type, symbol) \
	static type real; \
	if (!real && !(real = (type)pw_symbol(symbol))) { \
		pw_warn("%s is called but no MPI library has it", symbol); \
		return MPI_ERR_INTERN_; \
	}
#define MPI_ERR_INTERN_ 17 /* any error will do */

typedef int (*fn0)(void);
typedef int (*fn1)(void *);
typedef int (*fn2)(void *, void *);
typedef int (*fn3)(void *, void *, void *);
typedef int (*fn4)(void *, void *, int, void *);
typedef int (*fn4p)(void *, void *, void *, void *);

/* A tool that is part of the program calls PMPI_x, and so may the MPI library's MPI_x. */
#define C_INIT(symbol) \
	PW_EXPORT int symbol(void *argc, void *argv); \
	PW_EXPORT int symbol(void *argc, void *argv) \
	{ \
		REAL(fn2, #symbol) \
		int rc = real(argc, argv); \
		world_begins(rc); \
		return rc; \
	}
#define C_INIT_THREAD(symbol) \
	PW_EXPORT int symbol(void *argc, void *argv, int required, void *provided); \
	PW_EXPORT int symbol(void *argc, void *argv, int required, void *provided) \
	{ \
		REAL(fn4, #symbol) \
		int rc = real(argc, argv, required, provided); \
		world_begins(rc); \
		return rc; \
	}
#define C_FINALIZE(symbol) \
	PW_EXPORT int symbol(void); \
	PW_EXPORT int symbol(void) \
	{ \
		REAL(fn0, #symbol) \
		world_ends(); \
		return real(); \
	}

C_INIT(MPI_Init)
C_INIT(PMPI_Init)
C_INIT_THREAD(MPI_Init_thread)
C_INIT_THREAD(PMPI_Init_thread)
C_FINALIZE(MPI_Finalize)
C_FINALIZE(PMPI_Finalize)

/* Fortran passes all by reference and the error code last. A failed MPI_Init is noticed later. */
#define FORTRAN_INIT(symbol) \
	PW_EXPORT int symbol(void *ierror); \
	PW_EXPORT int symbol(void *ierror) \
	{ \
		REAL(fn1, #symbol) \
		int rc = real(ierror); \
		world_begins(0); \
		return rc; \
	}
#define FORTRAN_INIT_THREAD(symbol) \
	PW_EXPORT int symbol(void *required, void *provided, void *ierror); \
	PW_EXPORT int symbol(void *required, void *provided, void *ierror) \
	{ \
		REAL(fn3, #symbol) \
		int rc = real(required, provided, ierror); \
		world_begins(0); \
		return rc; \
	}
#define FORTRAN_FINALIZE(symbol) \
	PW_EXPORT int symbol(void *ierror); \
	PW_EXPORT int symbol(void *ierror) \
	{ \
		REAL(fn1, #symbol) \
		world_ends(); \
		return real(ierror); \
	}

/* What a run has learned that did not come to its end would mislead the next one. */
static void aborting(void)
{
	pw_record_exit();
	__atomic_store_n(&pw.is_init, 0, __ATOMIC_RELEASE);
}

#define C_ABORT(symbol) \
	PW_EXPORT int symbol(void *comm, int code); \
	PW_EXPORT int symbol(void *comm, int code) \
	{ \
		typedef int (*abort_fn)(void *, int); \
		REAL(abort_fn, #symbol) \
		aborting(); \
		return real(comm, code); \
	}
#define FORTRAN_ABORT(symbol) \
	PW_EXPORT int symbol(void *comm, void *code, void *ierror); \
	PW_EXPORT int symbol(void *comm, void *code, void *ierror) \
	{ \
		REAL(fn3, #symbol) \
		aborting(); \
		return real(comm, code, ierror); \
	}

C_ABORT(MPI_Abort)
C_ABORT(PMPI_Abort)
FORTRAN_ABORT(mpi_abort_)
FORTRAN_ABORT(mpi_abort_f08_)

FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
FORTRAN_FINALIZE(mpi_finalize_)
FORTRAN_FINALIZE(mpi_finalize_f08_)

#define C_SESSION_INIT(symbol) \
	PW_EXPORT int symbol(void *info, void *handler, void *session); \
	PW_EXPORT int symbol(void *info, void *handler, void *session) \
	{ \
		REAL(fn3, #symbol) \
		int rc; \
\
		inside++; \
		rc = real(info, handler, session); \
		inside--; \
		if (!rc && !inside) \
			session_begins(session, PW_C); \
		return rc; \
	}
#define C_SESSION_FINALIZE(symbol) \
	PW_EXPORT int symbol(void *session); \
	PW_EXPORT int symbol(void *session) \
	{ \
		REAL(fn1, #symbol) \
		int rc; \
\
		if (session && !inside) \
			session_ends(session, PW_C); \
		inside++; \
		rc = real(session); \
		inside--; \
		return rc; \
	}

C_SESSION_INIT(MPI_Session_init)
C_SESSION_INIT(PMPI_Session_init)
C_SESSION_FINALIZE(MPI_Session_finalize)
C_SESSION_FINALIZE(PMPI_Session_finalize)

/* In mpi_f08 the error code may be absent. */
#define FORTRAN_SESSION_INIT(symbol) \
	PW_EXPORT int symbol(void *info, void *handler, int *session, int *ierror); \
	PW_EXPORT int symbol(void *info, void *handler, int *session, int *ierror) \
	{ \
		REAL(fn4p, #symbol) \
		int error = 0, rc; \
\
		ierror = ierror ? ierror : &error; \
		inside++; \
		rc = real(info, handler, session, ierror); \
		inside--; \
		if (!*ierror) \
			session_begins(session, PW_FORTRAN); \
		return rc; \
	}
#define FORTRAN_SESSION_FINALIZE(symbol) \
	PW_EXPORT int symbol(int *session, void *ierror); \
	PW_EXPORT int symbol(int *session, void *ierror) \
	{ \
		REAL(fn2, #symbol) \
		int rc; \
\
		session_ends(session, PW_FORTRAN); \
		inside++; \
		rc = real(session, ierror); \
		inside--; \
		return rc; \
	}

FORTRAN_SESSION_INIT(mpi_session_init_)
FORTRAN_SESSION_INIT(mpi_session_init_f08_)
FORTRAN_SESSION_FINALIZE(mpi_session_finalize_)
FORTRAN_SESSION_FINALIZE(mpi_session_finalize_f08_)
