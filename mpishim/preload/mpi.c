/* The wrappers, in C, Fortran and mpi_f08, of every row of calls.h. */
#define _GNU_SOURCE
#include "announce.h"
#include "calls.h"
#include "record.h"
#include "record_comm.h"
#include "record_ring.h"
#include "thread.h"

typedef pw_word (*pw_fn)();

static __attribute__((noinline, cold)) void announce_timed(struct pw_call *c)
{
	struct pw_thread *t = c->thread;
	uint32_t before = pw_announced_count(t);
	uint64_t ticks = pw_ticks();

	pw_announce_call(c);
	ticks = pw_ticks() - ticks;
	t->next_announce = PW_SAMPLE - 1;
	if (pw_announced_count(t) == before || ticks >= PW_INTERRUPTED) /* nothing large */
		return;
	pw_add(&t->announce_ticks, ticks);
	pw_add(&t->announce_samples, pw_announced_count(t) - before);
}

static inline __attribute__((always_inline)) void announce(struct pw_call *c)
{
	if (pw_likely(c->thread->next_announce--))
		pw_announce_call(c);
	else
		announce_timed(c);
}

/* Whether a buffer is certainly too small to be looked at, as that of most calls is. */
static inline __attribute__((always_inline)) int is_small_buffer(const struct pw_call *c, const struct pw_buffer *b)
{
	const struct pw_datatype *type = pw_datatype_known(pw_type(c, b->type));
	uint64_t bytes;

	return type && !__builtin_mul_overflow((uint64_t)pw_count(c, b->count), (uint64_t)type->bytes, &bytes) &&
	       bytes < pw_notice();
}

/*
 * Whether a call with these buffers has nothing to announce. Only of calls whose counts and
 * datatypes mean something in every process; the others take the way through announce.c.
 */
static inline __attribute__((always_inline)) int is_small(const struct pw_call *c, const struct pw_spec *s)
{
	const int has_send = s->send.form != PW_NO_BUFFER, has_recv = s->recv.form != PW_NO_BUFFER;

	if (s->creates == PW_PERSISTENT)
		return 1; /* announced when it is started */
	if (s->completes || s->ready || (has_send && s->send.form != PW_COUNT) || (has_recv && s->recv.form != PW_COUNT))
		return 0;
	return (!has_send || is_small_buffer(c, &s->send)) &&
	       (!has_recv || s->recv.count == s->send.count || is_small_buffer(c, &s->recv));
}

static inline __attribute__((always_inline)) void announce_if_large(struct pw_call *c, const struct pw_spec *s)
{
	if (s->send.form || s->recv.form || pw_is_of_persistent(s))
		/* Over shared memory alone nothing is registered. */
		if (pw_is_managing() && pw_uses_verbs() && !is_small(c, s))
			announce(c);
}

/* For calls from inside MPI as well, since the handle may be given to another object at once. */
static __attribute__((noinline)) void forget(const struct pw_call *c)
{
	pw_word handle = pw_handle_at(c, c->spec->handle);

	if (c->spec->lifecycle == PW_TYPE_FREED)
		pw_datatype_forget(handle);
	if (c->spec->lifecycle == PW_COMM_FREED)
		pw_comm_info_forget(handle);
	if (c->spec->lifecycle >= PW_COMM_FREED && pw_is_recording())
		pw_comm_forget(handle);
}

static __attribute__((noinline)) void learn(const struct pw_call *c)
{
	pw_word handle = pw_handle_at(c, c->spec->handle);

	if (c->spec->lifecycle == PW_TYPE_CREATED)
		pw_datatype_learn(handle);
	if (c->spec->lifecycle == PW_COMM_CREATED)
		pw_comm_info_learn(handle);
	if (c->spec->lifecycle >= PW_COMM_CREATED && c->thread->depth == 1 && pw_is_recording())
		pw_record_created(c);
}

/*
 * Whether the call under way was left without a return. Between MPI_x and PMPI_x there is a tool or MPI itself, which
 * may call PMPI_x often: there only what costs nothing is looked at.
 */
static inline int was_unwound(const struct pw_thread *t, void **frame, int is_profiling)
{
	return is_profiling && !t->by_profiling ? frame >= t->frame : pw_was_unwound(t->frame, frame);
}

/* s is c->spec, which is constant here. */
static inline __attribute__((always_inline)) void enter(struct pw_call *c, const struct pw_spec *s, void *frame,
		int is_profiling)
{
	struct pw_thread *t = pw_self();

	c->thread = NULL;
	c->recorded = 0;
	c->succeeded = 0;
	c->unknown = 0;
	if (pw_unlikely(!t || !pw_is_init()))
		return;
	c->thread = t;
	if (s->lifecycle == PW_TYPE_FREED || s->lifecycle == PW_COMM_FREED || s->lifecycle == PW_WIN_FREED)
		forget(c);
	if (t->depth && was_unwound(t, frame, is_profiling)) /* an error handler has jumped, or an exception has passed */
		t->depth = 0;
	if (t->depth++) { /* the MPI library calls itself */
		if (pw_unlikely(t->relays))
			announce_if_large(c, s);
		return;
	}
	pw_add(&t->seq, 1);
	t->op = s->op;
	t->frame = frame;
	t->relays = s->relays;
	t->by_profiling = (uint32_t)is_profiling;
	announce_if_large(c, s);
	if (pw_recording(t))
		pw_record_begin(c);
	else if (pw_is_recording())
		pw_record_left_out(c);
}

static inline __attribute__((always_inline)) void leave(struct pw_call *c, const struct pw_spec *s, int error)
{
	struct pw_thread *t = c->thread;
	const int creates = s->lifecycle == PW_TYPE_CREATED || s->lifecycle == PW_COMM_CREATED ||
			s->lifecycle == PW_WIN_CREATED;

	if (pw_unlikely(!t))
		return;
	if (creates || s->creates == PW_PERSISTENT || pw_unlikely(c->unknown | c->recorded)) {
		c->error = error;
		c->succeeded = !error;
		if (creates && c->succeeded)
			learn(c);
		if (c->unknown && c->succeeded)
			pw_announce_call(c);
		if (s->creates == PW_PERSISTENT && t->depth == 1 && pw_is_managing() && c->succeeded)
			pw_announce_persistent(c);
		if (c->recorded)
			pw_record_end(c);
	}
	if (t->depth)
		t->depth--;
}

/*
 * Calls whose wrappers should rather be small than fast, by a few nanoseconds: they are seldom made, as those with large
 * counts and one-sided ones, or take long, as collectives.
 */
#define IS_SELDOM(s) \
	((s).relays || (s).creates == PW_PERSISTENT || (s).lifecycle || (s).wide || (s).win || \
	 ((s).comm && !(s).peer && !(s).from))

static __attribute__((noinline)) void enter_small(struct pw_call *c, void *frame, int is_profiling)
{
	enter(c, c->spec, frame, is_profiling);
}
static __attribute__((noinline)) void leave_small(struct pw_call *c, int error) { leave(c, c->spec, error); }

/* Finds the real function. A linked program has one. */
static __attribute__((noinline, cold)) pw_fn find(pw_fn *real, const char *name)
{
	pw_fn f = (pw_fn)pw_symbol(name);

	if (!f)
		pw_warn("%s is called but no MPI library has it", name);
	__atomic_store_n(real, f, __ATOMIC_RELAXED);
	return f;
}

#define P1 pw_word a1
#define P2 P1, pw_word a2
#define P3 P2, pw_word a3
#define P4 P3, pw_word a4
#define P5 P4, pw_word a5
#define P6 P5, pw_word a6
#define P7 P6, pw_word a7
#define P8 P7, pw_word a8
#define P9 P8, pw_word a9
#define P10 P9, pw_word a10
#define P11 P10, pw_word a11
#define P12 P11, pw_word a12
#define P13 P12, pw_word a13
#define P14 P13, pw_word a14
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A11 A10, a11
#define A12 A11, a12
#define A13 A12, a13
#define A14 A13, a14
#define V1 a[1]
#define V2 V1, a[2]
#define V3 V2, a[3]
#define V4 V3, a[4]
#define V5 V4, a[5]
#define V6 V5, a[6]
#define V7 V6, a[7]
#define V8 V7, a[8]
#define V9 V8, a[9]
#define V10 V9, a[10]
#define V11 V10, a[11]
#define V12 V11, a[12]
#define V13 V12, a[13]
#define V14 V13, a[14]
#define F1 2
#define F2 3
#define F3 4
#define F4 5
#define F5 6
#define F6 7
#define F7 8
#define F8 9
#define F9 10
#define F10 11
#define F11 12
#define F12 13
#define F13 14

#define MPI_ERR_INTERN_ 17 /* any error will do: see find */

#define WRAPPER(symbol, n, spec_, language_, is_profiling, before, is_error) \
	PW_EXPORT int symbol(PW_CAT(P, n)); \
	PW_EXPORT int symbol(PW_CAT(P, n)) \
	{ \
		static pw_fn real; \
		pw_fn f = __atomic_load_n(&real, __ATOMIC_RELAXED); \
		pw_word rc; \
		struct pw_call c; \
		before \
		pw_word a[] = {0, PW_CAT(A, n)}; \
\
		if (pw_unlikely(!f) && !(f = find(&real, #symbol))) \
			return MPI_ERR_INTERN_; \
		c.spec = &spec_; \
		c.arg = a; \
		c.language = language_; \
		if (is_profiling || IS_SELDOM(spec_)) \
			enter_small(&c, __builtin_frame_address(0), is_profiling); \
		else \
			enter(&c, &spec_, __builtin_frame_address(0), 0); \
		rc = (spec_).status ? f(PW_CAT(V, n)) : f(PW_CAT(A, n)); /* recording may put in a status */ \
		if (is_profiling || IS_SELDOM(spec_)) \
			leave_small(&c, is_error); \
		else \
			leave(&c, &spec_, is_error); \
		return (int)rc; \
	}

/*
 * PMPI_x as well: a tool that is part of the program has MPI_x, and calls PMPI_x. MPI calls it by itself, too, where
 * it is made of other calls, as MPI-IO is.
 */
#define C_WRAPPER(name, n, spec_) C_WRAPPER_OF(MPI_##name, n, spec_)
#define C_WRAPPER_OF(symbol, n, spec_) \
	WRAPPER(symbol, n, spec_, PW_C, 0, , (int)rc) \
	WRAPPER(P##symbol, n, spec_, PW_C, 1, , (int)rc)

/* The error code is the last argument. In mpi_f08 it may be absent, and is NULL then. */
#define FORTRAN_WRAPPER(symbol, n, spec_) \
	WRAPPER(symbol, n, spec_, PW_FORTRAN, 0, int error = 0; if (!PW_CAT(a, n)) PW_CAT(a, n) = (pw_word)&error;, \
		*(const int *)PW_CAT(a, n))

#define CALL(Name, name, n, ...) \
	static const struct pw_spec spec_##Name = {__VA_ARGS__}; \
	C_WRAPPER(Name, n, spec_##Name) \
	FORTRAN_WRAPPER(mpi_##name##_, PW_CAT(F, n), spec_##Name) \
	FORTRAN_WRAPPER(mpi_##name##_f08_, PW_CAT(F, n), spec_##Name)

/* A call to which Fortran passes strings, whose lengths are arguments as well. A Fortran handle is
 * learned at its first use. */
#define TEXT(Name, name, n, ...) \
	static const struct pw_spec spec_##Name = {__VA_ARGS__}; \
	C_WRAPPER(Name, n, spec_##Name)

/* A call with counts. MPI-4 also has its form with large counts in C. */
#define DATA(Name, name, n, ...) \
	CALL(Name, name, n, __VA_ARGS__) \
	static const struct pw_spec spec_##Name##_c = {__VA_ARGS__, .wide = 1}; \
	C_WRAPPER(Name##_c, n, spec_##Name##_c)

/* Another name of the call of the row before. In Fortran it comes to PMPIX_x. */
#define EXT(Name, n) C_WRAPPER_OF(MPIX_##Name, n, spec_##Name)

PW_CALLS(CALL, DATA, TEXT, EXT)
