/* What the programs of the tests share: checks that say what failed, and where. */
#ifndef CHECK_H
#define CHECK_H

#include <grpc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition,       \
                    grpc_error_detail_np(GRPC_SESSIONID_VOID));                                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* That a call returns this code. */
#define IS(expected, call)                                                                         \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (expected)) {                                                                 \
            fprintf(stderr, "%s:%d: %s returned %d, not %s\n  last error: %s\n", __FILE__,         \
                    __LINE__, #call, code_, #expected, grpc_error_detail_np(GRPC_SESSIONID_VOID)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) IS(GRPC_NO_ERROR, call)

/* That the detail of an error has this in it. */
#define TELLS(session, part)                                                                       \
    do {                                                                                           \
        const char *detail_ = grpc_error_detail_np(session);                                       \
        if (strstr(detail_, part) == NULL) {                                                       \
            fprintf(stderr, "%s:%d: no `%s` in: %s\n", __FILE__, __LINE__, part, detail_);         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void pause_for(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

/* A handle of a function of the module of the tests. */
static inline grpc_function_handle_t function(const char *name)
{
    grpc_function_handle_t handle;
    OK(grpc_function_handle_default(&handle, name));
    return handle;
}

#endif
