/*
 * Arguments that mean nothing where they stand (MPI-3.1, chapter 5): those of the send side
 * with MPI_IN_PLACE, those of the root elsewhere, all but the root's in its group of an
 * intercommunicator. They are NULL, null handles, or no handles at all. The data is verified.
 */
#include "check.h"

/* Arguments that must not be looked at. */
#define NO_TYPE ((MPI_Datatype)0x5a5a5a58)
#define NO_COUNT 0x5a5a5a5a
#define NO_ARRAY ((void *)0x5a5a5a58)
#define NO_BUFFER ((void *)0x5a5a5a58)

static int me, n, root, count, counts[64], places[64], bytes[64];
static MPI_Datatype types[64], word = MPI_UINT64_T;
static uint64_t *a, *b;

/* All parts of b, each as another rank has it for this one. */
static void put_all(int step)
{
	for (int r = 0; r < n; r++)
		check_fill(b + (size_t)(r * count), (size_t)count, me, step, r);
}

static void exchanged(int step)
{
	for (int r = 0; r < n; r++)
		check_same(b + (size_t)(r * count), (size_t)count, r, step, me);
}

static void ended(MPI_Request *q) { MPI_Wait(q, MPI_STATUS_IGNORE); }

/* In place in an alltoall the send side means nothing anywhere. */
static void alltoalls(MPI_Comm comm)
{
	MPI_Request q;
	int step = 10;

	put_all(++step);
	MPI_Alltoall(MPI_IN_PLACE, NO_COUNT, NO_TYPE, b, count, word, comm);
	exchanged(step);
	put_all(++step);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, b, counts, places, word, comm);
	exchanged(step);
	put_all(++step);
	MPI_Alltoallv(MPI_IN_PLACE, NO_ARRAY, NO_ARRAY, NO_TYPE, b, counts, places, word, comm);
	exchanged(step);
	put_all(++step);
	MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, b, counts, bytes, types, comm);
	exchanged(step);
	put_all(++step);
	MPI_Alltoallw(MPI_IN_PLACE, NO_ARRAY, NO_ARRAY, NO_ARRAY, b, counts, bytes, types, comm);
	exchanged(step);
	put_all(++step);
	MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, b, counts, places, word, comm, &q);
	ended(&q);
	exchanged(step);
	put_all(++step);
	MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, b, counts, bytes, types, comm, &q);
	ended(&q);
	exchanged(step);
}

/* b has this rank's part only; then all. */
static void put_mine(int step) { check_fill(b + (size_t)(me * count), (size_t)count, me, step, 0); }

static void gathered(int step)
{
	for (int r = 0; r < n; r++)
		check_same(b + (size_t)(r * count), (size_t)count, r, step, 0);
}

static void gathers(MPI_Comm comm)
{
	int is_root = me == root, step = 30;
	void *send = is_root ? MPI_IN_PLACE : a, *recv = is_root ? b : NULL;

	put_mine(++step);
	MPI_Allgather(MPI_IN_PLACE, NO_COUNT, NO_TYPE, b, count, word, comm);
	gathered(step);
	put_mine(++step);
	MPI_Allgatherv(MPI_IN_PLACE, NO_COUNT, NO_TYPE, b, counts, places, word, comm);
	gathered(step);
	for (int i = 0; i < 2; i++) {
		put_mine(++step);
		memcpy(a, b + (size_t)(me * count), (size_t)count * sizeof *a);
		if (i == 0)
			MPI_Gather(send, is_root ? NO_COUNT : count, is_root ? NO_TYPE : word, recv, is_root ? count : NO_COUNT,
				   is_root ? word : NO_TYPE, root, comm);
		else
			MPI_Gatherv(send, is_root ? NO_COUNT : count, is_root ? NO_TYPE : word, recv, is_root ? counts : NO_ARRAY,
				    is_root ? places : NO_ARRAY, is_root ? word : NO_TYPE, root, comm);
		if (is_root)
			gathered(step);
	}
}

static void scatters(MPI_Comm comm)
{
	int is_root = me == root, step = 40;

	for (int i = 0; i < 2; i++) {
		++step;
		for (int r = 0; r < n && is_root; r++)
			check_fill(b + (size_t)(r * count), (size_t)count, root, step, r);
		if (i == 0)
			MPI_Scatter(is_root ? b : NO_BUFFER, is_root ? count : NO_COUNT, is_root ? word : NO_TYPE,
				    is_root ? MPI_IN_PLACE : a, is_root ? NO_COUNT : count, is_root ? NO_TYPE : word, root, comm);
		else
			MPI_Scatterv(is_root ? b : NULL, is_root ? counts : NULL, is_root ? places : NULL,
				     is_root ? word : MPI_DATATYPE_NULL, is_root ? MPI_IN_PLACE : a, is_root ? NO_COUNT : count,
				     is_root ? NO_TYPE : word, root, comm);
		check_same(is_root ? b + (size_t)(me * count) : a, (size_t)count, root, step, me);
	}
}

/* Every rank gives its number plus the index; in place it lies where the result will. */
static void numbers(uint64_t *to)
{
	for (int i = 0; i < n * count; i++)
		to[i] = (uint64_t)(me + i);
}

static void summed(const uint64_t *at, int from, int words, int ranks)
{
	for (int i = 0; i < words; i++)
		check_errors += at[i] != (uint64_t)(ranks * (from + i) + ranks * (ranks - 1) / 2);
}

static void reductions(MPI_Comm comm)
{
	int all = n * count;

	numbers(b);
	MPI_Allreduce(MPI_IN_PLACE, b, all, word, MPI_SUM, comm);
	summed(b, 0, all, n);
	numbers(b);
	/* With another root MPICH 4.0 crashes. */
	MPI_Reduce(me == 0 ? MPI_IN_PLACE : b, me == 0 ? b : NULL, all, word, MPI_SUM, 0, comm);
	if (me == 0)
		summed(b, 0, all, n);
	numbers(b);
	MPI_Scan(MPI_IN_PLACE, b, all, word, MPI_SUM, comm);
	summed(b, 0, all, me + 1);
	numbers(b);
	MPI_Reduce_scatter(MPI_IN_PLACE, b, counts, word, MPI_SUM, comm);
	summed(b, me * count, count, n);
	numbers(b);
	MPI_Reduce_scatter_block(MPI_IN_PLACE, b, count, word, MPI_SUM, comm);
	summed(b, me * count, count, n);
}

/* Two groups: rank 0 of the first one is the root; the others of it give and get nothing. */
static void between_groups(void)
{
	int first = me == 0, mine = 0, theirs;
	MPI_Comm group, inter;
	int step = 60;

	MPI_Comm_split(MPI_COMM_WORLD, me < 2, me, &group);
	MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, me < 2 ? 2 : 0, 7, &inter);
	MPI_Comm_rank(group, &mine);
	MPI_Comm_remote_size(inter, &theirs);
	int in_root = me < 2, peer = first ? MPI_ROOT : in_root ? MPI_PROC_NULL : 0;

	check_fill(a, (size_t)count, me, ++step, 0);
	MPI_Bcast(in_root && !first ? NO_BUFFER : a, in_root && !first ? 0 : count, word, peer, inter);
	if (!in_root)
		check_same(a, (size_t)count, 0, step, 0);

	check_fill(a, (size_t)count, me, ++step, 0);
	MPI_Gather(in_root ? NO_BUFFER : a, in_root ? NO_COUNT : count, in_root ? NO_TYPE : word, first ? b : NO_BUFFER,
		   first ? count : NO_COUNT, first ? word : NO_TYPE, peer, inter);
	for (int r = 0; r < theirs && first; r++)
		check_same(b + (size_t)(r * count), (size_t)count, 2 + r, step, 0);

	++step;
	for (int r = 0; r < theirs && first; r++)
		check_fill(b + (size_t)(r * count), (size_t)count, 0, step, r);
	MPI_Scatterv(first ? b : NO_BUFFER, first ? counts : NO_ARRAY, first ? places : NO_ARRAY, first ? word : NO_TYPE,
		     in_root ? NO_BUFFER : a, in_root ? NO_COUNT : count, in_root ? NO_TYPE : word, peer, inter);
	if (!in_root)
		check_same(a, (size_t)count, 0, step, mine);

	/* Parts of the other group's size. */
	++step;
	for (int r = 0; r < theirs; r++)
		check_fill(a + (size_t)(r * count), (size_t)count, me, step, r);
	MPI_Alltoallv(a, counts, places, word, b, counts, places, word, inter);
	for (int r = 0; r < theirs; r++)
		check_same(b + (size_t)(r * count), (size_t)count, in_root ? 2 + r : r, step, mine);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&group);
}

/* A topology in which nobody has a neighbour: arrays of no elements. */
static void nobody_near(void)
{
	MPI_Comm alone;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL,
				       0, &alone);
	MPI_Neighbor_allgather(NULL, 0, word, NULL, 0, word, alone);
	MPI_Neighbor_alltoallv(NULL, NULL, NULL, word, NULL, NULL, NULL, word, alone);
	MPI_Comm_free(&alone);
}

int main(int argc, char **argv)
{
	MPI_Comm comm;

	check_begin(&argc, &argv);
	me = check_rank;
	n = check_size;
	root = n - 1;
	count = (int)check_arg(argc, argv, 1, 32 << 10) / 8;
	a = check_alloc((size_t)(n * count));
	b = check_alloc((size_t)(n * count));
	for (int i = 0; i < 64; i++) {
		counts[i] = count;
		places[i] = i * count;
		bytes[i] = i * count * 8;
		types[i] = word;
	}
	for (int i = 0; i < 2; i++) {
		comm = MPI_COMM_WORLD;
		if (i)
			MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		alltoalls(comm);
		gathers(comm);
		scatters(comm);
		reductions(comm);
	}
	MPI_Comm_free(&comm);
	if (n > 2)
		between_groups();
	nobody_near();
	return check_end("inplace");
}
