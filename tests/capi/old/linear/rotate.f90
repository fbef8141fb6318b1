subroutine rotate(n, z, by)
    implicit none
    integer, intent(in) :: n
    complex(kind(1d0)), intent(inout) :: z(n)
    complex(kind(1d0)), intent(in) :: by
    z = z * by
end subroutine
