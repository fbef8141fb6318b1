/* Errors that a program does not report itself. */
#include "check.h"

int main(int argc, char **argv)
{
    grpc_function_handle_t handle;
    grpc_sessionid_t id;
    CHECK(argc == 2);
    OK(grpc_initialize(argv[1]));
    IS(GRPC_SERVER_NOT_FOUND, grpc_function_handle_init(&handle, "no.such.host", "cases/add"));
    handle = function("cases/leave");
    OK(grpc_call_async(&handle, &id, 7));
    IS(GRPC_SESSION_FAILED, grpc_wait(id));
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&handle, 8));
    OK(grpc_finalize());
    return 0;
}
