/* A call that says how long it takes, for jobs of a minute: begun in none that is too short for it. */
#include "check.h"

static grpc_function_handle_t taking(int seconds)
{
    grpc_function_handle_t handle;
    grpc_handle_attr_t_np attr;
    OK(grpc_handle_attr_initialize_np(&attr));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, "cases/add"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_EXPECTED_TIME, &seconds));
    OK(grpc_function_handle_init_with_attr_np(&handle, &attr));
    OK(grpc_handle_attr_destruct_np(&attr));
    return handle;
}

int main(void)
{
    int sum, code;
    double end = now() + 50;
    OK(grpc_initialize(NULL));
    grpc_function_handle_t fits = taking(1), never = taking(120);
    OK(grpc_call(&fits, 1, 2, &sum));
    CHECK(sum == 3);
    /* When the job ends is known as soon as Slurm has been asked what became of it. */
    do
        code = grpc_call(&never, 1, 2, &sum);
    while (code == GRPC_NO_ERROR && now() < end);
    CHECK(code == GRPC_SERVER_NOT_FOUND);
    TELLS(GRPC_SESSIONID_VOID, "asks for 120 s of time, which no host has");
    TELLS(GRPC_SESSIONID_VOID, "has jobs of ");
    OK(grpc_finalize());
    return 0;
}
