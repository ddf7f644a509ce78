/* MPI-4 sessions without MPI_Init: one, and another one beside it that outlives it. */
#include "check.h"

#define WORDS 4096

static uint64_t a[WORDS], b[WORDS];

static MPI_Comm begin(MPI_Session *session, const char *name)
{
	MPI_Group group;
	MPI_Comm comm;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
	MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
	MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
	MPI_Group_free(&group);
	MPI_Comm_rank(comm, &check_rank);
	MPI_Comm_size(comm, &check_size);
	return comm;
}

static void exchange(MPI_Comm comm, int step)
{
	int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;

	check_fill(a, WORDS, check_rank, step, 0);
	MPI_Sendrecv(a, WORDS, MPI_UINT64_T, right, 0, b, WORDS, MPI_UINT64_T, left, 0, comm, MPI_STATUS_IGNORE);
	check_same(b, WORDS, left, step, 0);
}

int main(void)
{
	MPI_Session first, second;
	MPI_Comm one = begin(&first, "one"), two;
	long all = 0;

	exchange(one, 0);
	two = begin(&second, "two");
	exchange(one, 1);
	exchange(two, 2);
	MPI_Comm_free(&one);
	MPI_Session_finalize(&first);
	exchange(two, 3);
	MPI_Allreduce(&check_errors, &all, 1, MPI_LONG, MPI_SUM, two);
	if (check_rank == 0)
		printf("sessions: %d ranks, %s\n", check_size, all ? "DATA WRONG" : "data right");
	MPI_Comm_free(&two);
	MPI_Session_finalize(&second);
	return all != 0;
}
