! What one language starts the other ends: a handle of Fortran and its C one are the same request. The data is verified.
program languages
  use mpi_f08
  implicit none
  interface
    subroutine start_in_c(a, b, n, other, handles) bind(c)
      use iso_c_binding
      integer(c_int), value :: n, other
      double precision, asynchronous :: a(*), b(*)
      integer(c_int) :: handles(2)
    end subroutine
    subroutine end_in_c(handles, n) bind(c)
      use iso_c_binding
      integer(c_int), value :: n
      integer(c_int) :: handles(*)
    end subroutine
    subroutine start_and_end_in_c(handle) bind(c)
      use iso_c_binding
      integer(c_int) :: handle
    end subroutine
    subroutine free_in_c(handle) bind(c)
      use iso_c_binding
      integer(c_int) :: handle
    end subroutine
    subroutine receive_in_c(b, n, handle) bind(c)
      use iso_c_binding
      integer(c_int), value :: n
      double precision :: b(*)
      integer(c_int) :: handle
    end subroutine
  end interface
  integer, parameter :: n = 8192
  integer :: me, other, wrong
  integer :: handles(2)
  double precision, asynchronous :: a(n), b(n)
  type(MPI_Request) :: r(2)
  type(MPI_Message) :: message

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  other = 1 - me
  wrong = 0
  a = me + 1

  ! Started here, ended there, and the other way round.
  call MPI_Irecv(b, n, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, r(1))
  call MPI_Isend(a, n, MPI_DOUBLE_PRECISION, other, 1, MPI_COMM_WORLD, r(2))
  handles = r%MPI_VAL
  call end_in_c(handles, 2)
  call check()
  call start_in_c(a, b, n, other, handles)
  r%MPI_VAL = handles
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  call check()

  ! Cancelled here, so known to be when it is ended there.
  call MPI_Irecv(b, n, MPI_DOUBLE_PRECISION, other, 2, MPI_COMM_WORLD, r(1))
  call MPI_Cancel(r(1))
  handles = r%MPI_VAL
  call end_in_c(handles, 1)

  ! A message found here and received there, of a request that is made here, started there, and freed there.
  call MPI_Send_init(a, n, MPI_DOUBLE_PRECISION, other, 3, MPI_COMM_WORLD, r(1))
  call MPI_Irecv(b, n, MPI_DOUBLE_PRECISION, other, 3, MPI_COMM_WORLD, r(2))
  call start_and_end_in_c(r(1)%MPI_VAL)
  call MPI_Wait(r(2), MPI_STATUS_IGNORE)
  call check()
  call free_in_c(r(1)%MPI_VAL)
  call MPI_Isend(a, n, MPI_DOUBLE_PRECISION, other, 4, MPI_COMM_WORLD, r(1))
  call MPI_Mprobe(other, 4, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE)
  call receive_in_c(b, n, message%MPI_VAL)
  call check()
  call MPI_Wait(r(1), MPI_STATUS_IGNORE)

  if (wrong > 0) print *, 'rank', me, 'data wrong:', wrong
  call MPI_Finalize()
  if (wrong > 0) stop 1
  if (me == 0) print '(a)', 'done'
contains
  subroutine check()
    if (any(b /= other + 1)) wrong = wrong + 1
    b = 0
  end subroutine
end program
