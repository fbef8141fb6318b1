! Calls Fortran procedures that run elsewhere: see callee.f90.
module integrand
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine cube(x, y) bind(c)
    real(c_double), intent(in) :: x
    real(c_double), intent(out) :: y
    y = x**3
  end subroutine
end module

program caller
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  use integrand
  implicit none
  type(grpc_function_handle_t) :: f
  integer(grpc_sessionid_t) :: id
  real(c_double) :: all(5), sum
  real :: table(2, 3)
  character(len=1) :: letter
  character(len=12) :: joined
  character(len=4) :: three(3)
  integer(c_int), asynchronous :: lengths(2)
  integer :: unit, i

  call begin()
  call handle_of('numbers')
  call ok(grpc_call(f, -8, 2_c_int64_t**40, 0.5, (1.5, -2.5), 'q', all, letter), 'numbers')
  call is(all(2) == 2d0**40 .and. maxval(abs(all([1, 3, 4, 5]) - [-8.0, 0.5, 1.5, -2.5])) <= 0, &
    'numbers')
  call is(letter == 'q', 'letter')

  call handle_of('table')
  table = reshape([(real(i), i = 1, 6)], [2, 3])
  call ok(grpc_call(f, 2, 3, table, 0), 'table')
  call is(maxval(abs(table - reshape([3., 6., 7., 10., 11., 14.], [2, 3]))) <= 0, 'table')

  call handle_of('texts')
  three = [character(len=4) :: 'one', 'two', 'four']
  call ok(grpc_call(f, 'left  ', len(joined), 'right', joined, three, lengths), 'texts')
  call is(joined == 'left+right', 'joined')
  call is(three(1) == 'four' .and. three(2) == 'two' .and. three(3) == 'one', 'three')
  call is(lengths(1) == 0 .and. lengths(2) == 4, 'lengths')
  ! Results that are arrays of char may come later.
  joined = ''
  call asynchronously(joined)
  call is(joined == 'a+b', 'joined later')

  open(newunit=unit, file='lines.txt', action='write', status='replace')
  write(unit, '(a)') 'one', 'two', 'three'
  close(unit)
  call handle_of('lines')
  call ok(grpc_call(f, 'lines.txt', lengths), 'lines')
  call is(lengths(1) == 3, 'lines')

  call handle_of('integrate')
  call ok(grpc_call(f, 1000, sum, c_funloc(cube)), 'integrate')
  call is(abs(sum - 0.25) < 1e-6, 'integrate')

  call handle_of('obey')
  lengths = -1
  call ok(grpc_call(f, 0.05, lengths), 'obey')
  call is(lengths(1) == 0, 'not cancelled')
  call ok(grpc_call_async(f, id, 60, lengths), 'obey')
  do i = 1, 20
    if (grpc_probe(id) == GRPC_NO_ERROR) exit
  end do
  call ok(grpc_cancel(id), 'cancel')
  call is(grpc_wait(id) == GRPC_SESSION_FAILED, 'cancelled')
  call finish()

contains

  subroutine handle_of(name)
    character(len=*), intent(in) :: name
    call ok(grpc_function_handle_default(f, 'callee/' // name), name)
  end subroutine

  subroutine asynchronously(joined)
    character(len=*), intent(inout), asynchronous :: joined
    call ok(grpc_call_async(f, id, 'a', len(joined), 'b', joined, three, lengths), 'texts')
    call ok(grpc_wait(id), 'texts')
  end subroutine
end program
