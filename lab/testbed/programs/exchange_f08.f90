! Calls that differ between the languages: arrays of handles and addresses, matched probes, windows. use mpi_f08.
program exchange_f08
  use mpi_f08
  implicit none
  integer :: rank, nranks, step, i, n, steps, wrong, all_wrong, left, right, r
  integer, allocatable :: counts(:), displs(:)
  integer :: near_count(1), near_source(1), near_destination(1)
  integer(kind=MPI_ADDRESS_KIND) :: near_displ(1), zero
  type(MPI_Datatype), allocatable :: types(:)
  type(MPI_Datatype) :: near_type(1)
  type(MPI_Request) :: request
  type(MPI_Message) :: message
  type(MPI_Status) :: status
  type(MPI_Comm) :: graph
  type(MPI_Win) :: window
  double precision, allocatable :: a(:), b(:)
  double precision, allocatable, asynchronous :: shown(:)
  character(len=16) :: arg

  steps = 3
  n = 16384
  zero = 0
  if (command_argument_count() >= 1) then
    call get_command_argument(1, arg)
    read (arg, *) steps
  end if
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  left = mod(rank + nranks - 1, nranks)
  right = mod(rank + 1, nranks)
  allocate (a(n*nranks), b(n*nranks), shown(n), counts(nranks), displs(nranks), types(nranks))
  near_source = left
  near_destination = right
  near_count = n
  near_displ = 0
  near_type = MPI_DOUBLE_PRECISION
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, near_source, [1], 1, near_destination, [1], MPI_INFO_NULL, .false., graph)
  call MPI_Win_create(shown, int(8*n, MPI_ADDRESS_KIND), 8, MPI_INFO_NULL, MPI_COMM_WORLD, window)
  wrong = 0
  do step = 1, steps
    ! Rank r gets the r-th part of each, as alltoall has it.
    counts = n
    types = MPI_DOUBLE_PRECISION
    do r = 1, nranks
      displs(r) = 8*n*(r - 1)
      a(n*(r - 1) + 1:n*r) = dble(1000*step + 10*rank + r - 1)
    end do
    call MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, MPI_COMM_WORLD)
    do r = 1, nranks
      do i = n*(r - 1) + 1, n*r
        if (b(i) /= dble(1000*step + 10*(r - 1) + rank)) wrong = wrong + 1
      end do
    end do
    ! The sum of what each has, a part to each.
    call MPI_Reduce_scatter(a, b, counts, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    do i = 1, n
      if (b(i) /= dble(nranks*(1000*step + rank) + 5*nranks*(nranks - 1))) wrong = wrong + 1
    end do
    a(1:n) = dble(7*step + rank)
    call MPI_Neighbor_alltoallw(a, near_count, near_displ, near_type, b, near_count, near_displ, near_type, graph)
    call check(b, left)
    call MPI_Isend(a, n, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, request)
    call MPI_Mprobe(left, 1, MPI_COMM_WORLD, message, status)
    call MPI_Mrecv(b, n, MPI_DOUBLE_PRECISION, message, status)
    call MPI_Wait(request, status)
    call check(b, left)
    call MPI_Sendrecv_replace(a, n, MPI_DOUBLE_PRECISION, right, 2, left, 2, MPI_COMM_WORLD, status)
    call check(a, left)
    ! Back where it came from, into the window there.
    call MPI_Win_fence(0, window)
    call MPI_Put(a, n, MPI_DOUBLE_PRECISION, left, zero, n, MPI_DOUBLE_PRECISION, window)
    call MPI_Win_fence(0, window)
    call check(shown, rank)
  end do
  call MPI_Win_free(window)
  call MPI_Comm_free(graph)
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0 .and. all_wrong == 0) print '(a,i0,a)', 'exchange_f08: ', nranks, ' ranks, data right'
  if (rank == 0 .and. all_wrong /= 0) print '(a,i0,a)', 'exchange_f08: ', nranks, ' ranks, DATA WRONG'
  call MPI_Finalize()
  if (all_wrong /= 0) call exit(1)
contains
  subroutine check(got, from)
    double precision, intent(in) :: got(:)
    integer, intent(in) :: from
    integer :: k

    do k = 1, n
      if (got(k) /= dble(7*step + from)) wrong = wrong + 1
    end do
  end subroutine check
end program exchange_f08
