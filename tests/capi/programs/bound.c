/* Handles and objects that name servers: `bound FILE NAME...` prints where those of each name run. */
#include "check.h"

enum { CALLS = 6 };

/* Prints where the calls of a handle run, several at once. */
static void calls(const char *name, grpc_function_handle_t *handle)
{
    char *hosts[CALLS];
    grpc_sessionid_t ids[CALLS];
    for (int i = 0; i < CALLS; i++)
        OK(grpc_call_async(handle, &ids[i], &hosts[i]));
    OK(grpc_wait_all());
    for (int i = 0; i < CALLS; i++) {
        printf("%s %s\n", name, hosts[i]);
        free(hosts[i]);
    }
    OK(grpc_function_handle_destruct(handle));
}

int main(int argc, char **argv)
{
    grpc_function_handle_t handle;
    grpc_object_handle_t_np object;
    char *host;

    OK(grpc_initialize(argv[1]));
    for (int i = 2; i < argc; i++) {
        OK(grpc_function_handle_init(&handle, argv[i], "cases/host"));
        calls(argv[i], &handle);
        OK(grpc_object_handle_init_np(&object, argv[i], "cases/Place"));
        OK(grpc_invoke_np(&object, "host", &host));
        printf("%s %s\n", argv[i], host);
        free(host);
        OK(grpc_object_handle_destruct_np(&object));
    }
    OK(grpc_function_handle_default(&handle, "cases/host"));
    calls("default", &handle);
    IS(GRPC_SERVER_NOT_FOUND, grpc_function_handle_init(&handle, "nowhere.invalid", "cases/host"));
    printf("%s\n", grpc_error_detail_np(GRPC_SESSIONID_VOID));
    IS(GRPC_SERVER_NOT_FOUND, grpc_object_handle_init_np(&object, "nowhere.invalid", "cases/Place"));
    OK(grpc_finalize());
    return 0;
}
