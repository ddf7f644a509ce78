/*
 * A stand-in for an MPI library with an RDMA transport, in one process: it
 * registers what it is given to send and deregisters it again, as libfabric does
 * without its cache, and moves nothing. It serves to measure and to test the
 * preload library where there is neither MPI nor a device. Handles are pointers, as Open
 * MPI's; the library knows it by ompi_mpi_comm_world.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access);
int ibv_dereg_mr(void *mr);
int ibv_dealloc_pd(void *pd);
int standin_is_live(void *mr);

char ompi_mpi_comm_world, ompi_mpi_byte;
char standin_wide; /* a datatype of 1 MiB, whose elements lie 1 TiB apart */
int (*standin_finalizing)(void); /* called at the beginning of MPI_Finalize */
size_t standin_copies; /* messages of fewer bytes are not registered */
static struct {
	void *context;
} pd = {&pd};
static void *pool;
static char pool_memory[1 << 20];

void *PMPI_Type_f2c(int type) { return type ? NULL : &ompi_mpi_byte; }
int PMPI_Type_size(void *type, int *bytes)
{
	*bytes = type == &standin_wide ? 1 << 20 : type == &ompi_mpi_byte;
	return 0;
}
int PMPI_Type_get_extent(void *type, intptr_t *low, intptr_t *extent)
{
	return *low = 0, *extent = type == &standin_wide ? (intptr_t)1 << 40 : type == &ompi_mpi_byte, 0;
}
int PMPI_Comm_size(void *comm, int *n) { return (void)comm, *n = 1, 0; }
int PMPI_Comm_rank(void *comm, int *rank) { return (void)comm, *rank = 0, 0; }
int PMPI_Comm_group(void *comm, void **group) { return *group = comm, 0; }
int PMPI_Group_rank(void *group, int *rank) { return (void)group, *rank = 0, 0; }
int PMPI_Group_size(void *group, int *n) { return (void)group, *n = 1, 0; }
int PMPI_Group_free(void **group) { return *group = NULL, 0; }
int PMPI_Group_translate_ranks(void *g, int n, const int *a, void *h, int *b)
{
	(void)g, (void)h;
	memcpy(b, a, (size_t)n * sizeof *a);
	return 0;
}
int PMPI_Get_library_version(char *text, int *n) { return strcpy(text, "stand-in"), *n = 8, 0; }

int MPI_Init(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	pool = ibv_reg_mr_iova2(&pd, pool_memory, sizeof pool_memory, (uintptr_t)pool_memory, 7);
	return pool == NULL;
}

int MPI_Send(const void *buf, int count, void *type, int to, int tag, void *comm)
{
	size_t bytes = type == &standin_wide ? (size_t)count << 40 : (size_t)count;
	void *mr;

	(void)to, (void)tag, (void)comm;
	if (bytes < standin_copies)
		return 0;
	mr = ibv_reg_mr_iova2(&pd, (void *)buf, bytes, (uintptr_t)buf, 4);
	if (!mr && type == &standin_wide)
		return 0; /* it copies what it can't register */
	return !mr || ibv_dereg_mr(mr);
}

int MPI_Test(void **request, int *flag, void *status)
{
	return (void)request, (void)status, *flag = 0, 0;
}

/* Calls MPI_Send as the program does, as some MPI libraries do in collectives. */
int MPI_Barrier(void *comm)
{
	return MPI_Send(pool_memory, 1, &ompi_mpi_byte, 0, 0, comm);
}

int MPI_Iprobe(int source, int tag, void *comm, int *flag, void *status)
{
	return (void)source, (void)tag, (void)comm, (void)status, *flag = 0, 0;
}

int MPI_Win_create(void *base, intptr_t bytes, int unit, void *info, void *comm, void **win)
{
	(void)unit, (void)info, (void)comm;
	*win = ibv_reg_mr_iova2(&pd, base, (size_t)bytes, (uintptr_t)base, 0xf);
	return *win == NULL;
}

int MPI_Win_fence(int assertion, void *win) { return (void)assertion, !standin_is_live(win); }
int MPI_Win_free(void **win) { return ibv_dereg_mr(*win); }

/* As ROMIO: each half of the buffer, and a larger one of its own, go to other processes by PMPI_Send. */
int PMPI_Send(const void *buf, int count, void *type, int to, int tag, void *comm) __attribute__((alias("MPI_Send")));
int MPI_File_write_all(void *file, const void *buf, int count, void *type, void *status)
{
	static char collected[256 << 10];

	(void)file, (void)status;
	return PMPI_Send(buf, count / 2, type, 0, 0, &ompi_mpi_comm_world) ||
	       PMPI_Send((const char *)buf + count / 2, count / 2, type, 0, 0, &ompi_mpi_comm_world) ||
	       PMPI_Send(collected, sizeof collected, type, 0, 0, &ompi_mpi_comm_world);
}

/* One persistent collective, whose buffers are registered at each start. */
static struct {
	const void *send;
	void *recv;
	int count;
} planned;
int MPI_Allreduce_init(const void *send, void *recv, int count, void *type, void *op, void *comm, void *info,
		       void **request)
{
	(void)type, (void)op, (void)comm, (void)info;
	planned.send = send, planned.recv = recv, planned.count = count;
	return *request = &planned, 0;
}
int MPI_Start(void **request)
{
	(void)request;
	return MPI_Send(planned.send, planned.count, &ompi_mpi_byte, 0, 0, NULL) ||
	       MPI_Send(planned.recv, planned.count, &ompi_mpi_byte, 0, 0, NULL);
}
int MPI_Request_free(void **request) { return *request = NULL, 0; }

/* Moves data for no call of MPI. */
int standin_move(const void *buf, int count)
{
	void *mr = ibv_reg_mr_iova2(&pd, (void *)buf, (size_t)count, (uintptr_t)buf, 4);

	return !mr || ibv_dereg_mr(mr);
}

int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));
int PMPI_Barrier(void *comm) __attribute__((alias("MPI_Barrier")));
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));
int MPI_Finalize(void)
{
	return (standin_finalizing && standin_finalizing()) || ibv_dereg_mr(pool) || ibv_dealloc_pd(&pd);
}
