! Strings and file names, in and out.
program texts
  use, intrinsic :: iso_c_binding
  use check
  use grpc
  implicit none
  type(grpc_function_handle_t) :: f
  character(len=20) :: text, parts(3)
  character(len=:), allocatable :: name, back
  character(len=1) :: letters(4)
  character(len=8) :: two(2)
  character(len=4) :: short
  integer(c_int) :: n
  integer :: unit

  call begin()

  call handle_of('length')
  call ok(grpc_call(f, 'hello', n), 'literal');               call is(n == 5, 'literal')
  call ok(grpc_call(f, 'hello   ', n), 'blanks');             call is(n == 5, 'blanks')
  call ok(grpc_call(f, '', n), 'empty');                      call is(n == 0, 'empty')
  call ok(grpc_call(f, '   ', n), 'only blanks');             call is(n == 0, 'only blanks')
  name = 'x'
  call ok(grpc_call(f, name // ' y ', n), 'expression');      call is(n == 3, 'expression')

  call handle_of('turned')
  text = 'rubbish to go'
  call ok(grpc_call(f, 'abc', text), 'OUT');                  call is(text == 'cba', 'OUT')
  allocate(character(len=5) :: back)
  call ok(grpc_call(f, 'abc', back), 'OUT, allocatable');     call is(back == 'cba  ', 'allocatable')
  call ok(grpc_call(f, 'abcd', short), 'just fits');          call is(short == 'dcba', 'just fits')
  call is(grpc_call(f, 'abcdef', short) == GRPC_OTHER_ERROR_CODE, 'too long')
  call is(short == 'fedc', 'too long: what fits')

  call handle_of('exclaim')
  text = 'well'
  call ok(grpc_call(f, text), 'INOUT');                       call is(text == 'well!', 'INOUT')
  call handle_of('keep')
  call ok(grpc_call(f, text), 'INOUT in place');              call is(text == 'kell!', 'in place')

  call handle_of('join')
  parts = [character(len=20) :: 'one', '', 'three']
  call ok(grpc_call(f, 3, parts, text), 'IN array');          call is(text == 'one||three|', 'array')
  call handle_of('split')
  parts = 'rubbish'
  call ok(grpc_call(f, 'xyz', 3, parts), 'OUT array')
  call is(all(parts == [character(len=20) :: 'x', 'y', 'z']), 'OUT array')
  call ok(grpc_call(f, 'pq', 2, letters(2:3)), 'OUT array of letters')
  call is(all(letters(2:3) == ['p', 'q']), 'OUT array of letters')
  call handle_of('raise')
  parts = [character(len=20) :: 'one', '', 'three']
  call ok(grpc_call(f, 3, parts), 'INOUT array')
  call is(all(parts == [character(len=20) :: 'ONE', '', 'THREE']), 'INOUT array')

  call handle_of('letters')
  two = [character(len=8) :: 'banana', 'apple']
  call ok(grpc_call(f, two), 'char array')
  call is(two(1) == 'bAnAnA' .and. two(2) == 'Apple', 'char array')

  open(newunit=unit, file='from.txt', action='write', status='replace')
  write(unit, '(a)') 'content'
  close(unit)
  call handle_of('copied')
  call ok(grpc_call(f, 'from.txt', 'to.txt  '), 'file names')
  open(newunit=unit, file='to.txt', action='read', status='old')
  read(unit, '(a)') text
  close(unit)
  call is(text == 'content', 'file names')

  call is(grpc_error_string(GRPC_TIMEOUT_NP) /= '', 'grpc_error_string')
  call is(grpc_error_string(1000) == grpc_error_string(GRPC_UNKNOWN_ERROR_CODE), 'unknown code')
  call finish()

contains

  subroutine handle_of(name)
    character(len=*), intent(in) :: name
    call ok(grpc_function_handle_default(f, 'forms/' // name // '   '), name)
  end subroutine
end program
