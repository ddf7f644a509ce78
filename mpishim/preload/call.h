/* One MPI call under way, as every wrapper sees it. */
#ifndef PINWHEEL_CALL_H
#define PINWHEEL_CALL_H

#include "mpi_handles.h"
#include "process.h"

/* How the count of a buffer is given. */
enum pw_count_form {
	PW_NO_BUFFER,
	PW_COUNT,
	PW_COUNT_PER_PEER, /* count elements for every member of the communicator */
	PW_COUNTS,	   /* arrays of counts and displacements */
	PW_COUNTS_TYPES,   /* arrays of counts, datatypes and displacements in bytes */
	PW_COUNTS_SUM,	   /* an array of counts whose parts follow each other without gaps */
	PW_COUNTS_OWN,	   /* an array of counts, of which this rank has its own part */
	PW_PARTITIONS,	   /* count elements, an MPI_Count, in each of so many partitions; displs is their argument */
};
enum pw_creates { PW_NO_REQUEST, PW_REQUEST, PW_PERSISTENT, PW_MESSAGE };
enum pw_completes {
	PW_COMPLETES_NONE, PW_COMPLETES_ALL, PW_COMPLETES_ONE, PW_COMPLETES_SOME, PW_STARTS, PW_FREES,
	PW_CANCELS, PW_COMPLETES_RMA,
};
enum pw_lifecycle {
	PW_NO_LIFECYCLE, PW_TYPE_CREATED, PW_TYPE_FREED, PW_COMM_CREATED, PW_COMM_STARTED, PW_COMM_FREED,
	PW_WIN_CREATED, PW_WIN_FREED,
};
enum pw_rooted { PW_EVERYWHERE, PW_SEND_AT_ROOT, PW_RECV_AT_ROOT };

/* Positions of arguments, from 1; see calls.h. */
struct pw_buffer {
	uint8_t buf, count, type, displs, form;
};

struct pw_spec {
	uint8_t op, creates, completes, rooted;
	struct pw_buffer send, recv;
	uint8_t peer, tag, from, from_tag, comm;
	uint8_t req, number, which, some, flag;
	uint8_t status; /* or statuses */
	uint8_t message, win;
	uint8_t handle, lifecycle; /* a datatype, communicator or window by reference, and whether it is created or freed */
	uint8_t by_group; /* only a group of the parent's members takes part */
	uint8_t neighborhood; /* a collective of the neighbors in a topology */
	uint8_t aints; /* displacements are MPI_Aint */
	uint8_t ready; /* a request by value, of which something may be sent */
	uint8_t relays; /* MPI passes the data on by calls of its own, whose buffers are announced as well */
	uint8_t wide;  /* MPI_Count for int, MPI_Aint for displacements: the MPI_x_c of MPI-4 */
};

#define PW_INLINE_REQUESTS 16

struct pw_call {
	const struct pw_spec *spec;
	pw_word *arg; /* from 1 */
	struct pw_thread *thread; /* NULL: the call is not looked at */
	enum pw_language language;
	int recorded;
	int error;     /* of the MPI library */
	int succeeded; /* the MPI library has accepted the arguments and set the results */
	int unknown;   /* its buffers are announced only when it has succeeded */
	uint64_t start_ns, start_cpu_ns;
	uint64_t changes; /* recording: of mappings, before the call */
	struct pw_pending **completing; /* recording: the requests that a wait or test was given */
	struct pw_pending *inline_requests[PW_INLINE_REQUESTS];
};

static inline int64_t pw_int(const struct pw_call *c, unsigned i)
{
	return c->language == PW_C ? (int)c->arg[i] : *(const int *)c->arg[i];
}

/* A count of elements. */
static inline int64_t pw_count(const struct pw_call *c, unsigned i)
{
	return c->spec->wide ? (int64_t)c->arg[i] : pw_int(c, i);
}

/* The elements of a buffer whose count is one number. */
static inline int64_t pw_elements(const struct pw_call *c, const struct pw_buffer *b)
{
	if (b->form != PW_PARTITIONS)
		return pw_count(c, b->count);
	return pw_int(c, b->displs) *
	       (c->language == PW_C ? (int64_t)c->arg[b->count] : *(const int64_t *)c->arg[b->count]);
}

static inline pw_word pw_type(const struct pw_call *c, unsigned i)
{
	return c->language == PW_C ? pw_mpi_handle(c->arg[i]) : pw_mpi.type_f2c(*(const int *)c->arg[i]);
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
	return c->language == PW_C ? pw_mpi_handle(c->arg[i]) : pw_mpi.comm_f2c(*(const int *)c->arg[i]);
}

/* The key of a request or message: its handle in C, whatever language passes it. */
static inline uint64_t pw_key(const struct pw_call *c, unsigned argument, unsigned index)
{
	const void *at = (const void *)c->arg[argument];

	if (c->language == PW_FORTRAN)
		return (argument == c->spec->req ? pw_mpi.request_f2c : pw_mpi.message_f2c)(((const int *)at)[index]);
	return pw_mpi.handle_bytes == 4 ? ((const uint32_t *)at)[index] : ((const uint64_t *)at)[index];
}

static inline uint64_t pw_request(const struct pw_call *c, unsigned index) { return pw_key(c, c->spec->req, index); }

/* Likewise of one that is given by value. */
static inline uint64_t pw_ready_request(const struct pw_call *c)
{
	pw_word arg = c->arg[c->spec->ready];

	return c->language == PW_C ? pw_mpi_handle(arg) : pw_mpi.request_f2c(*(const int *)arg);
}

/* The window of a one-sided call. */
static inline pw_word pw_win(const struct pw_call *c)
{
	pw_word arg = c->arg[c->spec->win];

	return c->language == PW_C ? pw_mpi_handle(arg) : pw_mpi.win_f2c(*(const int *)arg);
}

/* A datatype, communicator or window given by reference. */
static inline pw_word pw_handle_at(const struct pw_call *c, unsigned i)
{
	const void *at = (const void *)c->arg[i];
	unsigned lifecycle = c->spec->lifecycle;

	if (!at)
		return 0;
	if (c->language == PW_FORTRAN)
		return (lifecycle <= PW_TYPE_FREED   ? pw_mpi.type_f2c
			: lifecycle <= PW_COMM_FREED ? pw_mpi.comm_f2c
						     : pw_mpi.win_f2c)(*(const int *)at);
	return pw_mpi.handle_bytes == 4 ? *(const uint32_t *)at : *(const pw_word *)at;
}

static inline int pw_is_in_place(const struct pw_call *c, unsigned i)
{
	return c->arg[i] == pw_mpi.in_place[c->language];
}

/* The address that a datatype's offsets count from. With MPI_BOTTOM they are addresses themselves. */
static inline pw_word pw_address(const struct pw_call *c, unsigned i)
{
	return c->arg[i] == pw_mpi.bottom[c->language] ? 0 : c->arg[i];
}

/* Whether the call announces what persistent requests are for, or forgets it. */
static inline int pw_is_of_persistent(const struct pw_spec *s)
{
	return s->completes == PW_STARTS || s->completes == PW_FREES || s->ready;
}

/* Whether a buffer is significant at the root only. */
static inline int pw_is_of_root(const struct pw_spec *s, const struct pw_buffer *b)
{
	return (s->rooted == PW_SEND_AT_ROOT && b == &s->send) || (s->rooted == PW_RECV_AT_ROOT && b == &s->recv);
}

/* unwound.c: whether the call whose wrapper has the outer frame was left without a return */
int pw_was_unwound(void **outer, void **frame);

#endif
