! What calls refuse: each line of the output is the code, and standard error has the reason.
module unusable
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine square(x, y) bind(c)
    real(c_double), intent(in) :: x
    real(c_double), intent(out) :: y
    y = x**2
  end subroutine
end module

program refused
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use grpc
  use unusable
  implicit none
  type :: point
    real(c_double) :: x = 1, y = 2
  end type
  type(grpc_function_handle_t) :: f
  type(grpc_object_handle_t_np) :: counter
  integer(grpc_sessionid_t) :: id
  real(c_double) :: matrix(4, 4), sum
  real(c_float) :: singles(4)
  real(c_double), allocatable :: missing(:)
  real(c_double), pointer :: nowhere(:)
  integer(c_int) :: i
  character(len=20) :: text, several(2)
  type(point) :: place
  type(c_ptr) :: address

  nowhere => null()
  address = c_null_ptr
  matrix = 1
  singles = 1
  several = 'x'
  call told(grpc_initialize(), 'initialize')

  call function('one_int')
  call told(grpc_call(f, 1), 'too few')
  call told(grpc_call(f, 1, i, 2), 'too many')
  call told(grpc_call(f, a2=i), 'absent')
  call told(grpc_call(f, 2147483648_c_int64_t, i), 'range')
  call told(grpc_call(f, 1.0, i), 'real')
  call told(grpc_call(f, (1.0, 2.0), i), 'complex')
  call told(grpc_call(f, '1', i), 'text')
  call told(grpc_call(f, .true., i), 'logical')
  call told(grpc_call(f, [1, 2], i), 'array')
  call told(grpc_call(f, c_funloc(square), i), 'function')
  call told(grpc_call(f, 1, 1.5), 'real for int array')
  call told(grpc_call(f, 1, 1_c_long), 'long for int array')
  call function('one_uint8')
  call told(grpc_call(f, -1, i), 'negative')
  call function('one_float')
  call told(grpc_call(f, 1e300_c_double, singles), 'float')
  call told(grpc_call(f, (1.0, 2.0), singles), 'complex for float')
  call function('one_char')
  call told(grpc_call(f, '', text), 'no character')

  call function('sum_of')
  call told(grpc_call(f, 4, matrix(2, :), sum), 'row')
  call told(grpc_call(f, 4, matrix(::2, ::2), sum), 'strided')
  call told(grpc_call(f, 4, singles, sum), 'singles')
  call told(grpc_call(f, 4, missing, sum), 'not allocated')
  call told(grpc_call(f, 4, nowhere, sum), 'not associated')
  call told(grpc_call(f, 2, place, sum), 'derived')
  call told(grpc_call(f, 2, address, sum), 'address')

  call function('turned')
  call told(grpc_call(f, 5, text), 'number for string')
  call told(grpc_call(f, several, text), 'strings for string')
  call told(grpc_call_async(f, id, 'abc', text), 'async OUT')
  call function('integrate')
  call told(grpc_call(f, 4, sum, 1), 'no callback')
  call told(grpc_call(f, 4, sum, c_null_funptr), 'null callback')
  call function('too_many')
  call told(grpc_call(f, 1), '33 parameters')

  call told(grpc_object_handle_default_np(counter, 'forms/Counter'), 'object')
  call told(grpc_invoke_np(counter, 'add', 1.5, i), 'method')
  call told(grpc_invoke_async_np(counter, 'name', id, 'x', text), 'async OUT of method')
  call told(grpc_function_handle_default(f, 'forms/none'), 'no function')
  call function('crash')
  call told(grpc_call(f), 'crash')
  call told(grpc_perror_np('perror'), 'perror')
  call told(grpc_finalize(), 'finalize')
  call told(grpc_finalize(), 'finalized')

contains

  subroutine function(name)
    character(len=*), intent(in) :: name
    integer(grpc_error_t) :: error
    error = grpc_function_handle_default(f, 'forms/' // name)
    if (error /= GRPC_NO_ERROR) call told(error, name)
  end subroutine

  ! The reason lies between two of these lines.
  subroutine told(error, what)
    integer(grpc_error_t), intent(in) :: error
    character(len=*), intent(in) :: what
    write(error_unit, '(3a,i0)') '= ', what, ' = ', error
    if (error /= GRPC_NO_ERROR) write(error_unit, '(a)') grpc_error_detail_np()
    flush(error_unit)
  end subroutine
end program
