/*
 * A client in C: solves the same dense system again and again, here or on a server.
 *
 *   solve local|remote ORDER CALLS SECONDS random|singular
 *
 * It solves once to warm up, prints the number of threads that solve, and waits for a line. Then it
 * solves at least CALLS times and for SECONDS, and prints a line of JSON for each system: the time of
 * the call, the part of it in which the solver ran, LAPACK's info, and the scaled residual.
 * GRIDRPC_SERVERS has the URL of the server. solve.py is the same in Python.
 */
#include <float.h>
#include <grpc.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv, double *b,
            const int *ldb, int *info);
int openblas_get_num_threads(void);

#define MOST 500 /* systems that are solved at most */

static int n, remote, info;
static double *a, *lu, *x, *b;
static int *pivots;
static grpc_function_handle_t dgesv;

static void check(grpc_error_t error, const char *what)
{
    if (error == GRPC_NO_ERROR)
        return;
    grpc_perror_np(what);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void *memory(size_t bytes)
{
    /* Calls need not copy what lies in memory from grpc_malloc_np. */
    void *found = remote ? grpc_malloc_np(bytes) : malloc(bytes);
    if (found == NULL) {
        fprintf(stderr, "no memory for a matrix of order %d\n", n);
        exit(1);
    }
    return found;
}

/* A number from -0.5 up to 0.5, by xorshift64*. */
static double number(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 2685821657736338717u >> 11) / 9007199254740992.0 - 0.5;
}

/* The largest of |b - A x|, in rounding errors of a system of this order. */
static double residual(void)
{
    double left = 0, size = 0, largest = 0, right = 0;
    double *rest = malloc(n * sizeof *rest), *length = calloc(n, sizeof *length);
    memcpy(rest, b, n * sizeof *rest);
    for (int column = 0; column < n; column++)
        for (int row = 0; row < n; row++) {
            double element = a[row + (size_t)column * n];
            rest[row] -= element * x[column];
            length[row] += fabs(element);
        }
    for (int row = 0; row < n; row++) {
        left = fmax(left, fabs(rest[row]));
        size = fmax(size, length[row]);
        largest = fmax(largest, fabs(x[row]));
        right = fmax(right, fabs(b[row]));
    }
    free(rest);
    free(length);
    return left / (DBL_EPSILON * (size * largest + right) * n);
}

/* Solves once; the time in which the solver ran, seconds. */
static double solve(void)
{
    if (!remote) {
        const int one = 1;
        double began = now();
        memcpy(lu, a, (size_t)n * n * sizeof *lu);
        dgesv_(&n, &one, lu, &n, pivots, x, &n, &info);
        return now() - began;
    }
    grpc_sessionid_t session;
    grpc_session_info_t_np *measured;
    int status;
    check(grpc_call_async(&dgesv, &session, n, 1, a, n, pivots, x, n, &info), "linpack/dgesv");
    check(grpc_wait(session), "linpack/dgesv");
    check(grpc_session_info_get_np(session, &measured, &status), "grpc_session_info_get_np");
    struct timeval ran = measured->gei_measureExecutable.calculationRealTime;
    grpc_session_info_release_np(measured);
    return ran.tv_sec + 1e-6 * ran.tv_usec;
}

static int threads(void)
{
    grpc_function_handle_t function;
    int count;
    if (!remote)
        return openblas_get_num_threads();
    check(grpc_function_handle_default(&function, "linpack/threads"), "linpack/threads");
    check(grpc_call(&function, &count), "linpack/threads");
    grpc_function_handle_destruct(&function);
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 6 || (n = atoi(argv[2])) < 1) {
        fprintf(stderr, "usage: solve local|remote ORDER CALLS SECONDS random|singular\n");
        return 2;
    }
    remote = strcmp(argv[1], "remote") == 0;
    int calls = atoi(argv[3]), singular = strcmp(argv[5], "singular") == 0;
    double least = atof(argv[4]), total = 0;
    if (remote) {
        check(grpc_initialize(NULL), "grpc_initialize");
        check(grpc_function_handle_default(&dgesv, "linpack/dgesv"), "linpack/dgesv");
    }

    size_t elements = (size_t)n * n;
    a = memory(elements * sizeof *a);
    lu = remote ? NULL : memory(elements * sizeof *lu);
    x = memory(n * sizeof *x);
    b = memory(n * sizeof *b);
    pivots = memory(n * sizeof *pivots);
    uint64_t state = 1;
    for (size_t i = 0; i < elements; i++)
        a[i] = singular ? 0 : number(&state);
    for (int i = 0; i < n; i++)
        b[i] = number(&state);

    for (int call = -1; call < calls || (total < least && call < MOST); call++) {
        memcpy(x, b, n * sizeof *x);
        double began = now(), calculation = solve(), seconds = now() - began;
        if (call < 0) {
            printf("{\"threads\": %d}\n", threads());
            fflush(stdout);
            if (getchar() == EOF)
                return 1;
            continue;
        }
        total += seconds;
        printf("{\"seconds\": %.9f, \"calculation\": %.9f, \"info\": %d, \"residual\": %.6g}\n",
               seconds, calculation, info, info ? 0 : residual());
        fflush(stdout);
    }
    if (remote)
        grpc_finalize();
    return 0;
}
