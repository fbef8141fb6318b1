! A simulation that stays where it runs: a remote object. The program looks at it now and then.
!
!     heat [CONFIGURATION]
program heat
  use, intrinsic :: iso_fortran_env, only: real64
  use grpc
  implicit none

  integer, parameter :: nx = 40, ny = 30
  type(grpc_object_handle_t_np) :: plate
  integer(grpc_error_t) :: error
  character(len=256) :: configuration
  real(real64) :: temperatures(nx, ny), change
  integer :: steps

  call get_command_argument(1, configuration)
  error = grpc_initialize(configuration)
  call stop_at(error, 'grpc_initialize')
  error = grpc_object_handle_default_np(plate, 'heat/Plate')
  call stop_at(error, 'heat/Plate')

  error = grpc_invoke_np(plate, 'start', nx, ny, 100)
  call stop_at(error, 'start')
  steps = 0
  do
    error = grpc_invoke_np(plate, 'advance', 500, change)
    call stop_at(error, 'advance')
    steps = steps + 500
    print '(a,i0,a,es9.2)', 'after ', steps, ' steps: change ', change
    if (change < 1e-3_real64) exit
  end do
  error = grpc_invoke_np(plate, 'temperatures', nx, ny, temperatures)
  call stop_at(error, 'temperatures')
  print '(a,f0.2)', 'in the middle: ', temperatures(nx / 2, ny / 2)

  error = grpc_object_handle_destruct_np(plate)
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
