/* What programs call of the stand-ins of an MPI library (mpi.c) and of libibverbs (verbs.c). */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>
#include <stdint.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Send(const void *buf, int count, void *type, int to, int tag, void *comm);
int MPI_Test(void **request, int *flag, void *status);
int MPI_Iprobe(int source, int tag, void *comm, int *flag, void *status);
int MPI_Win_create(void *base, intptr_t bytes, int unit, void *info, void *comm, void **win);
int MPI_Win_fence(int assertion, void *win);
int MPI_Win_free(void **win);
int MPI_File_write_all(void *file, const void *buf, int count, void *type, void *status);
int MPI_Allreduce_init(const void *send, void *recv, int count, void *type, void *op, void *comm, void *info,
		       void **request);
int MPI_Start(void **request);
int MPI_Request_free(void **request);
int MPI_Finalize(void);
extern char ompi_mpi_comm_world, ompi_mpi_byte, standin_wide;
extern size_t standin_copies;
extern int (*standin_finalizing)(void);
int standin_move(const void *buf, int count);

void *ibv_reg_mr(void *pd, void *addr, size_t bytes, int access);
int ibv_dereg_mr(void *mr);
int ibv_dealloc_pd(void *pd);
int ibv_rereg_mr(void *mr, int flags, void *pd, void *addr, size_t bytes, int access);
int standin_owns(const void *mr);
extern int standin_leaves_pages, standin_peer_memory;
extern long standin_attempts;

#endif
