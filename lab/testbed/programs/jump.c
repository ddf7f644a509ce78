/*
 * An error handler that jumps out of the MPI call. The calls after it are calls as any other: from the same
 * function, from one that called it, from ones that are called later and lie deeper. MPI calls from inside of
 * MPI calls go on being none of the program's. The argument: how often.
 */
#include <setjmp.h>

#include "check.h"

static jmp_buf out;
static int words = 4096, jumps;
static uint64_t *a, *b;

static void jump(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
	jumps++;
	longjmp(out, 1);
}

/* Two calls' worth: one that sends, one that receives. */
static __attribute__((noinline)) void exchange(int step)
{
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;

	check_fill(a, (size_t)words, check_rank, step, 0);
	MPI_Sendrecv(a, words, MPI_UINT64_T, right, 0, b, words, MPI_UINT64_T, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_same(b, (size_t)words, left, step, 0);
}

/* The compiler must believe that the room is used. */
static void keep(void *room) { __asm__ volatile("" : : "r"(room) : "memory"); }

/* Deeper, with room on the stack that nobody writes to. */
static __attribute__((noinline)) void deeper(int step)
{
	char room[3000];

	keep(room);
	exchange(step);
	keep(room);
}

static __attribute__((noinline)) void fail(void)
{
	char room[200]; /* less than deeper has */

	keep(room);
	MPI_Send(a, words, MPI_UINT64_T, 1000, 0, MPI_COMM_WORLD);
	keep(room);
}

static __attribute__((noinline)) void fail_deeper(void)
{
	char room[3000];

	keep(room);
	fail();
	keep(room);
}

/* Called inside of MPI_Comm_dup: what it sends is part of that. */
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out_value, int *flag)
{
	(void)comm, (void)key, (void)extra, (void)in, (void)out_value;
	MPI_Sendrecv(a, words, MPI_UINT64_T, 0, 5, b, words, MPI_UINT64_T, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	*flag = 0;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 5), key;
	MPI_Errhandler h;
	MPI_Comm c;

	check_begin(&argc, &argv);
	a = check_alloc((size_t)words);
	b = check_alloc((size_t)words);
	MPI_Comm_create_errhandler(jump, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	for (volatile int s = 0; s < steps; s++) {
		if (!setjmp(out))
			MPI_Send(a, words, MPI_UINT64_T, 1000, 0, MPI_COMM_WORLD);
		MPI_Sendrecv_replace(b, words, MPI_UINT64_T, check_rank, 0, check_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!setjmp(out))
			MPI_Send(a, words, MPI_UINT64_T, 1000, 0, MPI_COMM_WORLD);
		exchange(s);
		if (!setjmp(out))
			MPI_Send(a, words, MPI_UINT64_T, 1000, 0, MPI_COMM_WORLD);
		deeper(s);
		if (!setjmp(out))
			fail_deeper();
		exchange(s);
		if (!setjmp(out))
			fail_deeper();
		deeper(s);
		if (!setjmp(out))
			fail();
		deeper(s);
	}
	check_errors += jumps != 6 * steps;
	MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, a);
	for (int s = 0; s < steps; s++) {
		MPI_Comm_dup(MPI_COMM_SELF, &c);
		MPI_Comm_free(&c);
	}
	return check_end("jump");
}
