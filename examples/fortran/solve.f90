! Solves a system of linear equations with LAPACK's dgesv, elsewhere.
!
!     solve [CONFIGURATION] [ORDER]
!
! The call has the arguments of dgesv itself, in its order.
program solve
  use, intrinsic :: iso_fortran_env, only: real64
  use grpc
  implicit none

  type(grpc_function_handle_t) :: dgesv
  integer(grpc_error_t) :: error
  character(len=256) :: configuration, text
  real(real64), allocatable :: a(:,:), factors(:,:), b(:), x(:)
  integer, allocatable :: pivots(:)
  real(real64) :: residual
  integer :: n, info

  call get_command_argument(1, configuration)
  call get_command_argument(2, text)
  n = 500
  if (text /= '') read(text, *) n

  error = grpc_initialize(configuration)
  call stop_at(error, 'grpc_initialize')
  error = grpc_function_handle_default(dgesv, 'lapack/dgesv')
  call stop_at(error, 'lapack/dgesv')

  allocate(a(n, n), b(n), pivots(n))
  call random_init(repeatable=.true., image_distinct=.false.)
  call random_number(a)
  call random_number(b)
  factors = a
  x = b
  error = grpc_call(dgesv, n, 1, factors, n, pivots, x, n, info)
  call stop_at(error, 'dgesv')
  if (info /= 0) error stop 'the matrix is singular'

  ! |b - A x| / (|A| |x| n), in the maximum norm
  residual = maxval(abs(b - matmul(a, x))) / (maxval(sum(abs(a), dim=2)) * maxval(abs(x)) * n)
  print '(a,i0,a,es8.1)', 'order ', n, ': residual ', residual

  error = grpc_function_handle_destruct(dgesv)
  error = grpc_finalize()
  if (.not. residual < 1e-15_real64) stop 1

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
