! Sessions: calls that are not waited for, waiting, cancelling, information, attributes, stacks.
program sessions
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  implicit none
  type(grpc_function_handle_t) :: sum_of, nap, turned

  call begin()
  call ok(grpc_function_handle_default(sum_of, 'forms/sum_of'), 'sum_of')
  call ok(grpc_function_handle_init(nap, 'localhost', 'forms/nap'), 'nap')
  call ok(grpc_function_handle_default(turned, 'forms/turned'), 'turned')
  call waiting()
  call ending()
  call handles()
  call attributes()
  call information()
  call stacks()
  call finish()

contains

  subroutine waiting()
    integer, parameter :: n = 6
    integer(grpc_sessionid_t) :: ids(n), done
    real(c_double), asynchronous :: x(1000), sums(n)
    integer :: i
    x = 1
    do i = 1, n
      call ok(grpc_call_async(sum_of, ids(i), 100 * i, x, sums(i)), 'grpc_call_async')
    end do
    call ok(grpc_wait(ids(1)), 'grpc_wait')
    call is(sums(1) == 100, 'the first')
    call ok(grpc_wait_and(ids(2:3)), 'grpc_wait_and')
    call is(all(sums(2:3) == [200, 300]), 'the second and third')
    call ok(grpc_wait_or(ids(4:), done), 'grpc_wait_or')
    call is(any(ids(4:) == done), 'one of the others')
    call ok(grpc_wait_all(), 'grpc_wait_all')
    call is(all(sums == [(100 * i, i = 1, n)]), 'all')
    call ok(grpc_wait_any(done), 'grpc_wait_any')
    call is(done == GRPC_SESSIONID_VOID, 'none left')
    call ok(grpc_call_async(sum_of, ids(6), 5, x, sums(6)), 'once more')
    call ok(grpc_wait_any(done), 'grpc_wait_any')
    call is(done == ids(6) .and. sums(6) == 5, 'any is the only one')
    call ok(grpc_probe(ids(6)), 'grpc_probe')
    call ok(grpc_probe_or(ids(6:), done), 'grpc_probe_or')
    call is(done == ids(6), 'probe_or')
    call ok(grpc_get_error(ids(6)), 'grpc_get_error')
  end subroutine

  subroutine ending()
    integer(grpc_sessionid_t) :: id, other, failed
    call ok(grpc_call_async(nap, id, 60), 'nap')
    call ok(grpc_call_async(nap, other, 60.0), 'nap')
    call is(grpc_probe(id) == GRPC_NOT_COMPLETED, 'it sleeps')
    call is(grpc_probe_or([id, other], failed) == GRPC_NONE_COMPLETED, 'both sleep')
    call is(grpc_get_error(id) == GRPC_NO_ERROR, 'no error yet')
    call ok(grpc_cancel(id), 'grpc_cancel')
    call is(grpc_wait(id) == GRPC_SESSION_FAILED, 'cancelled')
    call is(grpc_get_error(id) == GRPC_CANCELED_NP, 'and why')
    call is(index(grpc_error_detail_np(id), 'cancel') > 0, 'in words')
    call ok(grpc_cancel_all(), 'grpc_cancel_all')
    call is(grpc_wait_and([other]) == GRPC_SESSION_FAILED, 'the other')
    call ok(grpc_get_failed_sessionid(failed), 'grpc_get_failed_sessionid')
    call is(failed == other, 'which')
    call is(grpc_wait(12345) == GRPC_INVALID_SESSION_ID, 'no such session')
    call is(grpc_last_error_get_np() == GRPC_INVALID_SESSION_ID, 'the last error')
  end subroutine

  subroutine handles()
    type(grpc_function_handle_t), target :: several(3)
    type(grpc_function_handle_t) :: found
    integer(grpc_sessionid_t) :: id
    real(c_double), asynchronous :: x(3), sum
    call is(grpc_call(found, 1) == GRPC_INVALID_FUNCTION_HANDLE, 'never made')
    call ok(grpc_function_handle_array_default_np(several, 'forms/sum_of'), 'array')
    x = 2
    call ok(grpc_call_async(several(2), id, 3, x, sum), 'one of the array')
    call ok(grpc_get_handle(found, id), 'grpc_get_handle')
    call ok(grpc_wait(id), 'wait')
    call is(sum == 6, 'result')
    call ok(grpc_call(found, 2, x, sum), 'the handle found')
    call is(sum == 4, 'by the handle found')
    call ok(grpc_function_handle_get_error_np(several(2)), 'get_error')
    call ok(grpc_function_handle_is_ready_np(several(2)), 'is_ready')
    call ok(grpc_function_handle_array_destruct_np(several), 'destruct')
    call is(grpc_call(found, 2, x, sum) == GRPC_INVALID_FUNCTION_HANDLE, 'destructed')
    call ok(grpc_function_handle_array_init_np(several(:2), 'localhost', 'forms/nap'), 'init')
    call ok(grpc_function_handle_array_destruct_np(several(:2)), 'destruct')
  end subroutine

  subroutine attributes()
    type(grpc_handle_attr_t_np) :: attr
    type(grpc_session_attr_t_np) :: limits
    type(grpc_function_handle_t) :: f
    character(len=:), allocatable :: text
    integer(grpc_sessionid_t) :: id
    character(len=10) :: back
    integer(c_int) :: number
    logical :: there

    call ok(grpc_handle_attr_initialize_np(attr), 'attr')
    call ok(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_FUNCNAME, text, there), 'nothing there')
    call is(.not. there .and. text == '', 'nothing there')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_FUNCNAME, 'forms/turned  '), 'function')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_HOSTNAME, 'localhost'), 'host')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, 30), 'time')
    call ok(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, number, there), 'time')
    call is(there .and. number == 30, 'time')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT), 'no time')
    call ok(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_JOBSTARTTIMEOUT, number, there), 'time')
    call is(.not. there .and. number == 0, 'no time')
    call is(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_PORT, '80') == GRPC_OTHER_ERROR_CODE, &
      'a string for an integer')
    call is(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_FUNCNAME, number) &
      == GRPC_OTHER_ERROR_CODE, 'an integer for a string')
    call is(index(grpc_error_detail_np(), 'attribute 4 is a string') == 1, 'what is wrong')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_CORES, 2), 'cores')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_MEMORY, '1 MB'), 'memory')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_EXPECTED_TIME, 60), 'expected time')
    call is(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_MEMORY, 1) == GRPC_OTHER_ERROR_CODE, &
      'an integer for a string')
    call is(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_RESOURCES, 'gpu') &
      == GRPC_OTHER_ERROR_CODE, 'no number of a resource')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_RESOURCES, 'gpu=1'), 'resource')
    call ok(grpc_function_handle_init_with_attr_np(f, attr), 'handle that asks for a resource')
    call is(grpc_call(f, 'abc', back) == GRPC_SERVER_NOT_FOUND, 'a resource that no host has')
    call ok(grpc_function_handle_destruct(f), 'destruct')
    call ok(grpc_handle_attr_set_np(attr, GRPC_HANDLE_ATTR_RESOURCES), 'no resource')
    call ok(grpc_function_handle_init_with_attr_np(f, attr), 'handle with attributes')
    call ok(grpc_handle_attr_destruct_np(attr), 'destruct')
    call ok(grpc_function_handle_get_attr_np(f, attr), 'attributes of a handle')
    call ok(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_FUNCNAME, text), 'function')
    call is(text == 'forms/turned', 'function')
    call ok(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_CORES, number), 'cores')
    call is(number == 2, 'cores')
    call ok(grpc_handle_attr_get_np(attr, GRPC_HANDLE_ATTR_MEMORY, text), 'memory')
    call is(text == '1000000 B', 'memory')
    call ok(grpc_handle_attr_destruct_np(attr), 'destruct')
    call ok(grpc_call(f, 'abc', back), 'call')
    call is(back == 'cba', 'call')

    call ok(grpc_session_attr_initialize_np(nap, limits), 'session attributes')
    call ok(grpc_session_attr_set_np(limits, GRPC_SESSION_ATTR_SESSION_TIMEOUT, 1), 'limit')
    call ok(grpc_session_attr_get_np(limits, GRPC_SESSION_ATTR_SESSION_TIMEOUT, number), 'limit')
    call is(number == 1, 'limit')
    call ok(grpc_call_with_attr_np(nap, limits, 0.01), 'a short nap')
    call ok(grpc_call_async_with_attr_np(nap, id, limits, 60), 'a long nap')
    call is(grpc_wait(id) == GRPC_SESSION_FAILED, 'too long')
    call is(grpc_get_error(id) == GRPC_TIMEOUT_NP, 'why')
    call ok(grpc_session_attr_destruct_np(limits), 'destruct')
    call is(grpc_call_with_attr_np(nap, limits, 0) /= GRPC_NO_ERROR, 'destructed attributes')
    call is(grpc_call_async_with_attr_np(nap, id, limits, 0) /= GRPC_NO_ERROR, 'once more')
    call is(id == GRPC_SESSIONID_VOID, 'no session')
  end subroutine

  subroutine information()
    type(grpc_session_info_t_np) :: info, last
    integer(grpc_sessionid_t) :: id
    integer(c_int) :: status
    call ok(grpc_call_async(nap, id, 0.2), 'nap')
    call ok(grpc_wait(id), 'nap')
    call ok(grpc_session_info_get_np(id, info, status), 'info')
    call is(status == GRPC_SESSION_DONE, 'status')
    call is(info%gei_measureExecutable%calculationRealTime > 0.15, 'time of the calculation')
    call is(info%gei_measureExecutable%calculationRealTime < 5, 'time of the calculation')
    call is(info%gei_measureExecutable%callbackNtimesCalled == 0, 'callbacks')
    call is(info%gei_measureClient%calculationRealTime > 0.15, 'as the client sees it')
    call is(info%gei_place%processId > 0, 'process')
    call is(info%gei_place%attempts == 1, 'attempts')
    call is(info%gei_place%hostname /= '', 'host')
    call is(size(info%gei_compressionInformation%toClient) == 0, 'compression')
    call ok(grpc_session_info_get_np(id, status=status), 'status only')
    call ok(grpc_session_info_get_np(id, info), 'info only')
    call ok(grpc_get_info_np(id, last), 'older')
    call is(last%gei_place%processId == info%gei_place%processId, 'older')
    call ok(grpc_get_last_info_np(last, status), 'the last one')
    call ok(grpc_session_info_remove_np(id), 'remove')
    call is(grpc_session_info_get_np(id, info) == GRPC_INVALID_SESSION_ID, 'removed')
    call ok(grpc_session_info_set_threshold_np(10), 'threshold')
  end subroutine

  subroutine stacks()
    type(c_ptr) :: stack, popped
    integer(grpc_sessionid_t) :: id
    integer(c_int), target :: n
    real(c_double), target :: x(3), sum
    n = 3
    x = 5
    stack = grpc_arg_stack_new(3)
    call is(grpc_arg_stack_push_arg(stack, c_loc(n)) == 0, 'push')
    call is(grpc_arg_stack_push_arg(stack, c_loc(x)) == 0, 'push')
    call is(grpc_arg_stack_push_arg(stack, c_loc(sum)) == 0, 'push')
    call is(grpc_arg_stack_push_arg(stack, c_loc(sum)) == -1, 'full')
    call ok(grpc_call_arg_stack(sum_of, stack), 'call')
    call is(sum == 15, 'sum')
    x = 6
    id = grpc_call_arg_stack_async(sum_of, stack)
    call ok(grpc_wait(id), 'async')
    call is(sum == 18, 'async')
    call ok(grpc_call_argstack_async(sum_of, id, stack), 'async, as DIET has it')
    call ok(grpc_wait(id), 'async')
    popped = grpc_arg_stack_pop_arg(stack)
    call is(c_associated(popped, c_loc(sum)), 'pop')
    call is(grpc_arg_stack_destruct(stack) == 0, 'destruct')
  end subroutine
end program
