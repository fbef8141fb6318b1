! Compares the transforms of examples/ensemble with what they have to give, and prints the largest
! errors. Fields have values of about 1.
program check_harmonics
  use, intrinsic :: iso_fortran_env, only: real64
  use spherical_harmonics
  implicit none
  integer, parameter :: truncations(4) = [5, 20, 42, 85]
  integer :: i
  do i = 1, size(truncations)
    call check(new_harmonics(truncations(i)))
  end do

contains

  subroutine check(h)
    type(harmonics), intent(in) :: h
    complex(real64), dimension(0:h%truncation, 0:h%truncation) :: c
    real(real64), dimension(h%longitudes, h%latitudes) :: u, v, east, north
    real(real64) :: longitude
    complex(real64) :: x(0:h%longitudes-1), direct(0:h%longitudes-1)
    integer :: n, m, j, k

    ! A discrete Fourier transform, by its definition.
    do k = 0, h%longitudes - 1
      x(k) = cmplx(sin(1.7_real64 * k**2), cos(0.3_real64 * k**3), real64)
    end do
    do j = 0, h%longitudes - 1
      direct(j) = sum([(x(k) * h%root(modulo(-j * k, h%longitudes)), k = 0, h%longitudes - 1)])
    end do
    call fourier(x, h%root, -1)
    call report(h, 'fourier', maxval(abs(x - direct)) / h%longitudes)

    call report(h, 'weights', abs(sum(h%weight) - 2))
    ! Of mu**4 the integral is 2/5, and of the products of two Legendre functions 2 or 0.
    call report(h, 'quadrature', abs(sum(h%weight * h%mu**4) - 0.4_real64))
    call report(h, 'orthonormal', orthonormality(h))

    c = 0
    do m = 0, h%truncation
      do n = m, h%truncation
        c(n, m) = cmplx(sin(3.0_real64 * n + m), merge(0.0_real64, cos(n + 5.0_real64 * m), m == 0), &
          real64) / (n + 1)
      end do
    end do
    call report(h, 'round trip', maxval(abs(to_spectrum(h, to_grid(h, c)) - c)))

    ! The wind of a streamfunction has no divergence, and its vorticity is the laplacian.
    call winds(h, c, u, v)
    call report(h, 'divergence', maxval(abs(divergence(h, u, v))) / h%truncation)
    do n = 0, h%truncation
      c(n, :) = -n * (n + 1) * c(n, :)
    end do
    call report(h, 'vorticity', maxval(abs(divergence(h, v, -u) - c)) / h%truncation)

    ! The wind of sqrt(15/2) sin(latitude) cos(latitude) cos(longitude), by its derivatives.
    c = 0
    c(2, 1) = 0.5_real64
    call winds(h, c, u, v)
    do j = 1, h%latitudes
      do k = 1, h%longitudes
        longitude = 2 * pi * (k - 1) / h%longitudes
        east(k, j) = -sqrt(7.5_real64) * (1 - 2 * h%mu(j)**2) * sqrt(1 - h%mu(j)**2) &
          * cos(longitude)
        north(k, j) = -sqrt(7.5_real64) * h%mu(j) * sqrt(1 - h%mu(j)**2) * sin(longitude)
      end do
    end do
    call report(h, 'wind', max(maxval(abs(u - east)), maxval(abs(v - north))))
  end subroutine

  function orthonormality(h) result(largest)
    type(harmonics), intent(in) :: h
    real(real64) :: largest
    integer :: n, other, m
    largest = 0
    do m = 0, h%truncation
      do n = m, h%truncation
        do other = m, h%truncation
          largest = max(largest, abs(sum(h%weight * h%p(n, m, :) * h%p(other, m, :)) &
            - merge(2, 0, n == other)))
        end do
      end do
    end do
  end function

  subroutine report(h, what, error)
    type(harmonics), intent(in) :: h
    character(len=*), intent(in) :: what
    real(real64), intent(in) :: error
    print '(a,i0,2a,es9.2)', 'T', h%truncation, ' ', what // ': ', error
  end subroutine
end program
