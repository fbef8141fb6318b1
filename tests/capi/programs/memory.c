/* Calls on workers of this machine ask for memory that it has, and for more than that. */
#include "check.h"

static grpc_function_handle_t with_memory(const char *size)
{
    grpc_function_handle_t handle;
    grpc_handle_attr_t_np attr;
    OK(grpc_handle_attr_initialize_np(&attr));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, "cases/add"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_MEMORY, size));
    OK(grpc_function_handle_init_with_attr_np(&handle, &attr));
    OK(grpc_handle_attr_destruct_np(&attr));
    return handle;
}

int main(void)
{
    int sum;
    OK(grpc_initialize(NULL));
    grpc_function_handle_t little = with_memory("1 MB"), much = with_memory("1000 TB");
    OK(grpc_call(&little, 1, 2, &sum));
    CHECK(sum == 3);
    IS(GRPC_SERVER_NOT_FOUND, grpc_call(&much, 1, 2, &sum));
    TELLS(GRPC_SESSIONID_VOID, "asks for 1000 TB of memory, which no host has: \"localhost\" has ");
    OK(grpc_finalize());
    return 0;
}
