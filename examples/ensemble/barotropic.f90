! The barotropic vorticity equation on the sphere, with mountains, Ekman drag and diffusion:
!
!     d zeta / dt = -div(V (zeta + f + f h / H)) - (zeta - jet) / drag - K laplacian^2 zeta + waves
!
! for the vorticity zeta (1/s) of a wind V without divergence. The last term stands for baroclinic
! instability, which this equation does not have: waves 4 to 8 around the earth grow, more slowly
! the stronger their wind is.
!
! The nonlinear term is computed on the grid. Rotation (f), drag and diffusion are diagonal in
! spherical harmonics: they are exact, as a factor around the Runge-Kutta method of order 4.
module barotropic
  use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
  use, intrinsic :: iso_fortran_env, only: real64
  use spherical_harmonics
  implicit none
  private
  public :: settings_t, model_t, read_settings, new_model, advanced, fastest_wind
  public :: jet_vorticity, random_vorticity, heights_of, packed, unpacked, truncation_error
  public :: as_text, not_a_number

  real(real64), parameter, public :: earth_radius = 6.371e6_real64       ! m
  real(real64), parameter, public :: earth_rotation = 7.292e-5_real64    ! 1/s
  real(real64), parameter, public :: frame_seconds = 6 * 3600            ! between two results
  real(real64), parameter, public :: wind_limit = 340                    ! m/s, the speed of sound
  real(real64), parameter :: gravity = 9.80665_real64                    ! m/s2
  real(real64), parameter :: scale_height = 10000                        ! H, m
  real(real64), parameter :: mean_height = 5500                          ! of the 500 hPa surface, m
  integer, parameter :: growing(2) = [4, 8]                              ! waves that grow
  real(real64), parameter :: mature_wind = 18                            ! their strongest, m/s
  integer, parameter :: truncation_range(2) = [5, 170]

  ! The variables of the namelist `model`.
  type :: settings_t
    real(real64) :: time_step = 3600    ! s
    real(real64) :: drag = 10           ! days that the drag takes to slow the wind by e; 0: no drag
    real(real64) :: diffusion = 24      ! the same for the smallest waves, hours; 0: no diffusion
    real(real64) :: mountains = 1       ! factor of the height of all mountains
    real(real64) :: jet = 40            ! wind that the drag slows or speeds up to, m/s
    real(real64) :: growth = 1.5        ! days in which weak waves grow by e; 0: no growth
  end type

  type :: model_t
    type(harmonics) :: h
    integer :: steps                                  ! in a frame
    real(real64) :: step                              ! s
    real(real64) :: growth                            ! 1/s
    complex(real64), allocatable :: half_step(:,:)    ! the factor of the linear terms
    complex(real64), allocatable :: forcing(:,:)      ! 1/s2
    real(real64), allocatable :: mountains(:,:)       ! f h / H on the grid, 1/s
  end type

contains

  ! Reads a file with the namelist `model`. The message is empty if all is well.
  subroutine read_settings(file, settings, message)
    character(len=*), intent(in) :: file
    type(settings_t), intent(out) :: settings
    character(len=*), intent(out) :: message
    real(real64) :: time_step, drag, diffusion, mountains, jet, growth
    namelist /model/ time_step, drag, diffusion, mountains, jet, growth
    character(len=100) :: reason
    integer :: unit, status

    message = ''
    settings = settings_t()
    time_step = settings%time_step
    drag = settings%drag
    diffusion = settings%diffusion
    mountains = settings%mountains
    jet = settings%jet
    growth = settings%growth
    open(newunit=unit, file=file, status='old', action='read', iostat=status, iomsg=reason)
    if (status /= 0) then
      message = 'settings: the file cannot be read: ' // reason
      return
    end if
    read(unit, nml=model, iostat=status, iomsg=reason)
    close(unit)
    if (is_iostat_end(status)) then
      message = 'settings: the file has no namelist &model that ends with a line /, &
        &or a value in it is not a number'
    else if (status /= 0) then
      message = 'settings: ' // trim(reason) &
        // '; the variables are the numbers time_step, drag, diffusion, &
        &mountains, jet and growth'
    end if
    if (message /= '') return

    settings = settings_t(time_step, drag, diffusion, mountains, jet, growth)
    call check('time_step', time_step, 60.0_real64, frame_seconds, 's')
    call check('drag', drag, 0.0_real64, 1000.0_real64, 'days')
    call check('diffusion', diffusion, 0.0_real64, 1000.0_real64, 'hours')
    call check('mountains', mountains, 0.0_real64, 5.0_real64, 'times their height')
    call check('jet', jet, -150.0_real64, 150.0_real64, 'm/s')
    call check('growth', growth, 0.0_real64, 1000.0_real64, 'days')

  contains

    subroutine check(name, value, low, high, unit)
      character(len=*), intent(in) :: name, unit
      real(real64), intent(in) :: value, low, high
      if ((value >= low .and. value <= high) .or. message /= '') return
      message = 'settings: `' // name // '` is ' // as_text(value) // ': it has to be from ' &
        // as_text(low) // ' to ' // as_text(high) // ' ' // unit
    end subroutine
  end subroutine

  ! A number with four digits, or more for whole numbers.
  pure function as_text(value) result(text)
    real(real64), intent(in) :: value
    character(len=:), allocatable :: text
    character(len=32) :: digits
    if (abs(value) < 1e9_real64 .and. .not. abs(value - anint(value)) > 0) then
      write(digits, '(i0)') nint(value)
    else
      write(digits, '(g0.4)') value
    end if
    text = trim(digits)
  end function

  ! What is wrong with a truncation, or nothing.
  pure function truncation_error(truncation) result(message)
    integer, intent(in) :: truncation
    character(len=80) :: message
    message = ''
    if (truncation >= truncation_range(1) .and. truncation <= truncation_range(2)) return
    write(message, '(a,i0,a,i0,a,i0)') 'the truncation is ', truncation, ': it has to be from ', &
      truncation_range(1), ' to ', truncation_range(2)
  end function

  pure function new_model(truncation, settings) result(model)
    integer, intent(in) :: truncation
    type(settings_t), intent(in) :: settings
    type(model_t) :: model
    complex(real64), allocatable :: spectrum(:,:)
    real(real64) :: damping
    integer :: n, m

    model%h = new_harmonics(truncation)
    model%steps = ceiling(frame_seconds / settings%time_step)
    model%step = frame_seconds / model%steps
    allocate(model%half_step(0:truncation, 0:truncation), source=(1.0_real64, 0.0_real64))
    do m = 0, truncation
      do n = max(m, 1), truncation
        damping = rate(settings%drag * 86400) + rate(settings%diffusion * 3600) &
          * (real(n * (n + 1), real64) / (truncation * (truncation + 1)))**2
        model%half_step(n, m) = exp(model%step / 2 &
          * cmplx(-damping, 2 * earth_rotation * m / (n * (n + 1)), real64))
      end do
    end do
    spectrum = jet_vorticity(model%h, settings%jet) * rate(settings%drag * 86400)
    call move_alloc(spectrum, model%forcing)
    model%growth = rate(settings%growth * 86400)
    spectrum = to_spectrum(model%h, mountain_vorticity(model%h, settings%mountains))
    model%mountains = to_grid(model%h, spectrum)
  end function

  ! The inverse of a time, where 0 means never.
  pure real(real64) function rate(seconds)
    real(real64), intent(in) :: seconds
    rate = 0
    if (seconds > 0) rate = 1 / seconds
  end function

  ! f h / H of mountains in the places of Tibet, the Rocky Mountains and the Andes, on the grid.
  pure function mountain_vorticity(h, factor) result(field)
    type(harmonics), intent(in) :: h
    real(real64), intent(in) :: factor
    real(real64) :: field(h%longitudes, h%latitudes)
    ! Longitude and latitude of the top, half the width eastwards and northwards, and the height.
    real(real64), parameter :: mountains(5, 3) = reshape([real(real64) :: &
      88, 34, 20, 10, 4000,   250, 42, 12, 14, 2500,   292, -20, 8, 18, 3000], [5, 3])
    real(real64) :: east, north
    integer :: k, i, j

    field = 0
    do k = 1, size(mountains, 2)
      do j = 1, h%latitudes
        north = asin(h%mu(j)) * 180 / pi - mountains(2, k)
        do i = 1, h%longitudes
          east = modulo(360.0_real64 * (i - 1) / h%longitudes - mountains(1, k) + 180, &
            360.0_real64) - 180
          field(i, j) = field(i, j) + factor * 2 * earth_rotation * h%mu(j) * mountains(5, k) &
            / scale_height * exp(-(east / mountains(3, k))**2 - (north / mountains(4, k))**2)
        end do
      end do
    end do
  end function

  ! The streamfunction of a vorticity on a sphere of radius 1.
  pure function streamfunction(zeta) result(c)
    complex(real64), intent(in) :: zeta(0:,0:)
    complex(real64) :: c(0:ubound(zeta, 1), 0:ubound(zeta, 2))
    integer :: n
    c(0, :) = 0
    do n = 1, ubound(zeta, 1)
      c(n, :) = -zeta(n, :) / (n * (n + 1))
    end do
  end function

  ! What the wind and the forcing do to the vorticity, 1/s2.
  pure function tendency(model, zeta) result(c)
    type(model_t), intent(in) :: model
    complex(real64), intent(in) :: zeta(0:,0:)
    complex(real64) :: c(0:ubound(zeta, 1), 0:ubound(zeta, 2))
    real(real64), dimension(model%h%longitudes, model%h%latitudes) :: u, v, q
    real(real64) :: growth
    integer :: m
    call winds(model%h, streamfunction(zeta), u, v)
    q = to_grid(model%h, zeta) + model%mountains
    c = model%forcing - divergence(model%h, u * q, v * q)
    growth = model%growth * (1 - (growing_wind(zeta) / mature_wind)**2)
    do m = growing(1), min(growing(2), model%h%truncation)
      c(m:, m) = c(m:, m) + growth * zeta(m:, m)
    end do
  end function

  ! The root mean square of the wind of the waves that grow, m/s.
  pure real(real64) function growing_wind(zeta) result(wind)
    complex(real64), intent(in) :: zeta(0:,0:)
    real(real64) :: squares
    integer :: n, m
    squares = 0
    do m = growing(1), min(growing(2), ubound(zeta, 1))
      do n = m, ubound(zeta, 1)
        squares = squares + 2 * abs(zeta(n, m))**2 / (n * (n + 1))
      end do
    end do
    wind = earth_radius * sqrt(squares)
  end function

  ! The vorticity one frame later.
  pure function advanced(model, before) result(zeta)
    type(model_t), intent(in) :: model
    complex(real64), intent(in) :: before(0:,0:)
    complex(real64), dimension(0:ubound(before, 1), 0:ubound(before, 2)) :: zeta, k1, k2, k3, k4
    integer :: step

    zeta = before
    associate (e => model%half_step, dt => model%step)
      do step = 1, model%steps
        k1 = tendency(model, zeta)
        k2 = tendency(model, e * (zeta + dt / 2 * k1))
        k3 = tendency(model, e * zeta + dt / 2 * k2)
        k4 = tendency(model, e**2 * zeta + dt * e * k3)
        zeta = e**2 * (zeta + dt / 6 * k1) + dt / 3 * e * (k2 + k3) + dt / 6 * k4
      end do
    end associate
  end function

  ! The fastest wind on the grid, m/s; not a number if any wind is none.
  pure real(real64) function fastest_wind(h, zeta) result(fastest)
    type(harmonics), intent(in) :: h
    complex(real64), intent(in) :: zeta(0:,0:)
    real(real64), dimension(h%longitudes, h%latitudes) :: u, v
    integer :: j
    call winds(h, streamfunction(zeta), u, v)
    do j = 1, h%latitudes
      u(:, j) = (u(:, j)**2 + v(:, j)**2) / (1 - h%mu(j)**2)
    end do
    fastest = earth_radius * sqrt(maxval(u))
    if (any(.not. u <= huge(u))) fastest = not_a_number()
  end function

  pure real(real64) function not_a_number()
    not_a_number = ieee_value(not_a_number, ieee_quiet_nan)
  end function

  ! The vorticity of west winds around 45 degrees, north and south, of this speed.
  pure function jet_vorticity(h, speed) result(zeta)
    type(harmonics), intent(in) :: h
    real(real64), intent(in) :: speed
    complex(real64) :: zeta(0:h%truncation, 0:h%truncation)
    real(real64), dimension(h%longitudes, h%latitudes) :: u, v
    real(real64) :: latitude
    integer :: j
    do j = 1, h%latitudes
      latitude = asin(h%mu(j)) * 180 / pi
      u(:, j) = speed / earth_radius * cos(asin(h%mu(j))) &
        * exp(-((abs(latitude) - 45) / 10)**2)
    end do
    v = 0
    zeta = divergence(h, v, -u)
  end function

  ! Random waves whose wind has this root mean square (m/s). A seed gives the same waves everywhere.
  pure function random_vorticity(truncation, seed, speed) result(zeta)
    integer, intent(in) :: truncation, seed
    real(real64), intent(in) :: speed
    complex(real64) :: zeta(0:truncation, 0:truncation)
    integer, parameter :: first = 4, last = 12, wide = selected_int_kind(18)
    integer(wide) :: state
    real(real64) :: energy, radius, angle
    integer :: n, m

    zeta = 0
    energy = 0
    state = modulo(int(seed, wide) * 7919 + 104729, 2147483646_wide) + 1
    do n = first, min(last, truncation)
      do m = 1, n
        call draw(state, radius)
        call draw(state, angle)
        ! Of the normal distribution, by the method of Box and Muller.
        zeta(n, m) = sqrt(-2 * log(radius)) * exp(cmplx(0, 2 * pi * angle, real64)) * n
        energy = energy + 2 * abs(zeta(n, m))**2 / (n * (n + 1))
      end do
    end do
    zeta = zeta * speed / (earth_radius * sqrt(energy))

  contains

    ! A number between 0 and 1: the generator of Lehmer with the factor 48271.
    pure subroutine draw(state, number)
      integer(wide), intent(inout) :: state
      real(real64), intent(out) :: number
      state = modulo(48271 * state, 2147483647_wide)
      number = real(state, real64) / 2147483647.0_real64
    end subroutine
  end function

  ! Heights (m) of the pressure surface in linear balance with a vorticity: laplacian(g z) =
  ! div(f grad(streamfunction)).
  pure function heights_of(h, zeta) result(z)
    type(harmonics), intent(in) :: h
    complex(real64), intent(in) :: zeta(0:,0:)
    real(real64), dimension(h%longitudes, h%latitudes) :: z, u, v
    complex(real64) :: c(0:h%truncation, 0:h%truncation)
    integer :: j
    call winds(h, streamfunction(zeta), u, v)
    z = to_grid(h, zeta)
    do j = 1, h%latitudes
      z(:, j) = 2 * earth_rotation * (h%mu(j) * z(:, j) - u(:, j))
    end do
    c = streamfunction(to_spectrum(h, z))
    z = mean_height + to_grid(h, c) * earth_radius**2 / gravity
  end function

  ! A spectrum as real numbers: those of m = 0, then real and imaginary parts of m = 1, and so on.
  pure function packed(c) result(state)
    complex(real64), intent(in) :: c(0:,0:)
    real(real64) :: state((ubound(c, 1) + 1)**2)
    integer :: n, m, at
    state(:ubound(c, 1) + 1) = real(c(:, 0))
    at = ubound(c, 1) + 2
    do m = 1, ubound(c, 1)
      do n = m, ubound(c, 1)
        state(at:at+1) = [real(c(n, m)), aimag(c(n, m))]
        at = at + 2
      end do
    end do
  end function

  pure function unpacked(truncation, state) result(c)
    integer, intent(in) :: truncation
    real(real64), intent(in) :: state(:)
    complex(real64) :: c(0:truncation, 0:truncation)
    integer :: n, m, at
    c = 0
    c(:, 0) = state(:truncation + 1)
    at = truncation + 2
    do m = 1, truncation
      do n = m, truncation
        c(n, m) = cmplx(state(at), state(at+1), real64)
        at = at + 2
      end do
    end do
  end function
end module
