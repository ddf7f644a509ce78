/*
 * Recording: statuses. A status tells from whom a receive from any source got its message,
 * and whether an operation was cancelled. If the program ignores a status that matters,
 * MPI gets one of ours.
 */
#include <stdlib.h>

#include "record_status.h"

static int *ours; /* as many as were ever needed at one time */
static int64_t most;

int pw_status_is_ignored(const struct pw_call *c)
{
	pw_word at = c->arg[c->spec->status];

	if (c->language == PW_C)
		return at == pw_mpi.status_ignore;
	for (unsigned i = 0; i < PW_IGNORES; i++)
		if (pw_mpi.fortran_ignore[i] && at == *pw_mpi.fortran_ignore[i])
			return 1;
	return 0;
}

int pw_status_provide(struct pw_call *c, int64_t n)
{
	if (n > most) {
		int *larger = realloc(ours, (size_t)n * pw_mpi.status_ints * sizeof *ours);

		if (!larger)
			return 0;
		ours = larger;
		most = n;
	}
	c->arg[c->spec->status] = (pw_word)ours;
	return 1;
}

const int *pw_status_at(const struct pw_call *c, int64_t i)
{
	return (const int *)c->arg[c->spec->status] + i * pw_mpi.status_ints;
}

int pw_status_source(const int *status) { return status[pw_mpi.status_source]; }

int pw_status_tag(const int *status) { return status[pw_mpi.status_source + 1]; }

int pw_status_is_cancelled(const int *status)
{
	int flag = 0;

	return pw_mpi.test_cancelled && !pw_mpi.test_cancelled(status, &flag) && flag;
}
