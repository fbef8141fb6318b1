/* Does one thing that depends on the configuration: the first argument is the file, the second says
 * what. */
#include "check.h"

#include <signal.h>

static volatile int seen;

static void own_handler(int number)
{
    seen = number;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    grpc_sessionid_t id;
    signal(SIGTERM, own_handler);
    const char *what = argv[2];
    char *text = NULL;
    int sum = 0, one = 1, two = 2;
    grpc_error_t error = grpc_initialize(argv[1]);
    if (error != GRPC_NO_ERROR) {
        printf("%d\n", error);
        fprintf(stderr, "%s\n", grpc_error_detail_np(GRPC_SESSIONID_VOID));
        return 0;
    }
    grpc_function_handle_t handle;
    if (strcmp(what, "variable") == 0) {
        handle = function("cases/variable");
        OK(grpc_call(&handle, argv[3], &text));
        puts(text);
    } else if (strcmp(what, "folder") == 0) {
        handle = function("cases/where");
        OK(grpc_call(&handle, &text));
        puts(text);
    } else if (strcmp(what, "limit") == 0) {
        handle = function("cases/nap");
        printf("%d\n", grpc_call(&handle, 30.0));
    } else if (strcmp(what, "shout") == 0) {
        handle = function("cases/shout");
        OK(grpc_call(&handle, "said\n"));
        pause_for(0.2);
    } else if (strcmp(what, "fortran") == 0) {
        handle = function("cases/add");
        OK(grpc_call(&handle, &one, &two, &sum));
        printf("%d\n", sum);
    } else if (strcmp(what, "session") == 0) {
        handle = function("cases/add");
        OK(grpc_call_async(&handle, &id, 1, 2, &sum));
        OK(grpc_wait(id));
        printf("%d\n", grpc_get_error(id));
    } else if (strcmp(what, "signal") == 0) {
        raise(SIGTERM);
        printf("%d\n", seen);
    } else if (strcmp(what, "file") == 0) {
        handle = function("cases/place_of");
        OK(grpc_call(&handle, argv[1], &text));
        puts(text);
    } else if (strcmp(what, "again") == 0) {
        handle = function("cases/add");
        OK(grpc_call(&handle, 1, 2, &sum));
        OK(grpc_config_file_read_np(argv[3]));
        OK(grpc_call(&handle, 1, 2, &sum));
        handle = function("cases/add");
        OK(grpc_call(&handle, &one, &two, &sum));
        IS(GRPC_CONFIGFILE_ERROR, grpc_config_file_read_np(argv[4]));
        OK(grpc_call(&handle, &one, &two, &sum));
        printf("%d\n", sum);
    } else {
        error = grpc_function_handle_init(&handle, argc > 3 ? argv[3] : NULL, what);
        if (error == GRPC_NO_ERROR)
            error = grpc_call(&handle, 1, 2, &sum);
        printf("%d\n", error);
        fprintf(stderr, "%s\n", grpc_error_detail_np(GRPC_SESSIONID_VOID));
    }
    free(text);
    OK(grpc_finalize());
    return 0;
}
