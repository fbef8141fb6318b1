/* Very many sessions at once. */
#include "check.h"

#include <dirent.h>

#define MANY 100000

static int sums[MANY];
static grpc_sessionid_t ids[MANY];

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* The most memory this process has had, KiB. getrusage(2) would tell that of whoever started it, if
   that had more. */
static long peak_memory(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (status != NULL)
        fclose(status);
    return kib;
}

static void begin_all(grpc_function_handle_t *add, int count)
{
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < count; i++)
        OK(grpc_call_async(add, &ids[i], i, 1, &sums[i]));
}

static void check_all(int count)
{
    for (int i = 0; i < count; i++)
        CHECK(sums[i] == i + 1);
}

int main(void)
{
    grpc_sessionid_t done;
    OK(grpc_initialize(NULL));
    grpc_function_handle_t add = function("cases/add");
    int before = descriptors(), sum;
    OK(grpc_call(&add, 1, 1, &sum));

    double begin = now();
    begin_all(&add, MANY);
    CHECK(descriptors() < before + 20);
    double begun = now();
    for (int i = 0; i < MANY; i++)
        OK(grpc_wait_any(&done));
    OK(grpc_wait_any(&done));
    CHECK(done == GRPC_SESSIONID_VOID);
    check_all(MANY);
    printf("begun in %.2f s, waited for any in %.2f s\n", begun - begin, now() - begun);

    begin = now();
    begin_all(&add, MANY);
    OK(grpc_wait_all());
    check_all(MANY);
    printf("waited for all: %.2f s\n", now() - begin);

    begin = now();
    begin_all(&add, MANY);
    OK(grpc_wait_and(ids, MANY));
    check_all(MANY);
    printf("waited for a list: %.2f s\n", now() - begin);

    /* One after the other out of a list, which gets shorter. */
    begin = now();
    int left = MANY;
    begin_all(&add, MANY);
    while (left > 0) {
        OK(grpc_wait_or(ids, (size_t)left, &done));
        int at = 0;
        while (ids[at] != done)
            at++;
        ids[at] = ids[--left];
    }
    check_all(MANY);
    printf("waited for one of a list: %.2f s\n", now() - begin);

    long memory = peak_memory();
    printf("memory: %ld MiB\n", memory / 1024);
    CHECK(memory > 0 && memory < 600 * 1024);
    OK(grpc_finalize());
    return 0;
}
