/* Persistent collectives, which Open MPI 4 has under other names. */
#ifndef MPIX_H
#define MPIX_H

#if MPI_VERSION < 4
#include <mpi-ext.h>
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

#endif
