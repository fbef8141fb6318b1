! A task farm in Fortran: pi by random points, on an array of handles.
!
!     pi_farm [CONFIGURATION] [TASKS] [POINTS PER TASK]
!
! Each handle works at one task at a time and gets the next one as soon as that has ended. A task
! that fails is given once more to the same handle.
program pi_farm
  use, intrinsic :: iso_c_binding, only: c_long
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use grpc
  implicit none

  integer, parameter :: most_attempts = 2
  type(grpc_function_handle_t) :: handles(4)
  ! What is under way with each handle. The counts are written while the program does other things,
  ! which `asynchronous` tells the compiler.
  integer(grpc_sessionid_t) :: sessions(size(handles))
  integer :: task_of(size(handles)), attempts(size(handles))
  integer(c_long), asynchronous :: counts(size(handles))

  character(len=256) :: configuration
  integer(grpc_sessionid_t) :: session
  integer(grpc_error_t) :: error
  integer(int64) :: points, inside
  integer :: tasks, begun, failed, i

  call get_command_argument(1, configuration)
  tasks = int(argument(2, 100_int64))
  points = argument(3, 1000000_int64)

  error = grpc_initialize(configuration)
  call stop_at(error, 'grpc_initialize')
  error = grpc_function_handle_array_default_np(handles, 'pi/pi_trial')
  call stop_at(error, 'pi/pi_trial')

  begun = 0
  failed = 0
  inside = 0
  sessions = GRPC_SESSIONID_VOID
  do i = 1, size(handles)
    call next_task(i)
  end do
  do
    error = grpc_wait_any(session)
    if (session == GRPC_SESSIONID_VOID) exit   ! none is left
    i = findloc(sessions, session, dim=1)
    if (error == GRPC_NO_ERROR) then
      inside = inside + counts(i)
    else
      write(error_unit, '(a,i0,2a)') 'task ', task_of(i), ': ', grpc_error_detail_np(session)
      if (attempts(i) < most_attempts) then
        call begin(i)
        cycle
      end if
      failed = failed + 1
    end if
    call next_task(i)
  end do

  if (tasks > failed) print '(a,f8.6,a,i0,a,i0,a)', 'pi is about ', &
    4 * real(inside, real64) / (real(points, real64) * (tasks - failed)), &
    ', by ', tasks - failed, ' tasks of ', points, ' points'
  error = grpc_function_handle_array_destruct_np(handles)
  error = grpc_finalize()
  if (failed > 0) stop 1

contains

  ! Gives a handle the next task, if there is one.
  subroutine next_task(i)
    integer, intent(in) :: i
    sessions(i) = GRPC_SESSIONID_VOID
    if (begun >= tasks) return
    task_of(i) = begun
    attempts(i) = 0
    begun = begun + 1
    call begin(i)
  end subroutine

  subroutine begin(i)
    integer, intent(in) :: i
    attempts(i) = attempts(i) + 1
    error = grpc_call_async(handles(i), sessions(i), task_of(i), points, counts(i))
    call stop_at(error, 'grpc_call_async')
  end subroutine

  function argument(number, default) result(value)
    integer, intent(in) :: number
    integer(int64), intent(in) :: default
    integer(int64) :: value
    character(len=32) :: text
    call get_command_argument(number, text)
    value = default
    if (text /= '') read(text, *) value
  end function

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
