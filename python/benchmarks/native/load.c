/*
 * A client that calls one function again and again, of wherever the environment says.
 *
 *   load calls FUNCTION SECONDS [NUMBER]    calls for so long, with NUMBER as the argument; the function
 *                                           returns the seconds that it took
 *   load first FUNCTION COUNT               s from connecting to the first result; median of COUNT
 *
 * `calls` makes a call, prints `ready`, and waits for a line. Then it calls, and prints JSON: the number
 * of calls, calls that failed, seconds, those inside the function, the longest call, and counts of times by
 * logarithmic buckets (as gridbench.statistics.histogram has them).
 */
#include <math.h>
#include <string.h>

#include "calling.h"
#include "timing.h"

#define BUCKETS 4096
#define ZERO 2560 /* the bucket of 1 s */

/* `taken`: with a number, the seconds inside the function. */
static grpc_error_t call(grpc_function_handle_t *function, int with, double number, double *taken) {
    return with ? grpc_call(function, number, taken) : grpc_call(function);
}

static void calls(const char *name, double seconds, int with, double number) {
    static long counts[BUCKETS];
    long done = 0, failed = 0;
    double longest = 0, taken = 0, inside = 0, begin, end;
    char line[16];
    grpc_function_handle_t function = handle_of(name);
    check(call(&function, with, number, &taken), name);
    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) exit(1);
    begin = end = now();
    while (end - begin < seconds) {
        double before = end;
        grpc_error_t error = call(&function, with, number, &taken);
        end = now();
        if (error != GRPC_NO_ERROR) {
            if (failed++ == 0) fprintf(stderr, "%s: %s\n", name, grpc_error_string(error));
            continue;
        }
        int bucket = ZERO + (int)floor(log(end - before) / log(1.01));
        counts[bucket < 0 ? 0 : bucket < BUCKETS ? bucket : BUCKETS - 1]++;
        if (end - before > longest) longest = end - before;
        inside += taken;
        done++;
    }
    printf("{\"calls\": %ld, \"failed\": %ld, \"seconds\": %.6f, \"inside\": %.6f, \"longest\": %.6f, \"times\": {",
           done, failed, end - begin, inside, longest);
    for (int i = 0, first = 1; i < BUCKETS; i++) {
        if (counts[i] == 0) continue;
        printf("%s\"%d\": %ld", first ? "" : ", ", i - ZERO, counts[i]);
        first = 0;
    }
    printf("}}\n");
    grpc_function_handle_destruct(&function);
}

static void first(const char *name, int count) {
    double *times = malloc((size_t)count * sizeof *times);
    for (int i = 0; i < count; i++) {
        double begin = now();
        check(grpc_initialize(NULL), "grpc_initialize");
        grpc_function_handle_t function = handle_of(name);
        check(grpc_call(&function), name);
        times[i] = now() - begin;
        grpc_function_handle_destruct(&function);
        check(grpc_finalize(), "grpc_finalize");
    }
    printf("%.9f\n", median(times, count));
}

int main(int argc, char **argv) {
    int is_first = argc == 4 && strcmp(argv[1], "first") == 0;
    if (!is_first && (argc < 4 || argc > 5 || strcmp(argv[1], "calls") != 0)) {
        fprintf(stderr, "usage: load calls FUNCTION SECONDS [NUMBER]\n"
                        "       load first FUNCTION COUNT\n");
        return 2;
    }
    if (is_first) {
        first(argv[2], atoi(argv[3]));
        return 0;
    }
    check(grpc_initialize(NULL), "grpc_initialize");
    calls(argv[2], atof(argv[3]), argc == 5, argc == 5 ? atof(argv[4]) : 0);
    check(grpc_finalize(), "grpc_finalize");
    return 0;
}
