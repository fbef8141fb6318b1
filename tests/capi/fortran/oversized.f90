! A call with more bytes of arguments than the server may hold, which is not sent.
program oversized
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  implicit none
  type(grpc_function_handle_t) :: handle
  integer(c_long) :: n
  real(c_double), allocatable :: x(:), y(:)

  call begin()
  call ok(grpc_function_handle_default(handle, 'stored/scale'), 'handle')
  n = 10
  allocate(x(n), y(n))
  x = 3
  call ok(grpc_call(handle, n, 2.0_c_double, x, y), 'few')
  call is(all(y == 6), 'result')
  deallocate(x, y)
  n = 1000000
  allocate(x(n), y(n))
  call is(grpc_call(handle, n, 2.0_c_double, x, y) == GRPC_RPC_REFUSED, 'many')
  call is(index(grpc_error_detail_np(), 'nothing was sent') > 0, 'detail')
  call finish()
end program
