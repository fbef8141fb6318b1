! Solves a system of linear equations with dgesv of a server.
!
!     solve SERVER
program solve
  use, intrinsic :: iso_fortran_env, only: real64
  use grpc
  implicit none

  type(grpc_function_handle_t) :: dgesv
  integer(grpc_error_t) :: error
  character(len=256) :: server
  real(real64) :: a(3, 3), b(3)
  integer :: pivots(3), info

  ! The solution is 1, 2, 3.
  a = reshape([4, 1, 0, 1, 4, 1, 0, 1, 4], [3, 3])
  b = [6, 12, 14]
  call get_command_argument(1, server)

  error = grpc_initialize()
  call stop_at(error, 'grpc_initialize')
  error = grpc_function_handle_init(dgesv, server, 'lapack/dgesv')
  call stop_at(error, 'lapack/dgesv')
  error = grpc_call(dgesv, 3, 1, a, 3, pivots, b, 3, info)
  call stop_at(error, 'dgesv')
  print '(a,3(1x,f5.3))', 'Fortran:', b
  error = grpc_function_handle_destruct(dgesv)
  error = grpc_finalize()
  if (info /= 0 .or. sum(abs(b - [1, 2, 3])) > 1e-12_real64) stop 1

contains

  subroutine stop_at(error, what)
    integer(grpc_error_t), intent(in) :: error
    character(len=*), intent(in) :: what
    integer(grpc_error_t) :: ignored
    if (error == GRPC_NO_ERROR) return
    ignored = grpc_perror_np(what)
    ignored = grpc_finalize()
    stop 1
  end subroutine
end program
