/*
 * Solves a system of linear equations with dgesv of a server.
 *
 *     solve SERVER
 */
#include <math.h>
#include <stdio.h>

#include <grpc.h>

int main(int argc, char **argv)
{
    /* By columns. The solution is 1, 2, 3. */
    double a[9] = {4, 1, 0, 1, 4, 1, 0, 1, 4}, b[3] = {6, 12, 14};
    int pivots[3], info = -1, failed;
    grpc_function_handle_t dgesv;

    if (argc != 2) {
        fprintf(stderr, "usage: solve SERVER\n");
        return 2;
    }
    if (grpc_initialize(NULL) != GRPC_NO_ERROR ||
        grpc_function_handle_init(&dgesv, argv[1], "lapack/dgesv") != GRPC_NO_ERROR) {
        grpc_perror_np("lapack/dgesv");
        return 1;
    }
    /* n, nrhs, a, lda, ipiv, b, ldb, info */
    failed = grpc_call(&dgesv, 3, 1, a, 3, pivots, b, 3, &info) != GRPC_NO_ERROR || info != 0;
    if (failed)
        grpc_perror_np("dgesv");
    else
        printf("C: %.3f %.3f %.3f\n", b[0], b[1], b[2]);
    grpc_function_handle_destruct(&dgesv);
    grpc_finalize();
    return failed || fabs(b[0] - 1) + fabs(b[1] - 2) + fabs(b[2] - 3) > 1e-12;
}
