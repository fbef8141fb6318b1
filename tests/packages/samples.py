"""A module, and programs that call it: what is installed has to compile and to run them."""

from __future__ import annotations

IDL = r"""
Module sample;
Define scale(IN int n, IN double by, INOUT double x[n]) { for (int i = 0; i < n; i++) x[i] *= by; }
"""

C = r"""
#include <grpc.h>
#include <stdio.h>

int main(void)
{
    grpc_function_handle_t scale;
    double x[3] = {1, 2, 3};

    if (grpc_initialize(NULL) != GRPC_NO_ERROR ||
        grpc_function_handle_default(&scale, "sample/scale") != GRPC_NO_ERROR ||
        grpc_call(&scale, 3, 2.0, x) != GRPC_NO_ERROR) {
        grpc_perror_np("sample/scale");
        return 1;
    }
    printf("%g %g %g\n", x[0], x[1], x[2]);
    grpc_finalize();
    return 0;
}
"""

FORTRAN = r"""
program first
  use grpc
  implicit none
  type(grpc_function_handle_t) :: scale
  integer(grpc_error_t) :: error
  double precision :: x(3) = [1, 2, 3]

  error = grpc_initialize()
  error = grpc_function_handle_default(scale, 'sample/scale')
  error = grpc_call(scale, size(x), 2d0, x)
  if (error /= GRPC_NO_ERROR) error = grpc_perror_np('scale')
  print '(3f5.1)', x
  error = grpc_finalize()
end program
"""
