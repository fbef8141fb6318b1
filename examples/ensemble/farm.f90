! The ensemble as a task farm in Fortran.
!
!     farm_fortran [CONFIGURATION] [MEMBERS] [DAYS]
!
! Each handle forecasts one member at a time and gets the next one as soon as that has ended. A
! member that fails is reported; the mean and the spread are those of the others.
program farm
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  use grpc
  implicit none

  integer, parameter :: truncation = 20, state_size = (truncation + 1)**2
  type(grpc_function_handle_t) :: perturb, handles(4)
  ! What is under way with each handle. Results are written while the program does other things,
  ! which `asynchronous` tells the compiler.
  integer(grpc_sessionid_t) :: sessions(size(handles))
  integer :: member_of(size(handles))
  integer, asynchronous :: status(size(handles))
  character(len=160), asynchronous :: messages(size(handles))
  real(real64), allocatable :: initial(:,:)
  real(real64), allocatable, asynchronous :: states(:,:,:)
  logical, allocatable :: complete(:)

  character(len=256) :: configuration
  integer(grpc_sessionid_t) :: session
  integer(grpc_error_t) :: error
  integer :: members, days, next, member, i

  call get_command_argument(1, configuration)
  members = argument(2, 20)
  days = argument(3, 10)
  if (members < 1 .or. days < 1) then
    write(error_unit, '(a)') 'members and days have to be 1 or more'
    stop 1
  end if
  allocate(initial(state_size, members), states(state_size, 4 * days, members))
  allocate(complete(members), source=.false.)

  error = grpc_initialize(configuration)
  call stop_at(error, 'grpc_initialize')
  error = grpc_function_handle_default(perturb, 'ensemble/initial_state')
  call stop_at(error, 'ensemble/initial_state')
  error = grpc_function_handle_array_default_np(handles, 'ensemble/forecast')
  call stop_at(error, 'ensemble/forecast')
  do member = 1, members
    error = grpc_call(perturb, truncation, member - 1, 1, initial(:, member))
    call stop_at(error, 'ensemble/initial_state')
  end do

  next = 1
  do i = 1, size(handles)
    call begin(i)
  end do
  do
    error = grpc_wait_any(session)
    if (session == GRPC_SESSIONID_VOID) exit   ! none is left
    i = findloc(sessions, session, dim=1)
    if (error /= GRPC_NO_ERROR) then
      write(error_unit, '(a,i0,2a)') 'member ', member_of(i) - 1, ': ', grpc_error_detail_np(session)
    else if (status(i) /= 0) then
      write(error_unit, '(a,i0,2a)') 'member ', member_of(i) - 1, ': ', trim(messages(i))
    else
      complete(member_of(i)) = .true.
    end if
    call begin(i)
  end do

  print '(i0,a,i0,a,i0,a,es9.3,a)', count(complete), ' of ', members, ' members, day ', days, &
    ': the spread of the vorticity is ', deviation(states(:, 4 * days, :)), ' /s'
  error = grpc_function_handle_array_destruct_np(handles)
  error = grpc_function_handle_destruct(perturb)
  error = grpc_finalize()
  if (.not. all(complete)) stop 1

contains

  ! Gives a handle the next member, if there is one.
  subroutine begin(i)
    integer, intent(in) :: i
    sessions(i) = GRPC_SESSIONID_VOID
    if (next > members) return
    member_of(i) = next
    next = next + 1
    error = grpc_call_async(handles(i), sessions(i), truncation, 4 * days, 'settings.nml', &
      initial(:, member_of(i)), states(:, :, member_of(i)), status(i), messages(i))
    call stop_at(error, 'ensemble/forecast')
  end subroutine

  ! The standard deviation of the vorticity over members and the sphere. A state begins with the
  ! coefficients that are real; all others count twice, for the waves in both directions.
  function deviation(last)
    real(real64), intent(in) :: last(:,:)
    real(real64) :: deviation, mean(state_size), squares(state_size)
    integer :: member
    mean = 0
    squares = 0
    do member = 1, members
      if (complete(member)) mean = mean + last(:, member) / count(complete)
    end do
    do member = 1, members
      if (complete(member)) squares = squares + (last(:, member) - mean)**2 / count(complete)
    end do
    deviation = sqrt(2 * sum(squares) - sum(squares(:truncation + 1)))
  end function

  function argument(number, default) result(value)
    integer, intent(in) :: number, default
    integer :: value, failed
    character(len=32) :: text
    call get_command_argument(number, text)
    value = default
    if (text == '') return
    read(text, *, iostat=failed) value
    if (failed /= 0) value = 0
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
