/*
 * Calls from C to wherever the environment says. Prints the median.
 *
 *   far null COUNT            us of a blocking call of a function without arguments
 *   far arrive BYTES COUNT    s of a call with bytes that no compressor makes shorter
 *   far change BYTES COUNT    the same, and they come back
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calling.h"
#include "timing.h"

static double null_calls(int count) {
    grpc_function_handle_t null = handle_of("gridbench_hosts/null");
    double *times = malloc((size_t)count * sizeof *times);
    for (int i = -count / 10 - 1; i < count; i++) {
        double begin = now();
        check(grpc_call(&null), "grpc_call");
        if (i >= 0) times[i] = now() - begin;
    }
    grpc_function_handle_destruct(&null);
    return 1e6 * median(times, count);
}

static double arrays(const char *name, int back, size_t bytes, int count) {
    grpc_function_handle_t function = handle_of(name);
    char *a = malloc(bytes);
    double *times = malloc((size_t)count * sizeof *times);
    unsigned long state = 88172645463325252u;
    long sum = 0, expected = 0, calls = 0;
    for (size_t i = 0; i < bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        a[i] = (char)state;
        if (i % 4096 == 0) expected += a[i];
    }
    char before = a[0];
    for (int i = -count / 10 - 1; i < count; i++, calls++) {
        double begin = now();
        grpc_error_t error = back ? grpc_call(&function, (long)bytes, a) : grpc_call(&function, (long)bytes, a, &sum);
        check(error, "grpc_call");
        if (i >= 0) times[i] = now() - begin;
    }
    if (back && a[0] != (char)(before + calls)) {
        fprintf(stderr, "the bytes that came back are wrong\n");
        exit(1);
    }
    if (!back && sum != expected) {
        fprintf(stderr, "the sum is %ld, not %ld\n", sum, expected);
        exit(1);
    }
    grpc_function_handle_destruct(&function);
    return median(times, count);
}

int main(int argc, char **argv) {
    int null = argc == 3 && strcmp(argv[1], "null") == 0;
    int back = argc == 4 && strcmp(argv[1], "change") == 0;
    int count = null ? atoi(argv[2]) : argc == 4 ? atoi(argv[3]) : 0;
    if (count < 1) {
        fprintf(stderr, "usage: far null COUNT\n       far arrive|change BYTES COUNT\n");
        return 2;
    }
    check(grpc_initialize(NULL), "grpc_initialize");
    const char *name = back ? "gridbench_hosts/change" : "gridbench_hosts/arrive";
    printf("%.9f\n", null ? null_calls(count) : arrays(name, back, strtoul(argv[2], NULL, 10), count));
    check(grpc_finalize(), "grpc_finalize");
    return 0;
}
