/* What programs of the benchmark call functions with: every error ends them. */
#ifndef CALLING_H
#define CALLING_H

#include <grpc.h>
#include <stdio.h>
#include <stdlib.h>

static void check(grpc_error_t error, const char *what) {
    if (error == GRPC_NO_ERROR) return;
    fprintf(stderr, "%s: %s\n", what, grpc_error_string(error));
    grpc_perror_np(what);
    exit(1);
}

static grpc_function_handle_t handle_of(const char *name) {
    grpc_function_handle_t handle;
    check(grpc_function_handle_default(&handle, name), name);
    return handle;
}

#endif
