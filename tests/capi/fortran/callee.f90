! Procedures that are called: numbers, tables, strings, files, callbacks, cancelling.

subroutine take_numbers(a, b, c, d, e, all, letter)
  use, intrinsic :: iso_fortran_env, only: int8, int64, real32, real64
  implicit none
  integer(int8), intent(in) :: a
  integer(int64), intent(in) :: b
  real(real32), intent(in) :: c
  complex(real64), intent(in) :: d
  character, intent(in) :: e
  real(real64), intent(out) :: all(5)
  character, intent(out) :: letter
  all = [real(a, real64), real(b, real64), real(c, real64), real(d), aimag(d)]
  letter = e
end subroutine

! Doubles the table and adds to each row the number of the row, by way of the workspace.
subroutine take_table(rows, columns, a, row)
  implicit none
  integer, intent(in) :: rows, columns
  real, intent(inout) :: a(rows, columns), row(columns)
  integer :: i
  do i = 1, rows
    row = 2 * a(i, :) + i
    a(i, :) = row
  end do
end subroutine

subroutine take_texts(first, n, second, joined, three, lengths)
  implicit none
  character(len=*), intent(in) :: first, second
  integer, intent(in) :: n
  character(len=*), intent(out) :: joined
  character(len=*), intent(inout) :: three(3)
  integer, intent(out) :: lengths(2)
  joined = first // '+' // second
  three = three(3:1:-1)
  lengths = [len(joined) - n, len(three)]
end subroutine

subroutine count_lines(name, count)
  implicit none
  character(len=*), intent(in) :: name
  integer, intent(out) :: count
  integer :: unit, status
  open(newunit=unit, file=name, action='read', status='old')
  count = 0
  do
    read(unit, *, iostat=status)
    if (status /= 0) exit
    count = count + 1
  end do
  close(unit)
end subroutine

subroutine integrate(n, sum, f)
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, intent(in) :: n
  real(real64), intent(out) :: sum
  real(real64) :: y
  integer :: i
  interface
    subroutine f(x, y)
      import :: real64
      real(real64), intent(in) :: x
      real(real64), intent(out) :: y
    end subroutine
  end interface
  sum = 0
  do i = 1, n
    call f((i - 0.5_real64) / n, y)
    sum = sum + y / n
  end do
end subroutine

! Looks now and then whether it has been cancelled.
subroutine obey(seconds, canceled)
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use grpc, only: grpc_is_canceled_np
  implicit none
  real(real64), intent(in) :: seconds
  integer, intent(out) :: canceled
  integer(int64) :: begin, now, rate
  canceled = 0
  call system_clock(begin, rate)
  now = begin
  do while (now - begin < seconds * rate .and. canceled == 0)
    canceled = grpc_is_canceled_np()
    call system_clock(now)
  end do
end subroutine
