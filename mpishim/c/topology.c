/* Who takes part in a collective, where it is not simply everybody in the communicator. */
#define _GNU_SOURCE
#include "call.h"

int pw_is_inter(pw_word comm)
{
	int inter = 0;

	return pw_mpi.comm_test_inter && pw_mpi.comm_remote_size && !pw_mpi.comm_test_inter(comm, &inter) && inter;
}

void pw_neighbours(pw_word comm, int rank, int *sources, int *destinations)
{
	int kind = 0, n = 0, in = 0, out = 0, weighted;

	*sources = *destinations = 0; /* no topology: a call that needs one will fail */
	if (!pw_mpi.topo_test || pw_mpi.topo_test(comm, &kind))
		return;
	if (kind == pw_mpi.topo_cart && !pw_mpi.cartdim_get(comm, &n))
		*sources = *destinations = 2 * n;
	if (kind == pw_mpi.topo_graph && !pw_mpi.graph_neighbors_count(comm, rank, &n))
		*sources = *destinations = n;
	if (kind == pw_mpi.topo_dist_graph && !pw_mpi.dist_graph_neighbors_count(comm, &in, &out, &weighted)) {
		*sources = in;
		*destinations = out;
	}
}
