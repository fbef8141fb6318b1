! Numbers and arrays of every type and kind, callbacks, and calls with many arguments.
module callbacks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: calls = 0
contains
  subroutine square(x, y) bind(c)
    real(c_double), intent(in) :: x
    real(c_double), intent(out) :: y
    calls = calls + 1
    y = x**2
  end subroutine

  subroutine times(x, n, y) bind(c)
    real(c_double), value :: x
    integer(c_int), value :: n
    real(c_double), intent(out) :: y
    y = x * n
  end subroutine
end module

program numbers
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64, real128
  use check
  use grpc
  use callbacks
  implicit none
  integer, parameter :: int128 = selected_int_kind(38), extended = selected_real_kind(18)
  type(grpc_function_handle_t) :: f

  call begin()
  call scalars()
  call limits()
  call arrays()
  call functions()
  call finish()

contains

  subroutine handle_of(name)
    character(len=*), intent(in) :: name
    call ok(grpc_function_handle_default(f, 'forms/' // name), name)
  end subroutine

  ! All kinds for one parameter.
  subroutine scalars()
    integer(c_int) :: i
    integer(c_long) :: l
    real(c_float) :: r
    real(c_double) :: d
    complex(c_float_complex) :: c
    complex(c_double_complex) :: z
    character :: letter

    call handle_of('one_int')
    call ok(grpc_call(f, 7_int8, i), 'int8');           call is(i == 7, 'int8')
    call ok(grpc_call(f, -700_int16, i), 'int16');      call is(i == -700, 'int16')
    call ok(grpc_call(f, 70000_int32, i), 'int32');     call is(i == 70000, 'int32')
    call ok(grpc_call(f, -70000_int64, i), 'int64');    call is(i == -70000, 'int64')
    call ok(grpc_call(f, 70000_int128, i), 'int128');   call is(i == 70000, 'int128')
    call ok(grpc_call(f, i + 1, i), 'expression');      call is(i == 70001, 'expression')
    call handle_of('one_long')
    call ok(grpc_call(f, 5, l), 'int to long');         call is(l == 5, 'int to long')
    call handle_of('one_int64')
    call ok(grpc_call(f, -5_int8, l), 'int8 to int64'); call is(l == -5, 'int8 to int64')

    call handle_of('one_double')
    call ok(grpc_call(f, 0.5_real32, d), 'real32');     call is(d == 0.5, 'real32')
    call ok(grpc_call(f, 0.1_real64, d), 'real64');     call is(d == 0.1_real64, 'real64')
    call ok(grpc_call(f, 0.1_extended, d), 'extended'); call is(d == 0.1_real64, 'extended')
    call ok(grpc_call(f, 0.1_real128, d), 'real128');   call is(d == 0.1_real64, 'real128')
    call ok(grpc_call(f, -3, d), 'integer to double');  call is(d == -3, 'integer to double')
    call handle_of('one_float')
    call ok(grpc_call(f, 0.1_real64, r), 'to float');   call is(r == 0.1_real32, 'to float')

    call handle_of('one_scomplex')
    call ok(grpc_call(f, (1.0_real64, -2.0_real64), c), 'to scomplex')
    call is(c == (1.0, -2.0), 'to scomplex')
    call handle_of('one_dcomplex')
    call ok(grpc_call(f, (1.0_real128, -2.0_real128), z), 'complex of real128')
    call is(z == (1.0, -2.0), 'complex of real128')
    call ok(grpc_call(f, 4, z), 'integer to dcomplex'); call is(z == (4.0, 0.0), 'to dcomplex')

    call handle_of('one_char')
    call ok(grpc_call(f, 'N', letter), 'character');    call is(letter == 'N', 'character')
    call ok(grpc_call(f, 'Trans', letter), 'its first one'); call is(letter == 'T', 'first one')
    call ok(grpc_call(f, 65, letter), 'integer to char'); call is(letter == 'A', 'integer to char')
  end subroutine

  subroutine limits()
    integer(int8) :: i1
    integer(int16) :: i2
    integer(int32) :: i4
    integer(int64) :: i8
    call handle_of('one_uint8')
    call ok(grpc_call(f, 255, i1), 'uint8');            call is(i1 == -1_int8, 'uint8')
    call handle_of('one_unsigned_short')
    call ok(grpc_call(f, 65535, i2), 'ushort');         call is(i2 == -1_int16, 'ushort')
    call handle_of('one_uint32')
    call ok(grpc_call(f, 4294967295_int64, i4), 'uint32'); call is(i4 == -1, 'uint32')
    call handle_of('one_uint64')
    call ok(grpc_call(f, 18446744073709551615_int128, i8), 'uint64')
    call is(i8 == -1_int64, 'uint64')
    call handle_of('one_short')
    call ok(grpc_call(f, -32768, i2), 'short');         call is(i2 == -32768_int32, 'short')
  end subroutine

  subroutine arrays()
    integer(int8) :: i1(3)
    integer(int16) :: i2(3)
    integer(int32) :: i4(2, 2)
    integer(int64), allocatable :: i8(:)
    real(real32) :: r4(3)
    real(real64), pointer :: r8(:)
    complex(real32) :: c4(2)
    complex(real64) :: c8(2)
    real(real64), pointer :: shared(:)
    type(c_ptr) :: memory
    real(real64) :: sum
    integer :: n

    i1 = 3; i2 = 300; i4 = 5; i8 = [1_int64, 2_int64, 3_int64]; r4 = 1.5; c4 = (1, 2); c8 = (3, 4)
    allocate(r8(100), source=2.0_real64)
    call handle_of('many_int8');     call ok(grpc_call(f, 3, i1), 'int8(3)')
    call handle_of('many_short');    call ok(grpc_call(f, 3, i2), 'int16(3)')
    call handle_of('many_int');      call ok(grpc_call(f, size(i4), i4), 'int32(2,2)')
    call handle_of('many_longlong'); call ok(grpc_call(f, 3, i8), 'int64(3)')
    call handle_of('many_float');    call ok(grpc_call(f, 3, r4), 'real32(3)')
    call handle_of('many_double');   call ok(grpc_call(f, 50, r8(::1)), 'half of real64(100)')
    call ok(grpc_call(f, 10, r8(51:60)), 'part of real64(100)')
    call handle_of('many_scomplex'); call ok(grpc_call(f, 2, c4), 'complex(2)')
    call handle_of('many_dcomplex'); call ok(grpc_call(f, 2, c8), 'complex of real64(2)')
    call is(all(i1 == 6) .and. all(i2 == 600) .and. all(i4 == 10), 'arrays of integers')
    call is(all(i8 == [2, 4, 6]), 'allocatable of int64')
    call is(all(r4 == 3) .and. all(r8(:60) == 4) .and. all(r8(61:) == 2), 'arrays of reals')
    call is(all(c4 == (2, 4)) .and. all(c8 == (6, 8)), 'arrays of complex numbers')
    deallocate(r8)

    call handle_of('many_uint16'); call ok(grpc_call(f, 3, i2), 'unsigned as signed')
    call is(all(i2 == 1200), 'unsigned as signed')
    call handle_of('many_double')
    allocate(r8(0))
    call ok(grpc_call(f, 0, r8), 'no element')
    call assumed_size(i4)

    memory = grpc_malloc_np(1000 * c_sizeof(1.0_c_double))
    call c_f_pointer(memory, shared, [1000])
    shared = [(real(n, real64), n = 1, 1000)]
    call handle_of('sum_of')
    call ok(grpc_call(f, 1000, shared, sum), 'shared memory')
    call is(sum == 500500, 'shared memory')
    call ok(grpc_free_np(memory), 'grpc_free_np')

    call by_rows()

    call handle_of('work')
    call ok(grpc_call(f, 5, 0, sum), 'work');           call is(sum == 10, 'work')
  end subroutine

  subroutine assumed_size(a)
    integer(int32), intent(inout) :: a(*)
    call handle_of('many_int')
    call ok(grpc_call(f, 4, a), 'assumed size');        call is(all(a(:4) == 20), 'assumed size')
  end subroutine

  ! Parentheses make a copy, which is contiguous.
  subroutine by_rows()
    real(real64) :: a(2, 3), sum
    a = reshape([1, 2, 3, 4, 5, 6], [2, 3])
    call handle_of('sum_of')
    call ok(grpc_call(f, 3, (a(2, :)), sum), 'a row');  call is(sum == 12, 'a row')
    call ok(grpc_call(f, 2, a(:, 2), sum), 'a column'); call is(sum == 7, 'a column')
  end subroutine

  subroutine functions()
    type(c_funptr) :: pointer
    type(grpc_parameter_np), allocatable :: parameters(:)
    real(c_double) :: sum
    integer(c_int) :: total

    call handle_of('integrate')
    pointer = c_funloc(square)
    call ok(grpc_call(f, 100, sum, pointer), 'callback in a variable')
    call is(abs(sum - 1 / 3.0_c_double) < 1e-4 .and. calls == 100, 'callback in a variable')
    call ok(grpc_call(f, 100, sum, c_funloc(square)), 'callback')
    call is(abs(sum - 1 / 3.0_c_double) < 1e-4 .and. calls == 200, 'callback')
    call handle_of('scaled')
    call ok(grpc_call(f, 0.5, sum, c_funloc(times)), 'callback with numbers')
    call is(sum == 1.5, 'callback with numbers')

    call handle_of('nothing')
    call ok(grpc_call(f), 'no argument')
    call handle_of('most')
    call ok(grpc_call(f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, &
      21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, total), '32 arguments')
    call is(total == 31 * 16, '32 arguments')

    call handle_of('join')
    call ok(grpc_function_parameters_np(f, parameters), 'grpc_function_parameters_np')
    call is(size(parameters) == 3, 'number of parameters')
    call is(parameters(2)%name == 'parts' .and. parameters(2)%is_array, 'name of a parameter')
    call is(parameters(3)%mode == GRPC_MODE_OUT_NP, 'mode of a parameter')
    call is(parameters(3)%type == GRPC_TYPE_STRING_NP, 'type of a parameter')
    call is(.not. parameters(3)%is_callback, 'a parameter that is no callback')
  end subroutine
end program
