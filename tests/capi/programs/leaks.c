/* A little of everything, to be watched by a memory checker. */
#include "check.h"

static void cb(double *x, double *y) { *y = *x; }

int main(void)
{
    for (int round = 0; round < 2; round++) {
        OK(grpc_initialize(NULL));
        grpc_function_handle_t add = function("cases/add"), greet = function("cases/greet"),
                               integrate = function("cases/integrate"),
                               leave = function("cases/leave"), nap = function("cases/nap");
        grpc_object_handle_t_np object;
        grpc_sessionid_t ids[20], id;
        int sums[20];
        char *text;
        double sum;
        for (int i = 0; i < 20; i++)
            OK(grpc_call_async(&add, &ids[i], i, i, &sums[i]));
        OK(grpc_wait_and(ids, 10));
        OK(grpc_wait_all());
        OK(grpc_call(&greet, "you", &text));
        free(text);
        OK(grpc_call(&integrate, 10, &sum, cb));
        IS(GRPC_COMMUNICATION_FAILED, grpc_call(&leave, 1));
        OK(grpc_object_handle_default_np(&object, "cases/Plain"));
        OK(grpc_invoke_np(&object, "twice", 1, &sums[0]));
        OK(grpc_object_handle_destruct_np(&object));
        grpc_session_info_t_np *info;
        OK(grpc_session_info_get_np(ids[0], &info, NULL));
        OK(grpc_session_info_release_np(info));
        double *shared = grpc_malloc_np(100000);
        OK(grpc_free_np(shared));
        grpc_arg_stack_destruct(grpc_arg_stack_new(3));
        OK(grpc_call_async(&nap, &id, 60.0));
        OK(grpc_function_handle_destruct(&nap));
        OK(grpc_function_handle_destruct(&add));
        OK(grpc_finalize());
    }
    return 0;
}
