! Detaches a call, and attaches to it.
program detached
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  implicit none
  type(grpc_function_handle_t) :: handle
  character(len=grpc_detached_id_size_np, kind=c_char) :: id
  integer(grpc_sessionid_t) :: session
  integer(c_long), target :: n = 3
  real(c_double), target :: factor = 3, x(3) = [1, 2, 3], y(3) = 0
  type(c_ptr) :: stack

  call begin()
  call ok(grpc_function_handle_default(handle, 'stored/scale'), 'handle')
  stack = grpc_arg_stack_new(4_c_int)
  call is(grpc_arg_stack_push_arg(stack, c_loc(n)) == 0, 'n')
  call is(grpc_arg_stack_push_arg(stack, c_loc(factor)) == 0, 'factor')
  call is(grpc_arg_stack_push_arg(stack, c_loc(x)) == 0, 'x')
  call is(grpc_arg_stack_push_arg(stack, c_loc(y)) == 0, 'y')
  call ok(grpc_detach_arg_stack_np(handle, id, len(id, c_size_t), stack), 'detach')
  call ok(grpc_attach_arg_stack_np(handle, id, session, stack), 'attach')
  call ok(grpc_wait(session), 'wait')
  call is(all(y == [3, 6, 9]), 'result')
  call finish()
end program
