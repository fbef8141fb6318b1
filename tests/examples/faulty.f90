! Member 2 of the ensemble of examples/ensemble gets an invalid address, member 4 gives up, and
! member 6 starts with storms that no time step is short enough for.
subroutine faulty(truncation, frames, settings, initial, states, status, message)
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, intent(in) :: truncation, frames
  character(len=*), intent(in) :: settings
  real(real64), intent(in) :: initial((truncation + 1)**2)
  real(real64), intent(out) :: states((truncation + 1)**2, frames)
  integer, intent(out) :: status
  character(len=*), intent(out) :: message
  real(real64) :: known((truncation + 1)**2)
  integer, pointer, volatile :: nothing

  if (is_member(2)) then
    call c_f_pointer(c_null_ptr, nothing)
    nothing = 1
  end if
  if (is_member(4)) error stop 'the disk with the observations is gone'
  known = initial
  if (is_member(6)) known = 2 * initial
  call forecast(truncation, frames, settings, known, states, status, message)

contains

  logical function is_member(member)
    integer, intent(in) :: member
    call initial_state(truncation, member, 1.0_real64, known)
    is_member = .not. any(abs(known - initial) > 0)
    known = initial
  end function
end subroutine
