! What the test programs share: they say what is wrong, and end with status 1 then.
module check
  use, intrinsic :: iso_fortran_env, only: error_unit
  use grpc
  implicit none
  private
  public :: ok, is, begin, finish
  integer :: failures = 0
contains

  ! A call that has to succeed.
  subroutine ok(error, what)
    integer(grpc_error_t), intent(in) :: error
    character(len=*), intent(in) :: what
    if (error == GRPC_NO_ERROR) return
    failures = failures + 1
    write(error_unit, '(4a)') what, ': ', grpc_error_string(error) // ': ', grpc_error_detail_np()
  end subroutine

  subroutine is(fact, what)
    logical, intent(in) :: fact
    character(len=*), intent(in) :: what
    if (fact) return
    failures = failures + 1
    write(error_unit, '(2a)') 'wrong: ', what
  end subroutine

  subroutine begin()
    call ok(grpc_initialize(), 'grpc_initialize')
  end subroutine

  subroutine finish()
    call ok(grpc_finalize(), 'grpc_finalize')
    if (failures > 0) stop 1
    print '(a)', 'ok'
  end subroutine
end module
