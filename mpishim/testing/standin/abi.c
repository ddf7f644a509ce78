/*
 * A stand-in for an MPI library by its ABI, and a program for it, as STANDIN_ABI says. Each says that it is MPICH, and
 * each has MPI_Abi_get_version, as MPICH 4.3 and later have in both of their libraries. Like MPICH, it ends the program
 * when it is asked about a handle that is none.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if STANDIN_ABI /* the standard ABI of MPI-5: handles are pointers */
typedef struct handle *handle;
enum { WORLD = 0x101, SELF = 0x102, NO_COMM = 0x100, BYTE = 0x247, DOUBLE = 0x214, INTEGER = 0x219, OTHERS = 0x280 };
enum { ANY_SOURCE = -1, PROC_NULL = -3 };
#else /* MPICH's own: handles are numbers */
typedef int handle;
enum {
	WORLD = 0x44000000, SELF = 0x44000001, NO_COMM = 0x04000000, BYTE = 0x4c00010d, DOUBLE = 0x4c00080b,
	INTEGER = 0x4c00041b, OTHERS = 0x280
};
enum { ANY_SOURCE = -2, PROC_NULL = -1 };
#endif
#define H(x) ((handle)(intptr_t)(x))

#ifdef STANDIN_LIBRARY

void *ibv_reg_mr_iova2(void *pd, void *addr, size_t bytes, uint64_t iova, unsigned access);
int ibv_dereg_mr(void *mr);
int ibv_dealloc_pd(void *pd);

static struct {
	void *context;
} pd = {&pd};

static void check(int good, const char *what, handle h)
{
	if (good)
		return;
	fprintf(stderr, "%s: invalid handle %#lx\n", what, (unsigned long)(intptr_t)h);
	abort();
}

static int bytes_of(handle type)
{
	if (type == H(BYTE) || type == H(INTEGER) || type == H(DOUBLE))
		return type == H(BYTE) ? 1 : type == H(INTEGER) ? 4 : 8;
	return type > H(0x200) && type < H(OTHERS) ? 2 : 0;
}

int PMPI_Type_size(handle type, int *bytes)
{
	check(bytes_of(type), "Type_size", type);
	return *bytes = bytes_of(type), 0;
}
int PMPI_Type_get_extent(handle type, intptr_t *low, intptr_t *extent)
{
	check(bytes_of(type), "Type_get_extent", type);
	return *low = 0, *extent = bytes_of(type), 0;
}
static void check_comm(const char *what, handle comm) { check(comm == H(WORLD) || comm == H(SELF), what, comm); }
int PMPI_Comm_size(handle comm, int *n) { return check_comm("Comm_size", comm), *n = 1, 0; }
int PMPI_Comm_rank(handle comm, int *rank) { return check_comm("Comm_rank", comm), *rank = 0, 0; }
int PMPI_Comm_group(handle comm, handle *group) { return check_comm("Comm_group", comm), *group = comm, 0; }
int PMPI_Comm_get_parent(handle *comm) { return *comm = H(NO_COMM), 0; }
int PMPI_Group_rank(handle group, int *rank) { return (void)group, *rank = 0, 0; }
int PMPI_Group_size(handle group, int *n) { return (void)group, *n = 1, 0; }
int PMPI_Group_free(handle *group) { return *group = 0, 0; }
int PMPI_Group_translate_ranks(handle g, int n, const int *a, handle h, int *b)
{
	(void)g, (void)h;
	memcpy(b, a, (size_t)n * sizeof *a);
	return 0;
}
int PMPI_Get_library_version(char *text, int *n) { return *n = sprintf(text, "MPICH Version:      5.0.0"), 0; }
int PMPI_Abi_get_version(int *major, int *minor) { return *major = 1, *minor = 0, 0; }

int MPI_Init(int *argc, char ***argv) { return (void)argc, (void)argv, 0; }
int MPI_Send(const void *buf, int count, handle type, int to, int tag, handle comm)
{
	void *mr;

	(void)tag;
	check_comm("Send", comm);
	if (to == PROC_NULL)
		return 0;
	mr = ibv_reg_mr_iova2(&pd, (void *)buf, (size_t)count * (size_t)bytes_of(type), (uintptr_t)buf, 4);
	return !mr || ibv_dereg_mr(mr);
}
/* Into the buffer comes nothing, from rank 0 with tag 5. */
int MPI_Recv(void *buf, int count, handle type, int from, int tag, handle comm, int *status)
{
	const int at = STANDIN_ABI ? 0 : 2;

	(void)tag;
	if (status != (int *)(intptr_t)(STANDIN_ABI ? 0 : 1))
		status[at] = 0, status[at + 1] = 5;
	return from == ANY_SOURCE ? MPI_Send(buf, count, type, 0, 0, comm) : 1;
}
int MPI_Finalize(void) { return ibv_dealloc_pd(&pd); }

#else

int MPI_Init(int *argc, char ***argv);
int MPI_Send(const void *buf, int count, handle type, int to, int tag, handle comm);
int MPI_Recv(void *buf, int count, handle type, int from, int tag, handle comm, int *status);
int MPI_Finalize(void);

/* Each buffer of 64 KiB: ten of bytes, then ten of doubles, ten of INTEGER, and one to nobody. */
int main(int argc, char **argv)
{
	char *buf = malloc(64 << 10);
	int failed = MPI_Init(&argc, &argv);

	for (int i = 0; i < 10; i++) {
		failed += MPI_Send(buf, 64 << 10, H(BYTE), 0, 0, H(WORLD));
		failed += MPI_Send(buf, 8 << 10, H(DOUBLE), 0, 0, H(SELF));
		failed += MPI_Recv(buf, 16 << 10, H(INTEGER), ANY_SOURCE, 5, H(WORLD), (int *)(intptr_t)(STANDIN_ABI ? 0 : 1));
	}
	failed += MPI_Send(buf, 64 << 10, H(BYTE), PROC_NULL, 0, H(WORLD));
	return failed || MPI_Finalize();
}

#endif
