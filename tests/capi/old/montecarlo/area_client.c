/* In the style of Ninf-G 5: all else comes with grpc.h. */
#include "grpc.h"

#define NUM_HANDLES 3

int main(int argc, char *argv[])
{
    grpc_function_handle_t handles[NUM_HANDLES];
    grpc_sessionid_t ids[NUM_HANDLES];
    grpc_error_t result;
    long counts[NUM_HANDLES], times, sum = 0;
    int i;

    if (argc < 3) {
        fprintf(stderr, "usage: %s config_file times\n", argv[0]);
        exit(2);
    }
    times = atol(argv[2]);
    result = grpc_initialize(argv[1]);
    if (result != GRPC_NO_ERROR) {
        fprintf(stderr, "grpc_initialize: %s\n", grpc_error_string(result));
        exit(2);
    }
    for (i = 0; i < NUM_HANDLES; i++) {
        result = grpc_function_handle_default(&handles[i], i % 2 ? "area/trial" : "area/trials");
        assert(result == GRPC_NO_ERROR);
    }
    for (i = 0; i < NUM_HANDLES; i++) {
        result = grpc_call_async(&handles[i], &ids[i], i, times, &counts[i]);
        if (result != GRPC_NO_ERROR) {
            fprintf(stderr, "grpc_call_async: %s\n", grpc_error_string(result));
            exit(2);
        }
    }
    result = grpc_wait_all();
    assert(result == GRPC_NO_ERROR);
    for (i = 0; i < NUM_HANDLES; i++) {
        sum += counts[i];
        grpc_function_handle_destruct(&handles[i]);
    }
    printf("PI = %f\n", 4.0 * sum / (times * 100 * NUM_HANDLES));
    grpc_finalize();
    return strlen(argv[0]) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
