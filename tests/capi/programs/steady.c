/* A program that runs for long does not grow. */
#include "check.h"

#include <dirent.h>

static long resident(void)
{
    long size, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages * 4;
}

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

int main(void)
{
    long memory = 0;
    int open = 0;
    static double matrix[100 * 100], product[100 * 100];
    OK(grpc_initialize(NULL));
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 500; i++) {
            grpc_function_handle_t mmul = function("cases/mmul"), leave = function("cases/leave");
            grpc_sessionid_t id;
            OK(grpc_call(&mmul, 10, matrix, matrix, product));
            OK(grpc_call_async(&mmul, &id, 100, matrix, matrix, product));
            OK(grpc_wait(id));
            if (i % 50 == 0)
                IS(GRPC_COMMUNICATION_FAILED, grpc_call(&leave, 1));
            OK(grpc_function_handle_destruct(&mmul));
            OK(grpc_function_handle_destruct(&leave));
        }
        for (int i = 0; i < 5; i++) {
            grpc_object_handle_t_np object;
            int twice;
            OK(grpc_object_handle_default_np(&object, "cases/Plain"));
            OK(grpc_invoke_np(&object, "twice", 1, &twice));
            OK(grpc_object_handle_destruct_np(&object));
        }
        if (round == 2) {
            memory = resident();
            open = descriptors();
        }
    }
    fprintf(stderr, "%ld KiB, then %ld; %d descriptors, then %d\n", memory, resident(), open,
            descriptors());
    CHECK(resident() < memory + 4096);
    CHECK(descriptors() <= open + 8);
    OK(grpc_finalize());
    CHECK(descriptors() < 12);
    return 0;
}
