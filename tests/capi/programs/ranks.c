/* A function that runs on ranks of MPI: how many is an attribute of its handle. */
#include "check.h"

static grpc_function_handle_t with_ranks(int ranks, const char *name)
{
    grpc_function_handle_t handle;
    grpc_handle_attr_t_np attr;
    OK(grpc_handle_attr_initialize_np(&attr));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, name));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_MPI_NCPUS, &ranks));
    OK(grpc_function_handle_init_with_attr_np(&handle, &attr));
    OK(grpc_handle_attr_destruct_np(&attr));
    return handle;
}

int main(int argc, char **argv)
{
    double x[4] = { 1, 2, 3, 4 }, total;
    long where[2];
    OK(grpc_initialize(argc > 1 ? argv[1] : NULL));

    grpc_function_handle_t sum = with_ranks(2, "ranks/sum");
    OK(grpc_call(&sum, 4, x, &total, where));
    CHECK(total == 10 && where[0] == 2);
    OK(grpc_function_handle_destruct(&sum));

    /* What the configuration says of a function holds unless the handle says something. */
    OK(grpc_function_handle_default(&sum, "ranks/sum"));
    OK(grpc_call(&sum, 4, x, &total, where));
    CHECK(total == 10 && where[0] == (argc > 1 ? 2 : 1));
    OK(grpc_function_handle_destruct(&sum));

    /* Each rank has as many threads as its call asks for cores. */
    int two = 2, threads;
    grpc_handle_attr_t_np attr;
    grpc_function_handle_t wide;
    OK(grpc_handle_attr_initialize_np(&attr));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, "ranks/threads"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_CORES, &two));
    OK(grpc_function_handle_init_with_attr_np(&wide, &attr));
    OK(grpc_call(&wide, &threads));
    CHECK(threads == 2);
    OK(grpc_function_handle_destruct(&wide));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_MPI_NCPUS, &two));
    OK(grpc_function_handle_init_with_attr_np(&wide, &attr));
    IS(GRPC_SERVER_NOT_FOUND, grpc_call(&wide, &threads));
    TELLS(GRPC_SESSIONID_VOID, "asks for 4 cores");
    OK(grpc_function_handle_destruct(&wide));
    OK(grpc_handle_attr_destruct_np(&attr));

    grpc_function_handle_t ends = with_ranks(2, "ranks/end_badly");
    IS(GRPC_COMMUNICATION_FAILED, grpc_call(&ends, 0));
    TELLS(GRPC_SESSIONID_VOID, "ended with status 7");
    TELLS(GRPC_SESSIONID_VOID, "the last words of rank 1");
    OK(grpc_function_handle_destruct(&ends));

    int n;
    grpc_function_handle_t alone = with_ranks(2, "ranks/alone");
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&alone, &n));
    TELLS(GRPC_SESSIONID_VOID, "is not declared with Backend \"MPI\"");
    OK(grpc_function_handle_destruct(&alone));

    OK(grpc_finalize());
    return 0;
}
