/* What calls ask for beside the place of a worker: attributes of their handle. A server has three
   workers, 8 GB, and 2 of "gpu". */
#include "check.h"

static grpc_handle_attr_t_np attributes(const char *name)
{
    grpc_handle_attr_t_np attr;
    OK(grpc_handle_attr_initialize_np(&attr));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, name));
    return attr;
}

static grpc_function_handle_t made_of(grpc_handle_attr_t_np attr)
{
    grpc_function_handle_t handle;
    OK(grpc_function_handle_init_with_attr_np(&handle, &attr));
    OK(grpc_handle_attr_destruct_np(&attr));
    return handle;
}

static grpc_function_handle_t asking(const char *name, grpc_handle_attr_name_t_np attribute,
                                     const void *value)
{
    grpc_handle_attr_t_np attr = attributes(name);
    OK(grpc_handle_attr_set_np(&attr, attribute, value));
    return made_of(attr);
}

/* A call that waits for a resource begins when another gives it back, and holds up nobody. */
static void counted(grpc_handle_attr_name_t_np attribute, const char *all, const char *part)
{
    grpc_function_handle_t first = asking("cases/obey", attribute, all);
    grpc_function_handle_t second = asking("cases/add", attribute, part);
    grpc_function_handle_t other = function("cases/add");
    grpc_sessionid_t runs, waits;
    int cancelled, three, sum;
    OK(grpc_call_async(&first, &runs, 60.0, &cancelled));
    OK(grpc_call_async(&second, &waits, 1, 2, &three));
    for (int i = 0; i < 50; i++)
        OK(grpc_call(&other, i, i, &sum));
    IS(GRPC_NOT_COMPLETED, grpc_probe(waits));
    OK(grpc_cancel(runs));
    OK(grpc_wait(waits));
    CHECK(three == 3);
    IS(GRPC_SESSION_FAILED, grpc_wait(runs));
    OK(grpc_function_handle_destruct(&first));
    OK(grpc_function_handle_destruct(&second));
    OK(grpc_function_handle_destruct(&other));
}

static void refused(grpc_handle_attr_name_t_np attribute, const void *value, const char *why)
{
    grpc_function_handle_t handle = asking("cases/add", attribute, value);
    int sum;
    IS(GRPC_SERVER_NOT_FOUND, grpc_call(&handle, 1, 2, &sum));
    TELLS(GRPC_SESSIONID_VOID, why);
    OK(grpc_function_handle_destruct(&handle));
}

static void malformed(grpc_handle_attr_name_t_np attribute, const void *value, const char *why)
{
    grpc_handle_attr_t_np attr = attributes("cases/add");
    IS(GRPC_OTHER_ERROR_CODE, grpc_handle_attr_set_np(&attr, attribute, value));
    TELLS(GRPC_SESSIONID_VOID, why);
    OK(grpc_handle_attr_destruct_np(&attr));
}

static void has(grpc_handle_attr_t_np *attr, grpc_handle_attr_name_t_np attribute,
                const char *expected)
{
    void *value;
    OK(grpc_handle_attr_get_np(attr, attribute, &value));
    CHECK(strcmp(value, expected) == 0);
    OK(grpc_handle_attr_release_np(value));
}

static void told_by_handles(void)
{
    int three = 3, minute = 60, sum;
    void *value;
    grpc_handle_attr_t_np attr = attributes("cases/add");
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_CORES, &three));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_MEMORY, "8 GB"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_RESOURCES, "gpu = 2, none=0"));
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_EXPECTED_TIME, &minute));
    has(&attr, GRPC_HANDLE_ATTR_MEMORY, "8 GB");
    grpc_function_handle_t handle = made_of(attr);
    OK(grpc_call(&handle, 1, 2, &sum));
    CHECK(sum == 3);
    OK(grpc_function_handle_get_attr_np(&handle, &attr));
    has(&attr, GRPC_HANDLE_ATTR_MEMORY, "8000000000 B");
    has(&attr, GRPC_HANDLE_ATTR_RESOURCES, "gpu=2");
    OK(grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_CORES, &value));
    CHECK(*(int *)value == 3);
    OK(grpc_handle_attr_release_np(value));
    OK(grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_EXPECTED_TIME, &value));
    CHECK(*(int *)value == 60);
    OK(grpc_handle_attr_release_np(value));
    OK(grpc_function_handle_destruct(&handle));
    handle = made_of(attr);
    OK(grpc_call(&handle, 1, 2, &sum));
    OK(grpc_function_handle_destruct(&handle));

    handle = function("cases/add");
    OK(grpc_function_handle_get_attr_np(&handle, &attr));
    OK(grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_CORES, &value));
    CHECK(*(int *)value == 1);
    OK(grpc_handle_attr_release_np(value));
    for (int name = GRPC_HANDLE_ATTR_MEMORY; name <= GRPC_HANDLE_ATTR_EXPECTED_TIME; name++) {
        OK(grpc_handle_attr_get_np(&attr, (grpc_handle_attr_name_t_np)name, &value));
        CHECK(value == NULL);
    }
    OK(grpc_handle_attr_destruct_np(&attr));
    OK(grpc_function_handle_destruct(&handle));
}

int main(void)
{
    int zero = 0, minus = -1, two = 2, four = 4;
    OK(grpc_initialize(NULL));

    counted(GRPC_HANDLE_ATTR_RESOURCES, "gpu=2", "gpu=1");
    counted(GRPC_HANDLE_ATTR_MEMORY, "5 GB", "3500 MB");
    told_by_handles();

    refused(GRPC_HANDLE_ATTR_CORES, &four, "asks for 4 cores");
    refused(GRPC_HANDLE_ATTR_MEMORY, "9 GB", "asks for 9 GB of memory, which no host has");
    refused(GRPC_HANDLE_ATTR_RESOURCES, "gpu=3", "has 2 of \"gpu\"");
    refused(GRPC_HANDLE_ATTR_RESOURCES, "tpu=1", "asks for 1 of \"tpu\"");

    malformed(GRPC_HANDLE_ATTR_CORES, &zero, "CORES is 0: it has to be at least 1");
    malformed(GRPC_HANDLE_ATTR_EXPECTED_TIME, &minus, "EXPECTED_TIME is -1");
    malformed(GRPC_HANDLE_ATTR_MEMORY, "4", "MEMORY is `4`: give a size such as `4 GB`");
    malformed(GRPC_HANDLE_ATTR_RESOURCES, "gpu", "RESOURCES has `gpu`: write NAME=NUMBER");

    grpc_object_handle_t_np object;
    grpc_handle_attr_t_np attr = attributes("cases/Counter");
    OK(grpc_handle_attr_set_np(&attr, GRPC_HANDLE_ATTR_CORES, &two));
    IS(GRPC_OTHER_ERROR_CODE, grpc_object_handle_init_with_attr_np(&object, &attr));
    TELLS(GRPC_SESSIONID_VOID, "an object has one worker of its own");
    OK(grpc_handle_attr_destruct_np(&attr));

    OK(grpc_finalize());
    return 0;
}
