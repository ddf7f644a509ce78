/*
 * What programs do with a process, on the stand-in: the argument says what. It
 * exits with 0 if the preload library did not disturb it, or as the mode says.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

#define BYTES (64 << 10)
static char *buf;
static int send_some(int n)
{
	int failed = 0;

	for (int i = 0; i < n; i++)
		failed += MPI_Send(buf, BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
	return failed;
}

static void *in_thread(void *unused)
{
	char *mine = malloc(BYTES), *others = malloc(BYTES);
	int failed = 0;

	(void)unused;
	for (int i = 0; i < 50; i++) {
		void *win;

		failed += MPI_Send(mine, BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);
		failed += MPI_Win_create(others, BYTES, 1, NULL, &ompi_mpi_comm_world, &win); /* another thread's? */
		failed += MPI_Win_free(&win);
	}
	free(mine);
	free(others);
	return (void *)(intptr_t)failed;
}

static int threads(void)
{
	int failed = 0;

	for (int round = 0; round < 5; round++) {
		pthread_t t[4];
		void *r;

		for (int i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, in_thread, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], &r), failed += (int)(intptr_t)r;
	}
	return failed;
}

static volatile sig_atomic_t alarms, elsewhere;
static pthread_t main_thread;
static void on_alarm(int s)
{
	alarms += s == SIGALRM;
	elsewhere += !pthread_equal(pthread_self(), main_thread);
}

static int signals(void)
{
	struct sigaction a = {.sa_handler = on_alarm};
	struct timespec t = {.tv_sec = 20};

	main_thread = pthread_self();
	sigaction(SIGALRM, &a, NULL);
	alarm(1);
	return nanosleep(&t, NULL) == 0 || alarms != 1 || elsewhere;
}

/* A forked child may register and deregister, plainly, and give back what its parent holds. */
static int forks(void)
{
	int status, failed = 0;

	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(send_some(3) ? 1 : 5);
		failed += waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5;
		failed += send_some(3);
	}
	return failed + (system("exit 6") != 6 << 8);
}

/* The same address ten times, with other memory each time: each needs a registration of its own. */
static int renew(void)
{
	char *was = buf;
	int failed = 0;

	buf = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 10; i++) {
		memset(buf, i, BYTES);
		failed += send_some(3);
		munmap(buf, BYTES);
		failed += mmap(buf, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != buf;
	}
	buf = was;
	return failed;
}

/* Windows are registered for long, by a call that is not wrapped: one over memory that is sent, one over other. */
static int windows(void)
{
	char *other = malloc(BYTES);
	void *win[2];
	int failed = MPI_Win_create(buf, BYTES, 1, NULL, &ompi_mpi_comm_world, &win[0]) +
		     MPI_Win_create(other, BYTES, 1, NULL, &ompi_mpi_comm_world, &win[1]);

	for (int i = 0; i < 20; i++) {
		struct timespec t = {.tv_nsec = 2000000}; /* time for the helper to release what is not used */

		failed += send_some(3);
		nanosleep(&t, NULL);
		failed += MPI_Win_fence(0, win[0]) + MPI_Win_fence(0, win[1]); /* fails if it is not registered */
	}
	failed += MPI_Win_free(&win[0]) + MPI_Win_free(&win[1]) + send_some(3);
	free(other);
	return failed;
}

static void *window;

/* Another registration under the same handle, whose address and keys the transport sees there: managed or not. */
static int is_now(int flags, char *addr, int access)
{
	struct {
		void *context, *pd, *addr;
		size_t length;
	} *mr = window;

	return !ibv_rereg_mr(window, flags, NULL, addr, BYTES, access) && mr->addr == addr && mr->length == BYTES &&
	       !MPI_Win_fence(0, window);
}

static int register_again(void)
{
	char *sent = malloc(BYTES), *never_sent = malloc(BYTES);
	/* Mapped, so that no other thread gets its address. */
	char *refused = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int failed = MPI_Send(sent, BYTES, &ompi_mpi_byte, 0, 0, &ompi_mpi_comm_world);

	failed += !is_now(1, sent, 0) + !is_now(1, never_sent, 0) + !is_now(1 | 4, sent, 1 << 7) + !is_now(1 | 4, sent, 7);
	failed += ibv_rereg_mr(window, 1, NULL, refused, BYTES, 0) != -1 || MPI_Win_fence(0, window); /* still good */
	failed += ibv_rereg_mr(window, 0, NULL, NULL, 0, 0) != -1 ||
		ibv_rereg_mr(window, 1 << 5, NULL, sent, BYTES, 0) != -1;
	failed += !is_now(1, buf, 0) + MPI_Win_fence(0, window) + munmap(refused, BYTES);
	return failed;
}

/* When nothing new is managed any more. */
static int register_again_at_the_end(void) { return register_again() + register_again() + MPI_Win_free(&window); }

static int registers_again(void)
{
	int failed = MPI_Win_create(buf, BYTES, 1, NULL, &ompi_mpi_comm_world, &window);

	standin_finalizing = register_again_at_the_end;
	return failed + standin_owns(window) + register_again() + register_again();
}

/* Messages of 4 TiB to 4 EiB, with the first pages mapped or addresses reserved, are refused; the rest goes on. */
static int huge(void)
{
	void *reserved = mmap(NULL, (size_t)1 << 42, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int failed = MPI_Send(reserved, 0, &standin_wide, 0, 0, &ompi_mpi_comm_world);

	for (int shift = 2; shift < 23; shift++) {
		failed += MPI_Send(buf, 1 << shift, &standin_wide, 0, 0, &ompi_mpi_comm_world);
		failed += MPI_Send(reserved, 1 << shift, &standin_wide, 0, 0, &ompi_mpi_comm_world);
		failed += send_some(3);
	}
	return failed;
}

/* The pieces of a collective write, of which MPI has some in memory of its own. */
static int writes(void)
{
	int failed = 0;

	for (int i = 0; i < 10; i++)
		failed += MPI_File_write_all(NULL, buf, BYTES, &ompi_mpi_byte, NULL);
	return failed;
}

/* Both buffers of a collective that is planned once and started often. */
static int plans(void)
{
	char *send = malloc(BYTES), *recv = malloc(BYTES);
	void *request;
	int failed = MPI_Allreduce_init(send, recv, BYTES, &ompi_mpi_byte, NULL, &ompi_mpi_comm_world, NULL, &request);

	for (int i = 0; i < 5; i++)
		failed += MPI_Start(&request);
	failed += MPI_Request_free(&request);
	free(send);
	free(recv);
	return failed;
}

/* What no call of MPI was given. */
static int moves(void)
{
	char *mine = malloc(BYTES);
	int failed = 0;

	for (int i = 0; i < 7; i++)
		failed += standin_move(mine, BYTES);
	free(mine);
	return failed;
}

struct pd {
	void *context;
};

/* Registers what is sent in a domain; whether that was managed. */
static int is_managed(struct pd *pd, int stays)
{
	void *mr = ibv_reg_mr(pd, buf, BYTES, 1);
	int managed = mr && !standin_owns(mr);

	/* While a registration is out the domain is busy. */
	if (!mr || (stays && ibv_dealloc_pd(pd) != EBUSY))
		return 0;
	return !ibv_dereg_mr(mr) && managed;
}

static int domain_after_domain(int n)
{
	int failed = 0;

	for (int i = 0; i < n; i++) {
		struct pd *pd = malloc(sizeof *pd);

		pd->context = pd;
		failed += !is_managed(pd, i % 16 == 1) + (ibv_dealloc_pd(pd) != 0);
		free(pd);
	}
	return failed;
}

static int ended;

/* In a domain that stays. */
static void *beside(void *unused)
{
	static struct pd pd = {&pd};
	int failed = 0;

	(void)unused;
	while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
		failed += !is_managed(&pd, 0);
	return (void *)(intptr_t)(failed + ibv_dealloc_pd(&pd));
}

static int domains(void)
{
	pthread_t t;
	void *theirs;
	int failed = domain_after_domain(1000);

	if (pthread_create(&t, NULL, beside, NULL))
		return 1;
	failed += domain_after_domain(1000);
	__atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
	pthread_join(t, &theirs);
	return failed + (int)(intptr_t)theirs;
}

struct process {
	struct sigaction handler[32];
	struct rlimit files;
	sigset_t mask;
};

static void look(struct process *p)
{
	memset(p, 0, sizeof *p);
	for (int s = 1; s < 32; s++)
		sigaction(s, NULL, &p->handler[s]);
	getrlimit(RLIMIT_NOFILE, &p->files);
	pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
}

static int same(const struct process *a, const struct process *b)
{
	for (int s = 1; s < 32; s++)
		if (a->handler[s].sa_handler != b->handler[s].sa_handler)
			return 0;
	return a->files.rlim_cur == b->files.rlim_cur && !memcmp(&a->mask, &b->mask, sizeof a->mask);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct process before, after;
	int failed;

	buf = malloc(BYTES);
	look(&before);
	failed = MPI_Init(&argc, &argv) + send_some(20);
	look(&after);
	if (!strcmp(how, "threads"))
		failed += threads();
	if (!strcmp(how, "signals"))
		failed += signals();
	if (!strcmp(how, "fork"))
		failed += forks();
	if (!strcmp(how, "renew"))
		failed += renew();
	if (!strcmp(how, "windows"))
		failed += windows();
	if (!strcmp(how, "rereg"))
		failed += registers_again();
	if (!strcmp(how, "huge"))
		failed += huge();
	if (!strcmp(how, "file"))
		failed += writes();
	if (!strcmp(how, "plans"))
		failed += plans();
	if (!strcmp(how, "moves"))
		failed += moves();
	if (!strcmp(how, "domains"))
		failed += domains();
	if (!strcmp(how, "process"))
		failed += !same(&before, &after);
	if (!strcmp(how, "exit"))
		exit(9);
	if (!strcmp(how, "leave")) /* without MPI_Finalize */
		exit(failed);
	if (!strcmp(how, "_exit"))
		_exit(10);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	failed += MPI_Finalize();
	failed += !strcmp(how, "after") && send_some(3) != 0; /* plain */
	if (failed)
		fprintf(stderr, "%d things failed\n", failed);
	return failed ? 1 : !strcmp(how, "status") ? 42 : 0;
}
