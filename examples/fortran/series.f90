! A subroutine that knows nothing of GridRPC: series.idl says how it is called.
subroutine describe(n, values, title, extremes, mean, line, labels)
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, intent(in) :: n
  real(real64), intent(in) :: values(n)
  character(len=*), intent(in) :: title
  real(real64), intent(out) :: extremes(2), mean
  character(len=80), intent(out) :: line
  character(len=12), intent(out) :: labels(n)
  integer :: i

  extremes = [minval(values), maxval(values)]
  mean = sum(values) / n
  write(line, '(2a,i0,a,f0.2)') title, ': ', n, ' values about ', mean
  do i = 1, n
    if (values(i) > mean) then
      labels(i) = 'high'
    else
      write(labels(i), '(a,i0)') 'low ', i
    end if
  end do
end subroutine
