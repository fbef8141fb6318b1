! Calls whose servers a directory chooses: its URL is in GRIDRPC_DIRECTORY.
program directory
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  implicit none
  type(grpc_function_handle_t) :: scale, none
  integer(grpc_sessionid_t) :: id
  real(c_double), asynchronous :: x(1000)

  call begin()
  call ok(grpc_function_handle_init(scale, '', 'where/scale'), 'scale')
  x = 2
  call ok(grpc_call(scale, size(x), 10.0d0, x), 'grpc_call')
  call is(all(x == 20), 'a call')
  call ok(grpc_call_async(scale, id, size(x), 0.5d0, x), 'grpc_call_async')
  call ok(grpc_wait(id), 'grpc_wait')
  call is(all(x == 10), 'a session')
  call is(grpc_function_handle_default(none, 'where/scael') == GRPC_FUNCTION_NOT_FOUND, 'no such function')
  call finish()
end program
