! Calls a Fortran subroutine that runs elsewhere: see series.f90 and series.idl.
!
!     describe [CONFIGURATION]
program describe
  use, intrinsic :: iso_fortran_env, only: real64
  use grpc
  implicit none

  type(grpc_function_handle_t) :: handle
  integer(grpc_error_t) :: error
  character(len=256) :: configuration
  real(real64) :: values(5) = [3.5_real64, -1.0_real64, 8.25_real64, 0.0_real64, 4.25_real64]
  real(real64) :: extremes(2), mean
  character(len=80) :: line
  character(len=12) :: labels(5)
  integer :: i

  call get_command_argument(1, configuration)
  error = grpc_initialize(configuration)
  call stop_at(error, 'grpc_initialize')
  error = grpc_function_handle_default(handle, 'series/describe')
  call stop_at(error, 'series/describe')

  error = grpc_call(handle, size(values), values, 'a short series', extremes, mean, line, labels)
  call stop_at(error, 'describe')
  print '(a)', trim(line)
  print '(a,f0.2,a,f0.2)', 'from ', extremes(1), ' to ', extremes(2)
  print '(*(a,:,", "))', (trim(labels(i)), i = 1, size(labels))

  error = grpc_function_handle_destruct(handle)
  error = grpc_finalize()

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
