/* Collectives of neighbours: on a ring (MPI_Cart), and on a graph in which each rank sends to the next one. */
#include "check.h"

static size_t n;

/* Both neighbours: first the one below, then the one above. A rank and a direction name a message. */
static void on_ring(uint64_t *out, uint64_t *in, int step)
{
	int size = check_size, periodic = 1, below, above, counts[2] = {(int)n, (int)n}, displs[2] = {(int)n, 0};
	MPI_Aint bytes[2] = {(MPI_Aint)(8 * n), 0};
	MPI_Datatype types[2] = {MPI_UINT64_T, MPI_UINT64_T};
	MPI_Request q;
	MPI_Comm ring;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
	MPI_Cart_shift(ring, 0, 1, &below, &above);

	check_fill(out, n, check_rank, step, 0);
	MPI_Neighbor_allgather(out, (int)n, MPI_UINT64_T, in, (int)n, MPI_UINT64_T, ring);
	check_same(in, n, below, step, 0);
	check_same(in + n, n, above, step, 0);
	MPI_Ineighbor_allgatherv(out, (int)n, MPI_UINT64_T, in, counts, displs, MPI_UINT64_T, ring, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	check_same(in + n, n, below, step, 0);
	check_same(in, n, above, step, 0);

	if (check_size > 2) { /* with two, libraries differ in which message is whose */
		check_fill(out, n, check_rank, step, 1);     /* downwards */
		check_fill(out + n, n, check_rank, step, 2); /* upwards */
		MPI_Neighbor_alltoall(out, (int)n, MPI_UINT64_T, in, (int)n, MPI_UINT64_T, ring);
		check_same(in, n, below, step, 2);
		check_same(in + n, n, above, step, 1);
		MPI_Ineighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, ring, &q);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		check_same(in + n, n, below, step, 1);
		check_same(in, n, above, step, 2);
	}
	MPI_Comm_free(&ring);
}

static void on_graph(uint64_t *out, uint64_t *in, int step)
{
	int before = (check_rank + check_size - 1) % check_size, next = (check_rank + 1) % check_size;
	int count = (int)n, displ = 5, weight = 1;
	MPI_Aint bytes = 24;
	MPI_Datatype type = MPI_UINT64_T;
	MPI_Request q;
	MPI_Comm graph;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &graph);
	check_fill(out + displ, n, check_rank, step, 3);
	MPI_Neighbor_alltoallv(out, &count, &displ, MPI_UINT64_T, in, &count, &displ, MPI_UINT64_T, graph);
	check_same(in + displ, n, before, step, 3);
	check_fill(out + 3, n, check_rank, step, 4);
	MPI_Neighbor_alltoallw(out, &count, &bytes, &type, in, &count, &bytes, &type, graph);
	check_same(in + 3, n, before, step, 4);
	check_fill(out, n, check_rank, step, 5);
	MPI_Ineighbor_alltoall(out, (int)n, MPI_UINT64_T, in, (int)n, MPI_UINT64_T, graph, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	check_same(in, n, before, step, 5);
	MPI_Comm_free(&graph);
}

int main(int argc, char **argv)
{
	int steps = (int)check_arg(argc, argv, 1, 3);

	n = (size_t)check_arg(argc, argv, 2, 128 << 10) / 8;
	check_begin(&argc, &argv);
	uint64_t *out = check_alloc(2 * n + 8), *in = check_alloc(2 * n + 8);

	for (int s = 0; s < steps; s++) {
		on_ring(out, in, s);
		on_graph(out, in, s);
	}
	return check_end("neighbours");
}
