/*
 * What the helper can read of the MPI call under way, on the stand-in: linked with the sources of
 * libpinwheel.so, so that it sees the words that they share with Go. It exits with the number of calls that
 * were not as they should be.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include "core.h"

int MPI_Init(int *argc, char ***argv);
int MPI_Send(const void *buf, int count, void *type, int to, int tag, void *comm);
int MPI_Test(void **request, int *flag, void *status);
int MPI_Barrier(void *comm);
int MPI_Finalize(void);
extern char ompi_mpi_comm_world, ompi_mpi_byte;
extern void (*standin_inside)(void);
extern size_t standin_copies;

static char buf[8];
static int looks[4], looked, failures;
static jmp_buf out;

static int is_waiting(void) { return (int)__atomic_load_n(&pw_self()->waiting, __ATOMIC_RELAXED); }

static void look(void) { looks[looked++ % 4] = is_waiting(); }

static void jump(void) { longjmp(out, 1); }

/* The compiler must believe that the room is used. */
static void keep(void *room) { __asm__ volatile("" : : "r"(room) : "memory"); }

/* Lies deeper than test, which tells unwound.c that its call was left. */
static __attribute__((noinline)) void send(void)
{
	char room[1000];

	keep(room);
	MPI_Send(buf, sizeof buf, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
	keep(room);
}

static __attribute__((noinline)) void test(void)
{
	void *request = NULL;
	int flag;

	MPI_Test(&request, &flag, NULL);
}

/* A call in which the word was read so often, and was the same each time; afterwards it is 0. */
static void expect(const char *what, int calls, int waiting)
{
	int wrong = looked != calls || is_waiting();

	for (int i = 0; i < looked; i++)
		wrong |= looks[i % 4] != waiting;
	if (wrong)
		printf("%s: read %d times, of which the first %d, %d; afterwards %d\n", what, looked, looks[0], looks[1], is_waiting());
	failures += wrong;
	looked = 0;
}

static void *in_thread(void *unused)
{
	(void)unused;
	if (!setjmp(out)) {
		standin_inside = jump;
		send();
	}
	standin_inside = look;
	return pw_self();
}

int main(int argc, char **argv)
{
	pthread_t t;
	void *ended;

	standin_copies = sizeof buf + 1;
	if (MPI_Init(&argc, &argv))
		return 100;
	standin_inside = look;
	send();
	expect("MPI_Send", 1, 1);
	test();
	expect("MPI_Test", 1, 0);
	MPI_Barrier(&ompi_mpi_comm_world); /* its own MPI_Send ends before it does */
	expect("MPI_Barrier", 2, 1);
	if (!setjmp(out)) {
		standin_inside = jump;
		send();
	}
	standin_inside = look;
	test(); /* left by the call before, without a return */
	expect("MPI_Test after a jump", 1, 0);
	/* A thread that ends so does not wait for ever. */
	if (pthread_create(&t, NULL, in_thread, NULL) || pthread_join(t, &ended))
		return 101;
	if (__atomic_load_n(&((struct pw_thread *)ended)->waiting, __ATOMIC_RELAXED))
		failures++, printf("a thread that has ended waits\n");
	return failures + MPI_Finalize();
}
