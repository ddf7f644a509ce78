! Fortran's MPI_IN_PLACE and MPI_BOTTOM are variables of the MPI library: what they stand for is known
! by their addresses. In place the send side means nothing. The data is verified.
program places
  use mpi
  implicit none
  integer, parameter :: n = 4096
  integer :: ierr, me, ranks, t, wrong, i
  integer :: counts(64), displs(64), lengths(1)
  integer(MPI_ADDRESS_KIND) :: at(1)
  double precision :: a(n), all(64 * n)

  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  wrong = 0
  counts = n
  displs = (/ ((i - 1) * n, i = 1, 64) /)

  a = me + 1
  call mpi_allreduce(MPI_IN_PLACE, a, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (any(a /= ranks * (ranks + 1) / 2)) wrong = wrong + 1

  all = me
  call mpi_alltoallv(MPI_IN_PLACE, (/ -1 /), (/ -1 /), MPI_DATATYPE_NULL, all, counts, displs, MPI_DOUBLE_PRECISION, &
                     MPI_COMM_WORLD, ierr)
  do i = 1, ranks
    if (any(all((i - 1) * n + 1 : i * n) /= i - 1)) wrong = wrong + 1
  end do

  call mpi_get_address(a, at(1), ierr)
  lengths = n
  call mpi_type_create_hindexed(1, lengths, at, MPI_DOUBLE_PRECISION, t, ierr)
  call mpi_type_commit(t, ierr)
  a = me
  call mpi_bcast(MPI_BOTTOM, 1, t, 1, MPI_COMM_WORLD, ierr)
  if (any(a /= 1)) wrong = wrong + 1
  call mpi_type_free(t, ierr)

  if (wrong > 0) print *, 'rank', me, 'data wrong:', wrong
  if (me == 0) print *, 'places: done'
  call mpi_finalize(ierr)
  if (wrong > 0) stop 1
end program
