/* Recording: communicators. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "record.h"

#define COMMS 512
static struct {
	pw_word comm;
	int32_t id;
	int n, *world; /* world ranks; stays here */
} comms[COMMS];
static unsigned comm_count;
static int32_t next_comm;

static int *members_of(pw_word comm, int n)
{
	pw_word group = 0, world = 0;
	int *ranks = malloc((size_t)n * sizeof *ranks), *others = malloc((size_t)n * sizeof *others), ok = 0;

	if (ranks && others && !pw_mpi.comm_group(comm, &group) && !pw_mpi_world_group(&world)) {
		for (int i = 0; i < n; i++)
			ranks[i] = i;
		ok = !pw_mpi.group_translate(group, n, ranks, world, others);
		for (int i = 0; i < n; i++)
			ok = ok && others[i] >= 0 && others[i] < pw.size;
		pw_mpi.group_free(&group);
		pw_mpi.group_free(&world);
	}
	free(ranks);
	if (ok)
		return others;
	free(others);
	return NULL;
}

int pw_comm_at(pw_word comm)
{
	int n = 0, *world, *copy;
	struct pw_record *r;

	for (unsigned i = 0; i < comm_count; i++)
		if (comms[i].comm == comm)
			return (int)i;
	/* The trace has no intercommunicators. */
	if (comm_count == COMMS || pw_is_inter(comm) || pw_mpi.comm_size(comm, &n) || n <= 0 || !(world = members_of(comm, n)))
		return -1;
	copy = malloc((size_t)n * sizeof *copy);
	if (!copy || !(r = pw_record_next())) {
		free(copy);
		free(world);
		return -1;
	}
	memcpy(copy, world, (size_t)n * sizeof *copy);
	memset(r, 0, sizeof *r);
	r->op = PW_COMM;
	r->comm = next_comm;
	r->addr = (uint64_t)copy;
	r->bytes = (uint64_t)n;
	pw_record_push();
	comms[comm_count].comm = comm;
	comms[comm_count].id = next_comm++;
	comms[comm_count].n = n;
	comms[comm_count].world = world;
	return (int)comm_count++;
}

void pw_comm_forget(pw_word comm)
{
	for (unsigned i = 1; i < comm_count; i++) /* the first is MPI_COMM_WORLD */
		if (comms[i].comm == comm) {
			free(comms[i].world);
			comms[i] = comms[--comm_count];
			return;
		}
}

int32_t pw_comm_id(int place) { return place >= 0 ? comms[place].id : 0; }

int pw_comm_members(int place) { return place >= 0 ? comms[place].n : 0; }

int32_t pw_world_rank(int place, int64_t peer)
{
	if (place >= 0 && peer >= 0 && peer < comms[place].n)
		return comms[place].world[peer];
	/* MPI_ANY_SOURCE is -1 in Open MPI and -2 in MPICH; MPI_PROC_NULL is the other. */
	return peer == (pw_mpi.handle_bytes == 4 ? -2 : -1) ? -1 : -2;
}
