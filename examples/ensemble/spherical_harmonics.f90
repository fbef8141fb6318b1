! Spherical harmonics with triangular truncation, and transforms to and from a Gaussian grid.
!
! A field is f(longitude, latitude); its spectrum is the array c(n, m), n = m ... truncation, of
!
!     f = sum over m from -truncation to truncation of c(n, |m|) P(n, |m|) exp(i m longitude)
!
! with complex conjugates for negative m. The Legendre functions P are normalized so that the mean
! square over the sphere of P exp(i m longitude) is 1. Longitudes run from 0 eastwards, latitudes
! from south to north. The grid is fine enough that products of two fields have no aliases.
module spherical_harmonics
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: harmonics, new_harmonics, latitudes_for, longitudes_for, fourier
  public :: to_grid, to_spectrum, winds, divergence

  real(real64), parameter, public :: pi = acos(-1.0_real64)

  type :: harmonics
    integer :: truncation, longitudes, latitudes
    ! The sines of the latitudes, and the weights of Gauss, whose sum is 2.
    real(real64), allocatable :: mu(:), weight(:)
    ! P(n, m, latitude), and (1 - mu**2) dP/dmu, its slope.
    real(real64), allocatable :: p(:,:,:), slope(:,:,:)
    ! exp(2 pi i k / longitudes), k = 0 ...
    complex(real64), allocatable :: root(:)
  end type

contains

  ! The grid of a truncation: a power of 2 that holds 3 truncation + 1 longitudes.
  pure integer function longitudes_for(truncation) result(longitudes)
    integer, intent(in) :: truncation
    longitudes = 4
    do while (longitudes < 3 * truncation + 1)
      longitudes = 2 * longitudes
    end do
  end function

  pure integer function latitudes_for(truncation)
    integer, intent(in) :: truncation
    latitudes_for = longitudes_for(truncation) / 2
  end function

  pure function new_harmonics(truncation) result(h)
    integer, intent(in) :: truncation
    type(harmonics) :: h
    integer :: j, k

    h%truncation = truncation
    h%longitudes = longitudes_for(truncation)
    h%latitudes = latitudes_for(truncation)
    allocate(h%mu(h%latitudes), h%weight(h%latitudes), h%root(0:h%longitudes-1))
    allocate(h%p(0:truncation, 0:truncation, h%latitudes), source=0.0_real64)
    allocate(h%slope, mold=h%p)
    call gauss(h%mu, h%weight)
    do j = 1, h%latitudes
      call legendre(h%mu(j), h%p(:, :, j), h%slope(:, :, j))
    end do
    do k = 0, h%longitudes - 1
      h%root(k) = exp(cmplx(0, 2 * pi * k / h%longitudes, real64))
    end do
  end function

  ! Points and weights of Gauss's quadrature over (-1, 1): the zeros of a Legendre polynomial, by
  ! Newton's method.
  pure subroutine gauss(mu, weight)
    real(real64), intent(out) :: mu(:), weight(:)
    real(real64) :: x, p(0:size(mu)), derivative
    integer :: order, j, n, iteration

    order = size(mu)
    do j = 1, order
      x = -cos(pi * (j - 0.25_real64) / (order + 0.5_real64))
      do iteration = 1, 8
        p(0) = 1
        p(1) = x
        do n = 2, order
          p(n) = ((2 * n - 1) * x * p(n-1) - (n - 1) * p(n-2)) / n
        end do
        derivative = order * (p(order-1) - x * p(order)) / (1 - x**2)
        x = x - p(order) / derivative
      end do
      mu(j) = x
      weight(j) = 2 / ((1 - x**2) * derivative**2)
    end do
  end subroutine

  ! Legendre functions and their slopes at one latitude, by recursion over n.
  pure subroutine legendre(mu, p, slope)
    real(real64), intent(in) :: mu
    real(real64), intent(out) :: p(0:,0:), slope(0:,0:)
    real(real64) :: column(-1:size(p, 1)), sectoral
    integer :: truncation, m, n

    truncation = ubound(p, 1)
    p = 0
    slope = 0
    sectoral = 1
    do m = 0, truncation
      if (m > 0) sectoral = sectoral * sqrt((2 * m + 1) * (1 - mu**2) / (2 * m))
      column = 0
      column(m) = sectoral
      do n = m, truncation
        column(n+1) = (mu * column(n) - coupling(n, m) * column(n-1)) / coupling(n + 1, m)
        p(n, m) = column(n)
        slope(n, m) = (n + 1) * coupling(n, m) * column(n-1) - n * coupling(n + 1, m) * column(n+1)
      end do
    end do

  contains

    pure real(real64) function coupling(n, m)
      integer, intent(in) :: n, m
      coupling = sqrt(real(n**2 - m**2, real64) / (4 * n**2 - 1))
    end function
  end subroutine

  ! The sums over k of x(k) root(j k)**sign, j = 0 ...: a fast Fourier transform of a length that is
  ! a power of 2, without a factor.
  pure subroutine fourier(x, root, sign)
    complex(real64), intent(inout) :: x(0:)
    complex(real64), intent(in) :: root(0:)
    integer, intent(in) :: sign
    complex(real64) :: factor, odd
    integer :: length, half, first, k, j, bit

    length = size(x)
    j = 0
    do k = 1, length - 1
      bit = length / 2
      do while (j >= bit)
        j = j - bit
        bit = bit / 2
      end do
      j = j + bit
      if (k < j) then
        odd = x(k)
        x(k) = x(j)
        x(j) = odd
      end if
    end do

    half = 1
    do while (half < length)
      do k = 0, half - 1
        factor = root(k * (length / (2 * half)))
        if (sign < 0) factor = conjg(factor)
        do first = k, length - 1, 2 * half
          odd = factor * x(first + half)
          x(first + half) = x(first) - odd
          x(first) = x(first) + odd
        end do
      end do
      half = 2 * half
    end do
  end subroutine

  ! The field of a spectrum.
  pure function to_grid(h, c) result(field)
    type(harmonics), intent(in) :: h
    complex(real64), intent(in) :: c(0:,0:)
    real(real64) :: field(h%longitudes, h%latitudes)
    field = summed(h, c, h%p)
  end function

  ! The spectrum of a field.
  pure function to_spectrum(h, field) result(c)
    type(harmonics), intent(in) :: h
    real(real64), intent(in) :: field(:,:)
    complex(real64) :: c(0:h%truncation, 0:h%truncation)
    complex(real64) :: waves(0:h%truncation, h%latitudes)
    integer :: m, j

    waves = along_latitudes(h, field)
    c = 0
    do j = 1, h%latitudes
      do m = 0, h%truncation
        c(m:, m) = c(m:, m) + h%weight(j) / 2 * waves(m, j) * h%p(m:, m, j)
      end do
    end do
  end function

  ! The field of a spectrum, from the Legendre functions or their slopes. Two latitudes share a
  ! Fourier transform: one is the real part and the other the imaginary part.
  pure function summed(h, c, functions) result(field)
    type(harmonics), intent(in) :: h
    complex(real64), intent(in) :: c(0:,0:)
    real(real64), intent(in) :: functions(0:,0:,:)
    real(real64) :: field(h%longitudes, h%latitudes)
    complex(real64) :: row(0:h%longitudes-1), one, other
    complex(real64), parameter :: i = (0, 1)
    integer :: m, j

    do j = 1, h%latitudes, 2
      row = 0
      do m = 0, h%truncation
        one = sum(c(m:, m) * functions(m:, m, j))
        other = sum(c(m:, m) * functions(m:, m, j+1))
        row(m) = one + i * other
        if (m > 0) row(h%longitudes - m) = conjg(one) + i * conjg(other)
      end do
      call fourier(row, h%root, 1)
      field(:, j) = real(row)
      field(:, j+1) = aimag(row)
    end do
  end function

  ! The Fourier coefficients of each latitude.
  pure function along_latitudes(h, field) result(waves)
    type(harmonics), intent(in) :: h
    real(real64), intent(in) :: field(:,:)
    complex(real64) :: waves(0:h%truncation, h%latitudes)
    complex(real64) :: row(0:h%longitudes-1), mirror
    complex(real64), parameter :: i = (0, 1)
    integer :: m, j

    do j = 1, h%latitudes, 2
      row = cmplx(field(:, j), field(:, j+1), real64) / h%longitudes
      call fourier(row, h%root, -1)
      do m = 0, h%truncation
        mirror = conjg(row(modulo(-m, h%longitudes)))
        waves(m, j) = (row(m) + mirror) / 2
        waves(m, j+1) = (row(m) - mirror) / (2 * i)
      end do
    end do
  end function

  ! The wind of a streamfunction on a sphere of radius 1, eastwards and northwards, each times the
  ! cosine of the latitude.
  pure subroutine winds(h, streamfunction, u, v)
    type(harmonics), intent(in) :: h
    complex(real64), intent(in) :: streamfunction(0:,0:)
    real(real64), intent(out) :: u(:,:), v(:,:)
    complex(real64) :: eastward(0:h%truncation, 0:h%truncation)
    integer :: m

    u = -summed(h, streamfunction, h%slope)
    do m = 0, h%truncation
      eastward(:, m) = cmplx(0, m, real64) * streamfunction(:, m)
    end do
    v = summed(h, eastward, h%p)
  end subroutine

  ! The spectrum of the divergence of a flux on a sphere of radius 1. Both components are given
  ! times the cosine of the latitude. The derivative northwards is that of the Legendre functions,
  ! by integration by parts.
  pure function divergence(h, east, north) result(c)
    type(harmonics), intent(in) :: h
    real(real64), intent(in) :: east(:,:), north(:,:)
    complex(real64) :: c(0:h%truncation, 0:h%truncation)
    complex(real64), dimension(0:h%truncation, h%latitudes) :: a, b
    real(real64) :: factor
    integer :: m, j

    a = along_latitudes(h, east)
    b = along_latitudes(h, north)
    c = 0
    do j = 1, h%latitudes
      factor = h%weight(j) / (2 * (1 - h%mu(j)**2))
      do m = 0, h%truncation
        c(m:, m) = c(m:, m) + factor * (cmplx(0, m, real64) * a(m, j) * h%p(m:, m, j) &
          - b(m, j) * h%slope(m:, m, j))
      end do
    end do
  end function
end module
