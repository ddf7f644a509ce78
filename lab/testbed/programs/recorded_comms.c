/* Communicators that ranks make in another order, or whose handles come again. */
#include "recorded.h"

/* Each rank comes to the two in another order: crossed, a barrier meets an allreduce. */
static void use_both(MPI_Comm x, MPI_Comm y)
{
	MPI_Request q[2];

	for (int i = 0; i < 2; i++)
		if (i == me)
			MPI_Ibarrier(x, &q[i]);
		else
			MPI_Iallreduce(a, b, N, MPI_DOUBLE, MPI_SUM, y, &q[i]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&x);
	MPI_Comm_free(&y);
}

static MPI_Comm by_group(MPI_Comm parent, int tag)
{
	MPI_Group g;
	MPI_Comm c;

	MPI_Comm_group(parent, &g);
	MPI_Comm_create_group(parent, g, tag, &c);
	MPI_Group_free(&g);
	return c;
}

static MPI_Comm between(int tag)
{
	MPI_Comm c;

	MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, other, tag, &c);
	return c;
}

/* Between two that need not be of one world. */
void connected(void)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Comm c;

	if (!me)
		MPI_Open_port(MPI_INFO_NULL, port);
	MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (me)
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
	else
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &c);
	MPI_Barrier(c);
	MPI_Sendrecv(a, N, MPI_DOUBLE, 0, 0, b, N, MPI_DOUBLE, 0, 0, c, MPI_STATUS_IGNORE);
	MPI_Comm_disconnect(&c);
	if (!me)
		MPI_Close_port(port);
}

void communicators(void)
{
	MPI_Comm x, y, u, v;
	MPI_Request q[2];
	MPI_Group g;
	const int two = 2, no = 0;

	for (int i = 0; i < 3; i++) { /* the handles come again */
		MPI_Comm_dup(MPI_COMM_WORLD, &x);
		MPI_Comm_dup(i ? x : MPI_COMM_WORLD, &y);
		use_both(x, y);
	}
	MPI_Comm_split(MPI_COMM_WORLD, 0, me, &x);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &y);
	use_both(x, y);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &x); /* in another order of ranks */
	MPI_Comm_group(MPI_COMM_WORLD, &g);
	MPI_Comm_create(MPI_COMM_WORLD, g, &y);
	MPI_Group_free(&g);
	use_both(x, y);
	x = by_group(MPI_COMM_WORLD, 3);
	y = by_group(MPI_COMM_WORLD, 4);
	use_both(x, y);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &no, 0, &x);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED,
				       MPI_INFO_NULL, 0, &y);
	use_both(x, y);
	u = between(5);
	v = between(6);
	MPI_Intercomm_merge(u, me, &x);
	MPI_Intercomm_merge(v, !me, &y);
	use_both(x, y);
	/* From any rank of the other group. */
	MPI_Sendrecv(a, N, MPI_DOUBLE, 0, 0, b, N, MPI_DOUBLE, MPI_ANY_SOURCE, 0, u, MPI_STATUS_IGNORE);
	MPI_Alltoall(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, u);
	MPI_Bcast(a, N, MPI_DOUBLE, me ? 0 : MPI_ROOT, u);
	use_both(u, v);
	MPI_Comm_idup(MPI_COMM_WORLD, &x, &q[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &u);
	MPI_Comm_idup(MPI_COMM_WORLD, &y, &q[1]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	use_both(x, y);
	MPI_Comm_disconnect(&u);
	MPI_Comm_split(MPI_COMM_WORLD, me, 0, &x); /* the handle again, of others */
	MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, x);
	MPI_Comm_free(&x);
}
