/*
 * Calls of native functions from C, for the benchmark. Prints numbers, one a line.
 *
 *   calls null COUNT            median us of a blocking call of a function without arguments
 *   calls touch BYTES COUNT     median s of a call with an array of doubles from malloc
 *   calls touch-shared ...      the same with an array from grpc_malloc_np
 *   calls rate COUNT WINDOW     calls of that function per second, one grpc_call_async and one
 *                               grpc_wait_any for each, WINDOW of them under way
 *   calls sessions COUNT        s for COUNT sessions, all outstanding, and for as many wait_any;
 *                               descriptors open in between; peak memory of this process, bytes
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calling.h"
#include "timing.h"

static void null_calls(int count) {
    grpc_function_handle_t null = handle_of("gridbench_work/null");
    double *times = malloc((size_t)count * sizeof *times);
    for (int i = -count / 10; i < count; i++) {
        double begin = now();
        check(grpc_call(&null), "grpc_call");
        if (i >= 0) times[i] = now() - begin;
    }
    printf("%.9f\n", 1e6 * median(times, count));
    grpc_function_handle_destruct(&null);
}

static void touch(size_t bytes, int count, int shared) {
    grpc_function_handle_t touch = handle_of("gridbench_work/touch");
    long n = (long)(bytes / sizeof(double));
    double *a = shared ? grpc_malloc_np(bytes) : malloc(bytes);
    double *times = malloc((size_t)count * sizeof *times), sum = 0;
    for (long i = 0; i < n; i++) a[i] = 1;
    for (int i = -2; i < count; i++) {
        double begin = now();
        check(grpc_call(&touch, n, a, &sum), "grpc_call");
        if (i >= 0) times[i] = now() - begin;
    }
    if (sum != (double)((n + 511) / 512)) {
        fprintf(stderr, "the sum is %g\n", sum);
        exit(1);
    }
    printf("%.9f\n", median(times, count));
    if (shared) grpc_free_np(a);
    grpc_function_handle_destruct(&touch);
}

static void rate(int count, int window) {
    grpc_function_handle_t null = handle_of("gridbench_work/null");
    grpc_sessionid_t id;
    double begin = 0;
    for (int made = -count / 10, ended = made; ended < count; ended++) {
        if (ended == 0) begin = now();
        for (; made < count && made - ended < window; made++) {
            check(grpc_call_async(&null, &id), "grpc_call_async");
        }
        check(grpc_wait_any(&id), "grpc_wait_any");
    }
    printf("%.9f\n", count / (now() - begin));
    grpc_function_handle_destruct(&null);
}

static int open_files(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count;
}

/* The most memory this process has had, KiB. getrusage(2) would tell that of whoever started it, if
   that had more. */
static long peak_memory(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
    if (status != NULL) fclose(status);
    return kib;
}

static void sessions(int count) {
    grpc_function_handle_t null = handle_of("gridbench_work/null");
    grpc_sessionid_t id;
    check(grpc_call(&null), "grpc_call");
    int before = open_files();
    double begin = now();
    for (int i = 0; i < count; i++) check(grpc_call_async(&null, &id), "grpc_call_async");
    int more = open_files() - before;
    for (int i = 0; i < count; i++) {
        check(grpc_wait_any(&id), "grpc_wait_any");
        if (id == GRPC_SESSIONID_VOID) {
            fprintf(stderr, "only %d of %d sessions came back\n", i, count);
            exit(1);
        }
    }
    printf("%.9f\n%d\n", now() - begin, more);
    printf("%ld\n", peak_memory() * 1024L);
    grpc_function_handle_destruct(&null);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: calls null|rate|touch|touch-shared|sessions NUMBERS\n");
        return 2;
    }
    check(grpc_initialize(NULL), "grpc_initialize");
    if (strcmp(argv[1], "null") == 0) null_calls(atoi(argv[2]));
    else if (strcmp(argv[1], "sessions") == 0) sessions(atoi(argv[2]));
    else if (strcmp(argv[1], "rate") == 0 && argc == 4 && atoi(argv[3]) > 0) {
        rate(atoi(argv[2]), atoi(argv[3]));
    } else if (argc == 4) touch(strtoul(argv[2], NULL, 10), atoi(argv[3]), argv[1][5] == '-');
    check(grpc_finalize(), "grpc_finalize");
    return 0;
}
