! Blocks that travel around a ring, with a reduction each step, as CG has them. use mpi_f08, no ierror.
program ring_f08
  use mpi_f08
  implicit none
  integer :: rank, nranks, step, hop, i, n, steps, wrong, all_wrong, owner
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: statuses(2)
  double precision, allocatable :: mine(:), other(:), total(:)
  character(len=16) :: arg

  steps = 4
  n = 16384
  if (command_argument_count() >= 1) then
    call get_command_argument(1, arg)
    read (arg, *) steps
  end if
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  allocate (mine(n), other(n), total(n))
  wrong = 0
  do step = 1, steps
    mine = dble(1000*step + rank)
    do hop = 1, nranks
      call MPI_Irecv(other, n, MPI_DOUBLE_PRECISION, mod(rank + nranks - 1, nranks), hop, MPI_COMM_WORLD, requests(1))
      call MPI_Isend(mine, n, MPI_DOUBLE_PRECISION, mod(rank + 1, nranks), hop, MPI_COMM_WORLD, requests(2))
      call MPI_Waitall(2, requests, statuses)
      owner = mod(rank - hop + nranks*nranks, nranks)
      do i = 1, n
        if (other(i) /= dble(1000*step + owner)) wrong = wrong + 1
      end do
      mine = other
    end do
    call MPI_Allreduce(mine, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    do i = 1, n
      if (total(i) /= dble(1000*step*nranks + nranks*(nranks - 1)/2)) wrong = wrong + 1
    end do
  end do
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0 .and. all_wrong == 0) print '(a,i0,a)', 'ring_f08: ', nranks, ' ranks, data right'
  if (rank == 0 .and. all_wrong /= 0) print '(a,i0,a)', 'ring_f08: ', nranks, ' ranks, DATA WRONG'
  call MPI_Finalize()
  if (all_wrong /= 0) call exit(1)
end program ring_f08
