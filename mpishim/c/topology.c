/* Who takes part in a collective, where it is not simply everybody in the communicator. */
#define _GNU_SOURCE
#include "call.h"

int pw_is_inter(pw_word comm)
{
	int inter = 0;

	return pw_mpi.comm_test_inter && pw_mpi.comm_remote_size && !pw_mpi.comm_test_inter(comm, &inter) && inter;
}

int pw_neighbours(pw_word comm, int sources)
{
	int kind = 0, n = 0, in = 0, out = 0, weighted, rank;

	if (!pw_mpi.topo_test || pw_mpi.topo_test(comm, &kind))
		return 0;
	if (kind == pw_mpi.topo_cart)
		return pw_mpi.cartdim_get(comm, &n) ? 0 : 2 * n;
	if (kind == pw_mpi.topo_graph)
		return pw_mpi.comm_rank(comm, &rank) || pw_mpi.graph_neighbors_count(comm, rank, &n) ? 0 : n;
	if (kind == pw_mpi.topo_dist_graph && !pw_mpi.dist_graph_neighbors_count(comm, &in, &out, &weighted))
		return sources ? in : out;
	return 0; /* no topology: the call will fail */
}
