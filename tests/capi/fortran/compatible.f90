! With `fortran_compatible true` calls are as they are without; callbacks get numbers by address.
module callbacks
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine times(x, n, y) bind(c)
    real(c_double), intent(in) :: x
    integer(c_int), intent(in) :: n
    real(c_double), intent(out) :: y
    y = x * n
  end subroutine
end module

program compatible
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  use callbacks
  implicit none
  type(grpc_function_handle_t) :: f
  integer(c_int) :: i
  real(c_double) :: y
  character(len=5) :: text
  call ok(grpc_initialize('client.conf  '), 'grpc_initialize')
  call ok(grpc_function_handle_default(f, 'forms/one_int'), 'one_int')
  call ok(grpc_call(f, 5_c_long, i), 'number');             call is(i == 5, 'number')
  call ok(grpc_function_handle_default(f, 'forms/turned'), 'turned')
  call ok(grpc_call(f, 'abc', text), 'string');             call is(text == 'cba', 'string')
  call ok(grpc_function_handle_default(f, 'forms/scaled'), 'scaled')
  call ok(grpc_call(f, 0.5, y, c_funloc(times)), 'callback'); call is(y == 1.5, 'callback')
  call finish()
end program
