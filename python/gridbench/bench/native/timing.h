/* What programs of the benchmark measure with. */
#ifndef TIMING_H
#define TIMING_H

#include <stdlib.h>
#include <time.h>

/* Seconds, from an arbitrary start. */
static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sorts the values. */
static inline double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

#endif
