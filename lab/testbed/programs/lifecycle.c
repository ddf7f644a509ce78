/*
 * How programs end, and what they do on the way: the first argument says which.
 * The exit status must be the same with and without the preload library.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t alarms;
static void on_alarm(int s) { alarms += s == SIGALRM; }

static void exchange(void)
{
	size_t n = 16384;
	uint64_t *out = check_alloc(n), *in = check_alloc(n);
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;

	for (int s = 0; s < 3; s++) {
		check_fill(out, n, check_rank, s, 0);
		MPI_Sendrecv(out, (int)n, MPI_UINT64_T, right, 0, in, (int)n, MPI_UINT64_T, left, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		check_same(in, n, left, s, 0);
	}
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "finalize";
	int status;

	if (!strcmp(how, "no-mpi"))
		return 7;
	check_begin(&argc, &argv);
	exchange();
	if (!strcmp(how, "exit")) /* without MPI_Finalize */
		exit(9);
	if (!strcmp(how, "abort"))
		MPI_Abort(MPI_COMM_WORLD, 11);
	if (!strcmp(how, "libc-abort"))
		abort();
	if (!strcmp(how, "segv") && check_rank == 0)
		raise(SIGSEGV);
	if (!strcmp(how, "fork")) {
		pid_t child = fork();

		if (child == 0)
			_exit(5);
		if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5)
			check_errors++;
		if (system("exit 6") != 6 << 8) /* a shell, with the library preloaded */
			check_errors++;
		exchange();
	}
	if (!strcmp(how, "signals")) { /* they reach this thread, and interrupt its sleep */
		struct sigaction a = {.sa_handler = on_alarm};
		struct timespec t = {.tv_sec = 20};

		sigaction(SIGALRM, &a, NULL);
		alarm(1);
		if (nanosleep(&t, NULL) == 0 || alarms != 1)
			check_errors++;
		exchange();
	}
	status = check_end(how);
	return status ? status : !strcmp(how, "status") ? 42 : 0;
}
