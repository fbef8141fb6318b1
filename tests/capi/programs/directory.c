/* Calls of functions whose servers a directory chooses: directory SERVER FUNCTION, with a line of the
   standard input for each step: `call` prints the process that has started the worker, `scale` computes,
   `async` makes calls at once, `ninf` uses the original Ninf, `detach` prints what happens. */
#include "check.h"

#include <ninf.h>

enum { CALLS = 8, LENGTH = 1000 };

static grpc_function_handle_t handle;

static void call(void)
{
    long parent = 0;
    int code = grpc_call(&handle, 4, &parent);
    if (code == GRPC_NO_ERROR)
        printf("%ld\n", parent);
    else
        printf("error %d: %s\n", code, grpc_error_detail_np(GRPC_SESSIONID_VOID));
}

static void async(void)
{
    grpc_sessionid_t ids[CALLS];
    long parents[CALLS] = {0};
    for (int i = 0; i < CALLS; i++)
        OK(grpc_call_async(&handle, &ids[i], 4, &parents[i]));
    OK(grpc_wait_all());
    for (int i = 0; i < CALLS; i++)
        CHECK(parents[i] > 0);
    printf("done\n");
}

static void scale(const char *server)
{
    static double x[LENGTH];
    grpc_function_handle_t other;
    OK(grpc_function_handle_init(&other, (char *)server, "where/scale"));
    for (int i = 0; i < LENGTH; i++)
        x[i] = i;
    OK(grpc_call(&other, LENGTH, 10.0, x));
    for (int i = 0; i < LENGTH; i++)
        CHECK(x[i] == 10.0 * i);
    OK(grpc_function_handle_destruct(&other));
    printf("done\n");
}

int main(int argc, char **argv)
{
    char line[100];
    CHECK(argc == 3);
    OK(grpc_initialize(NULL));
    int code = argv[1][0] ? grpc_function_handle_init(&handle, argv[1], argv[2])
                          : grpc_function_handle_default(&handle, argv[2]);
    if (code != GRPC_NO_ERROR) {
        printf("error %d: %s\n", code, grpc_error_detail_np(GRPC_SESSIONID_VOID));
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "call")) {
            call();
        } else if (!strcmp(line, "async")) {
            async();
        } else if (!strcmp(line, "scale")) {
            scale(argv[1]);
        } else if (!strcmp(line, "ninf")) {
            long parent = 0;
            int result = Ninf_call(argv[2], 4, &parent);
            printf("%ld\n", result ? -1 : parent);
        } else {
            char id[GRPC_DETACHED_ID_SIZE_NP];
            long parent;
            int detached = grpc_detach_np(&handle, id, sizeof id, 4, &parent);
            printf("error %d: %s\n", detached, grpc_error_detail_np(GRPC_SESSIONID_VOID));
        }
    }
    OK(grpc_function_handle_destruct(&handle));
    OK(grpc_finalize());
    return 0;
}
