#include <grpc.h>

static void parabola(double *x, double *y)
{
    *y = (*x - 2) * (*x - 2);
}

int main(int argc, char *argv[])
{
    grpc_function_handle_t lower, rotate, search;
    /* By columns: l(1,1), l(2,1), l(1,2), l(2,2). */
    double l[] = { 2, 1, 0, 4 }, b[] = { 2, 9 }, best = -1;
    dcomplex z[2] = { { 1, 0 }, { 0, 1 } }, by = { 0, 1 };
    int info = -1;

    if (argc < 2 || grpc_initialize(argv[1])) {
        fprintf(stderr, "cannot read %s\n", argv[1]);
        return 1;
    }
    if (grpc_function_handle_init(&lower, "localhost", "linear/lower") ||
        grpc_function_handle_init(&rotate, "localhost", "linear/rotate") ||
        grpc_function_handle_init(&search, "localhost", "linear/search") ||
        grpc_call(&lower, 2, l, b, &info) || grpc_call(&rotate, 2, z, by) ||
        grpc_call(&search, 9, 0.0, 0.5, parabola, &best)) {
        grpc_perror_np("linear");
        return 1;
    }
    printf("%d %g %g\n", info, b[0], b[1]);
    printf("%g %g %g %g\n", z[0].r, z[0].i, z[1].r, z[1].i);
    printf("%g\n", best);
    return grpc_finalize();
}
