/* Detaches calls and prints their ids, or attaches to one and prints its result. */
#include <grpc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N 5

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, grpc_error_string(grpc_last_error_get_np()),
            grpc_error_detail_np(GRPC_SESSIONID_VOID));
    return 1;
}

static int print(grpc_sessionid_t session, const double *y)
{
    grpc_error_t error = grpc_wait(session);
    if (error != GRPC_NO_ERROR) {
        printf("%s: %s\n", grpc_error_string(error), grpc_error_detail_np(session));
        return 0;
    }
    for (int i = 0; i < N; i++)
        printf("%g%c", y[i], i < N - 1 ? ' ' : '\n');
    return 0;
}

int main(int argc, char **argv)
{
    grpc_function_handle_t scale, wait, held;
    grpc_sessionid_t session = GRPC_SESSIONID_VOID;
    char id[GRPC_DETACHED_ID_SIZE_NP];
    double x[N] = {1, 2, 3, 4, 5}, y[N] = {0};
    if (argc < 3)
        return 2;
    if (grpc_initialize(NULL) || grpc_function_handle_default(&scale, "stored/scale")
        || grpc_function_handle_default(&wait, "stored/wait")
        || grpc_function_handle_default(&held, "stored/held"))
        return fail("handles");
    if (!strcmp(argv[1], "detach")) {
        if (grpc_detach_np(&scale, id, sizeof id, (long long)N, 2.0, x, y))
            return fail("detach");
        printf("%s\n", id);
        grpc_arg_stack_t *stack = grpc_arg_stack_new(1);
        char *gate = argv[2];
        grpc_arg_stack_push_arg(stack, gate);
        if (grpc_detach_arg_stack_np(&wait, id, sizeof id, stack))
            return fail("detach with a stack");
        printf("%s\n", id);
        if (grpc_detach_np(&scale, id, 10, (long long)N, 2.0, x, y) == GRPC_NO_ERROR)
            return 3;
        printf("%s\n", grpc_error_detail_np(GRPC_SESSIONID_VOID));
    } else if (!strcmp(argv[1], "leave") && argc == 4) {
        if (grpc_call_async(&held, &session, argv[2], argv[3], (long long)N, x))
            return fail("held");
        while (access(argv[2], F_OK))
            usleep(1000);
        for (int i = 0; i < 2; i++) {
            if (grpc_detach_session_np(session, id, sizeof id))
                return fail("detach what runs");
            printf("%s\n", id);
        }
        if (grpc_call_async(&scale, &session, (long long)N, 2.0, x, y) || grpc_wait(session))
            return fail("scale");
        if (grpc_detach_session_np(session, id, sizeof id) == GRPC_NO_ERROR)
            return 3;
        printf("%s\n", grpc_error_detail_np(GRPC_SESSIONID_VOID));
    } else if (!strcmp(argv[1], "take") && argc == 5) {
        if (grpc_attach_np(&held, argv[2], &session, argv[3], argv[4], (long long)N, x))
            return fail("attach to what ran");
        return print(session, x);
    } else if (!strcmp(argv[1], "attach")) {
        grpc_error_t error =
            grpc_attach_np(&scale, argv[2], &session, (long long)N, 2.0, x, y);
        if (error != GRPC_NO_ERROR) {
            printf("%s\n", grpc_error_string(error));
            return session != GRPC_SESSIONID_VOID;
        }
        return print(session, y);
    } else {
        if (grpc_attach_np(&wait, argv[2], &session, "") != GRPC_NO_ERROR)
            return fail("attach");
        if (grpc_cancel(session) != GRPC_NO_ERROR)
            return fail("cancel");
        return print(session, y);
    }
    grpc_finalize();
    return 0;
}
