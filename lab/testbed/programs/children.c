/*
 * Children between exchanges of the same buffers: fork(2), whose child has the registered memory and writes into it
 * while its parent sends and receives, system(3) and posix_spawn(3). The parent's data must stay right, and the child's
 * copy as it was.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;

/* The child's part: what it was born with, its own writes, and an end without exit handlers. */
static void child(uint64_t *out, size_t n, int step, int go)
{
	char c;

	check_errors = 0;
	check_same(out, n, check_rank, step, 0);
	check_fill(out, n, check_rank, step, 5);
	if (read(go, &c, 1) != 1)
		_exit(3);
	check_same(out, n, check_rank, step, 5);
	_exit(check_errors ? 2 : 7);
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 4);
	size_t n = (size_t)check_arg(argc, argv, 2, 1 << 20) / 8;

	check_begin(&argc, &argv);
	uint64_t *out = check_alloc(n), *in = check_alloc(n);

	for (int s = 0; s < steps; s++) {
		char *args[] = {"true", NULL};
		int go[2], status = 0;
		pid_t pid;

		check_exchange(out, in, n, s, 0);
		if (pipe(go) || (pid = fork()) < 0)
			MPI_Abort(MPI_COMM_WORLD, 3);
		if (pid == 0)
			child(out, n, s, go[0]);
		check_exchange(out, in, n, s, 1);
		check_exchange(in, out, n, s, 2);
		if (write(go[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
			fprintf(stderr, "rank %d step %d: the child ended with %#x\n", check_rank, s, status);
			check_errors++;
		}
		close(go[0]);
		close(go[1]);
		if (system("exit 5") != 5 << 8)
			check_errors++;
		check_exchange(out, in, n, s, 3);
		if (posix_spawnp(&pid, "true", NULL, NULL, args, environ) || waitpid(pid, &status, 0) != pid || status)
			check_errors++;
		check_exchange(out, in, n, s, 4);
	}
	return check_end("children");
}
