/*
 * Solves a system of linear equations with LAPACK's dgesv, elsewhere.
 *
 *     solve [CONFIGURATION] [ORDER]
 *
 * The matrix and the right-hand side are changed in place, as in a call of dgesv itself. Status 1
 * tells of an error, or of a residual that is too large.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc.h>

/* A number from -0.5 up to 0.5. */
static double number(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state / 4294967296.0 - 0.5;
}

/* How much of b is left: |b - A x| / (|A| |x| n) in the maximum norm, A by columns. */
static double residual(int n, const double *a, const double *x, const double *b)
{
    double left = 0, size = 0, largest = 0;
    for (int row = 0; row < n; row++) {
        double sum = b[row], length = 0;
        for (int column = 0; column < n; column++) {
            double element = a[row + (size_t)column * n];
            sum -= element * x[column];
            length += fabs(element);
        }
        left = fmax(left, fabs(sum));
        size = fmax(size, length);
        largest = fmax(largest, fabs(x[row]));
    }
    return left / (size * largest * n);
}

int main(int argc, char **argv)
{
    const char *configuration = argc > 1 ? argv[1] : NULL;
    int n = argc > 2 ? atoi(argv[2]) : 500;
    if (n < 1) {
        fprintf(stderr, "the order is %d: give a number from 1 on\n", n);
        return 1;
    }
    grpc_function_handle_t dgesv;
    if (grpc_initialize(configuration) != GRPC_NO_ERROR ||
        grpc_function_handle_default(&dgesv, "lapack/dgesv") != GRPC_NO_ERROR) {
        grpc_perror_np("lapack/dgesv");
        return 1;
    }

    /* Calls need not copy what lies in memory from grpc_malloc_np. */
    size_t elements = (size_t)n * n;
    double *a = grpc_malloc_np(elements * sizeof *a), *x = grpc_malloc_np(n * sizeof *x);
    double *original = malloc(elements * sizeof *original), *b = malloc(n * sizeof *b);
    int *pivots = malloc(n * sizeof *pivots), info = -1;
    if (!a || !x || !original || !b || !pivots) {
        fprintf(stderr, "no memory for a matrix of order %d\n", n);
        return 1;
    }
    unsigned state = 1;
    for (size_t i = 0; i < elements; i++)
        original[i] = number(&state);
    for (int i = 0; i < n; i++)
        b[i] = number(&state);
    memcpy(a, original, elements * sizeof *a);
    memcpy(x, b, n * sizeof *x);

    /* n, nrhs, a, lda, ipiv, b, ldb, info */
    int failed = grpc_call(&dgesv, n, 1, a, n, pivots, x, n, &info) != GRPC_NO_ERROR;
    if (failed) {
        grpc_perror_np("dgesv");
    } else if (info != 0) {
        fprintf(stderr, "dgesv: info is %d\n", info);
        failed = 1;
    } else {
        double left = residual(n, original, x, b);
        printf("order %d: residual %.1e\n", n, left);
        failed = !(left < 1e-15);
    }
    grpc_free_np(a);
    grpc_free_np(x);
    free(original);
    free(b);
    free(pivots);
    grpc_function_handle_destruct(&dgesv);
    grpc_finalize();
    return failed;
}
