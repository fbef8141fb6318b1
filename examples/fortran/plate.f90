! A plate that heat spreads in. It knows nothing of GridRPC: heat.idl makes an object of it.
module plate
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  real(real64), allocatable :: t(:,:)
end module

subroutine plate_start(nx, ny, edge)
  use plate
  implicit none
  integer, intent(in) :: nx, ny
  real(real64), intent(in) :: edge
  if (allocated(t)) deallocate(t)
  allocate(t(nx, ny), source=0.0_real64)
  t(:, 1) = edge
end subroutine

subroutine plate_advance(steps, change)
  use plate
  implicit none
  integer, intent(in) :: steps
  real(real64), intent(out) :: change
  real(real64), allocatable :: next(:,:)
  integer :: step, nx, ny
  nx = size(t, 1)
  ny = size(t, 2)
  allocate(next, source=t)
  change = 0
  do step = 1, steps
    next(2:nx-1, 2:ny-1) = (t(1:nx-2, 2:ny-1) + t(3:nx, 2:ny-1) + t(2:nx-1, 1:ny-2) &
      + t(2:nx-1, 3:ny)) / 4
    change = maxval(abs(next - t))
    t = next
  end do
end subroutine

subroutine plate_temperatures(nx, ny, temperatures)
  use plate
  implicit none
  integer, intent(in) :: nx, ny
  real(real64), intent(out) :: temperatures(nx, ny)
  temperatures = t
end subroutine
