! Pipelined sweeps over a line of ranks, as LU does: blocking, up and down. mpif.h.
program wavefront
  implicit none
  include 'mpif.h'
  integer :: ierr, rank, nranks, step, i, steps, n, wrong, all_wrong
  integer :: status(MPI_STATUS_SIZE)
  double precision, allocatable :: edge(:)
  character(len=16) :: arg

  steps = 8
  n = 16384
  if (command_argument_count() >= 1) then
    call get_command_argument(1, arg)
    read (arg, *) steps
  end if
  if (command_argument_count() >= 2) then
    call get_command_argument(2, arg)
    read (arg, *) n
  end if
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, nranks, ierr)
  allocate (edge(n))
  wrong = 0
  do step = 1, steps
    ! Up: each rank adds one to what comes from below.
    if (rank == 0) then
      edge = dble(step)
    else
      call mpi_recv(edge, n, MPI_DOUBLE_PRECISION, rank - 1, step, MPI_COMM_WORLD, status, ierr)
    end if
    do i = 1, n
      if (edge(i) /= dble(step + rank)) wrong = wrong + 1
    end do
    edge = edge + 1d0
    if (rank < nranks - 1) call mpi_send(edge, n, MPI_DOUBLE_PRECISION, rank + 1, step, MPI_COMM_WORLD, ierr)
    ! Down: each rank doubles what comes from above.
    if (rank == nranks - 1) then
      edge = dble(step)
    else
      call mpi_recv(edge, n, MPI_DOUBLE_PRECISION, rank + 1, step, MPI_COMM_WORLD, status, ierr)
    end if
    do i = 1, n
      if (edge(i) /= dble(step) * 2d0**(nranks - 1 - rank)) wrong = wrong + 1
    end do
    edge = edge * 2d0
    if (rank > 0) call mpi_send(edge, n, MPI_DOUBLE_PRECISION, rank - 1, step, MPI_COMM_WORLD, ierr)
  end do
  call mpi_allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. all_wrong == 0) print '(a,i0,a)', 'wavefront: ', nranks, ' ranks, data right'
  if (rank == 0 .and. all_wrong /= 0) print '(a,i0,a)', 'wavefront: ', nranks, ' ranks, DATA WRONG'
  call mpi_finalize(ierr)
  if (all_wrong /= 0) call exit(1)
end program wavefront
