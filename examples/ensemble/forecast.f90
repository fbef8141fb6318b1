! The subroutines that ensemble.idl offers. They know nothing of GridRPC.

! The vorticity that a member of the ensemble starts with: that of member 0 is the analysis, the
! others add random waves whose wind has the root mean square `perturbation` (m/s).
subroutine initial_state(truncation, member, perturbation, state)
  use, intrinsic :: iso_fortran_env, only: real64
  use barotropic
  use spherical_harmonics
  implicit none
  integer, intent(in) :: truncation, member
  real(real64), intent(in) :: perturbation
  real(real64), intent(out) :: state((truncation + 1)**2)
  complex(real64) :: zeta(0:truncation, 0:truncation)

  state = not_a_number()
  if (truncation_error(truncation) /= '') return
  zeta = jet_vorticity(new_harmonics(truncation), 40.0_real64) &
    + random_vorticity(truncation, 0, 8.0_real64)
  if (member > 0) zeta = zeta + random_vorticity(truncation, member, perturbation)
  state = packed(zeta)
end subroutine

! The states after 6, 12, 18 hours and so on. `status` is 0 if all is well. It is 1 if the model
! diverged: the states from then on are not numbers. It is 2 if an argument is wrong.
subroutine forecast(truncation, frames, settings, initial, states, status, message)
  use, intrinsic :: iso_fortran_env, only: real64
  use barotropic
  implicit none
  integer, intent(in) :: truncation, frames
  character(len=*), intent(in) :: settings
  real(real64), intent(in) :: initial((truncation + 1)**2)
  real(real64), intent(out) :: states((truncation + 1)**2, frames)
  integer, intent(out) :: status
  character(len=*), intent(out) :: message
  type(settings_t) :: chosen
  type(model_t) :: model
  complex(real64), allocatable :: zeta(:,:)
  real(real64) :: wind
  integer :: frame

  states = not_a_number()
  status = 2
  message = truncation_error(truncation)
  if (message == '') call read_settings(settings, chosen, message)
  if (message /= '') return
  model = new_model(truncation, chosen)
  zeta = unpacked(truncation, initial)
  wind = fastest_wind(model%h, zeta)
  if (.not. wind < wind_limit) then
    message = 'initial: the fastest wind is ' // as_text(anint(wind)) // ' m/s: it has to be below ' &
      // as_text(wind_limit) // ' m/s'
    return
  end if

  status = 1
  do frame = 1, frames
    zeta = advanced(model, zeta)
    wind = fastest_wind(model%h, zeta)
    if (.not. wind < wind_limit) then
      message = 'the model diverged before hour ' // as_text(frame * frame_seconds / 3600) &
        // ': the fastest wind is ' // as_text(anint(wind)) // ' m/s; its time step is ' &
        // as_text(model%step) // ' s: try a shorter one'
      return
    end if
    states(:, frame) = packed(zeta)
  end do
  status = 0
end subroutine

! Heights (m) of the 500 hPa surface on the grid of the truncation, 64 longitudes by 32 latitudes for
! 20. Longitudes begin at 0 and have equal distances.
subroutine heights(truncation, frames, states, longitudes, latitudes, z, latitude)
  use, intrinsic :: iso_fortran_env, only: real64
  use barotropic
  use spherical_harmonics
  implicit none
  integer, intent(in) :: truncation, frames, longitudes, latitudes
  real(real64), intent(in) :: states((truncation + 1)**2, frames)
  real(real64), intent(out) :: z(longitudes, latitudes, frames), latitude(latitudes)
  type(harmonics) :: h
  integer :: frame

  z = not_a_number()
  latitude = not_a_number()
  if (truncation_error(truncation) /= '') return
  h = new_harmonics(truncation)
  if (longitudes /= h%longitudes .or. latitudes /= h%latitudes) return
  latitude = asin(h%mu) * 180 / pi
  do frame = 1, frames
    z(:, :, frame) = heights_of(h, unpacked(truncation, states(:, frame)))
  end do
end subroutine
