! Remote objects.
program objects
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  implicit none
  type(grpc_object_handle_t_np) :: counter, several(2), found
  type(grpc_handle_attr_t_np) :: attr
  type(grpc_session_attr_t_np) :: limits
  type(grpc_parameter_np), allocatable :: parameters(:)
  type(c_ptr) :: stack
  integer(grpc_sessionid_t) :: id, ids(2)
  integer(c_int), asynchronous, target :: now, counts(2), step
  character(len=20) :: name
  integer :: i

  call begin()
  call ok(grpc_object_handle_default_np(counter, 'forms/Counter'), 'default')
  call ok(grpc_invoke_np(counter, 'add', 1, now), 'add')
  call is(now == 101, 'add')
  call ok(grpc_invoke_np(counter, 'name  ', 'at ', name), 'name')
  call is(name == 'at101', 'blanks at the end of a string do not count')
  call ok(grpc_invoke_async_np(counter, 'add', id, 5_c_long, now), 'async')
  call ok(grpc_object_handle_get_from_session_np(found, id), 'handle of a session')
  call ok(grpc_wait(id), 'wait')
  call is(now == 106, 'async')
  call ok(grpc_invoke_np(found, 'add', 1, now), 'by the handle found')
  call is(now == 107, 'the same object')
  call ok(grpc_method_parameters_np(counter, 'add', parameters), 'parameters')
  call is(size(parameters) == 2 .and. parameters(1)%name == 'n', 'parameters')
  call is(grpc_method_parameters_np(counter, 'sub', parameters) == GRPC_FUNCTION_NOT_FOUND, 'none')
  call is(grpc_invoke_np(counter, 'sub', 1) == GRPC_FUNCTION_NOT_FOUND, 'no such method')
  call ok(grpc_object_handle_is_ready_np(counter), 'is_ready')

  call ok(grpc_session_attr_initialize_with_object_handle_np(counter, limits), 'attributes')
  call ok(grpc_session_attr_set_np(limits, GRPC_SESSION_ATTR_SESSION_TIMEOUT, 60), 'limit')
  call ok(grpc_invoke_with_attr_np(counter, 'add', limits, 1, now), 'with attributes')
  call ok(grpc_invoke_async_with_attr_np(counter, 'add', id, limits, 1, now), 'async')
  call ok(grpc_wait(id), 'wait')
  call is(now == 109, 'with attributes')

  step = 10
  stack = grpc_arg_stack_new(2)
  call is(grpc_arg_stack_push_arg(stack, c_loc(step)) == 0, 'push')
  call is(grpc_arg_stack_push_arg(stack, c_loc(now)) == 0, 'push')
  call ok(grpc_invoke_arg_stack_np(counter, 'add', stack), 'stack')
  call ok(grpc_invoke_arg_stack_with_attr_np(counter, 'add', limits, stack), 'stack')
  call ok(grpc_wait(grpc_invoke_arg_stack_async_np(counter, 'add', stack)), 'stack')
  call ok(grpc_wait(grpc_invoke_arg_stack_async_with_attr_np(counter, 'add', limits, stack)), &
    'stack')
  call ok(grpc_invoke_argstack_async_np(counter, 'add', id, stack), 'stack')
  call ok(grpc_wait(id), 'wait')
  call is(now == 159, 'stacks')
  call is(grpc_arg_stack_destruct(stack) == 0, 'destruct')
  call ok(grpc_session_attr_destruct_np(limits), 'destruct')
  call ok(grpc_object_handle_destruct_np(counter), 'destruct')
  call is(grpc_invoke_np(counter, 'add', 1, now) == GRPC_INVALID_OBJECT_HANDLE_NP, 'destructed')

  call ok(grpc_object_handle_array_default_np(several, 'forms/Counter'), 'array')
  do i = 1, 2
    call ok(grpc_invoke_async_np(several(i), 'add', ids(i), i, counts(i)), 'async')
  end do
  call ok(grpc_wait_and(ids), 'wait')
  call is(all(counts == [101, 102]), 'two objects')
  call ok(grpc_object_handle_get_attr_np(several(1), attr), 'attributes')
  call ok(grpc_object_handle_array_destruct_np(several), 'destruct')
  call ok(grpc_object_handle_init_with_attr_np(counter, attr), 'with attributes')
  call ok(grpc_invoke_np(counter, 'add', 2, now), 'add')
  call is(now == 102, 'a new object')
  call ok(grpc_handle_attr_destruct_np(attr), 'destruct')
  call ok(grpc_object_handle_destruct_np(counter), 'destruct')
  call ok(grpc_object_handle_init_np(counter, 'localhost', 'forms/Counter'), 'init')
  call ok(grpc_object_handle_destruct_np(counter), 'destruct')
  call is(grpc_object_handle_default_np(counter, 'forms/None') == GRPC_CLASS_NOT_FOUND_NP, 'class')
  call finish()
end program
