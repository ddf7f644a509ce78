! Transposition of a distributed matrix, as FT does: alltoall, there and back. use mpi.
program transpose_
  use mpi
  implicit none
  integer :: ierr, rank, nranks, step, steps, block, i, from, wrong, all_wrong
  complex(kind=kind(1d0)), allocatable :: a(:), b(:)
  character(len=16) :: arg

  steps = 6
  block = 8192
  if (command_argument_count() >= 1) then
    call get_command_argument(1, arg)
    read (arg, *) steps
  end if
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, nranks, ierr)
  allocate (a(block*nranks), b(block*nranks))
  wrong = 0
  do step = 1, steps
    do i = 1, block*nranks
      a(i) = dcmplx(rank + 100*step, i)
    end do
    call mpi_alltoall(a, block, MPI_DOUBLE_COMPLEX, b, block, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD, ierr)
    do i = 1, block*nranks
      from = (i - 1)/block
      if (b(i) /= dcmplx(from + 100*step, rank*block + mod(i - 1, block) + 1)) wrong = wrong + 1
    end do
    a = 0
    call mpi_alltoall(b, block, MPI_DOUBLE_COMPLEX, a, block, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD, ierr)
    do i = 1, block*nranks
      if (a(i) /= dcmplx(rank + 100*step, i)) wrong = wrong + 1
    end do
    call mpi_alltoall(MPI_IN_PLACE, block, MPI_DOUBLE_COMPLEX, a, block, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD, ierr)
    do i = 1, block*nranks
      from = (i - 1)/block
      if (a(i) /= dcmplx(from + 100*step, rank*block + mod(i - 1, block) + 1)) wrong = wrong + 1
    end do
  end do
  call mpi_allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. all_wrong == 0) print '(a,i0,a)', 'transpose: ', nranks, ' ranks, data right'
  if (rank == 0 .and. all_wrong /= 0) print '(a,i0,a)', 'transpose: ', nranks, ' ranks, DATA WRONG'
  call mpi_finalize(ierr)
  if (all_wrong /= 0) call exit(1)
end program transpose_
