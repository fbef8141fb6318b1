/*
 * A task farm in C: pi by random points, on an array of handles.
 *
 *     pi_task_farm [--journal FILE] [CONFIGURATION] [TASKS] [POINTS PER TASK]
 *
 * Each handle works at one task at a time and gets the next one as soon as that has ended. A task
 * that fails is given once more to the same handle; when too many have failed, all is given up.
 *
 * With a journal, results are kept as they come: when the program has been killed, it continues with
 * the tasks that are missing. Those that were under way run again, which pi_trial allows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc.h>

#include "task_journal.h"

enum { HANDLES = 4, ATTEMPTS = 2, MOST_FAILED = 3 };

/* What is under way with one handle. */
struct place {
    grpc_sessionid_t session;
    int task, attempts;
    long count;
};

/* All tasks. */
struct farm {
    int tasks, next, done;
    char *is_done; /* by task */
    long inside;
};

/* Takes a result: a new one, or one of an earlier run, which may have had more tasks. */
static void take(void *context, uint64_t task, const void *result)
{
    struct farm *farm = context;
    int64_t count;
    memcpy(&count, result, sizeof count);
    if (task >= (uint64_t)farm->tasks || farm->is_done[task])
        return;
    farm->is_done[task] = 1;
    farm->done++;
    farm->inside += (long)count;
}

/* The number of a task that is to be begun, or -1. */
static int next_task(struct farm *farm)
{
    while (farm->next < farm->tasks && farm->is_done[farm->next])
        farm->next++;
    return farm->next < farm->tasks ? farm->next++ : -1;
}

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, grpc_error_detail_np(GRPC_SESSIONID_VOID));
    grpc_finalize();
    exit(1);
}

static void begin(grpc_function_handle_t *handle, struct place *place, long points)
{
    place->attempts++;
    if (grpc_call_async(handle, &place->session, place->task, points, &place->count) !=
        GRPC_NO_ERROR)
        give_up("grpc_call_async");
}

static int place_of(const struct place *places, grpc_sessionid_t session)
{
    for (int i = 0; i < HANDLES; i++)
        if (places[i].session == session)
            return i;
    return -1;
}

static int cannot_use(const char *file, const struct task_journal *journal)
{
    fprintf(stderr, "journal %s: %s\n", file, journal->error);
    return 1;
}

int main(int argc, char **argv)
{
    const char *journal_file = NULL;
    if (argc > 2 && strcmp(argv[1], "--journal") == 0) {
        journal_file = argv[2];
        argc -= 2;
        argv += 2;
    }
    const char *configuration = argc > 1 ? argv[1] : NULL;
    int tasks = argc > 2 ? atoi(argv[2]) : 100;
    long points = argc > 3 ? atol(argv[3]) : 1000000;
    grpc_function_handle_t handles[HANDLES];
    struct place places[HANDLES];
    struct task_journal journal;
    struct farm farm = {.tasks = tasks > 0 ? tasks : 0};

    farm.is_done = calloc((size_t)farm.tasks + 1, 1);
    if (farm.is_done == NULL)
        return 1;
    if (journal_file != NULL) {
        char parameters[64];
        snprintf(parameters, sizeof parameters, "pi_trial of %ld points", points);
        if (task_journal_open(&journal, journal_file, parameters, sizeof(int64_t), take, &farm) != 0)
            return cannot_use(journal_file, &journal);
        if (farm.done > 0)
            fprintf(stderr, "journal %s: %d of %d tasks have their results\n", journal_file,
                    farm.done, tasks);
    }

    if (grpc_initialize(configuration) != GRPC_NO_ERROR)
        give_up("grpc_initialize");
    if (grpc_function_handle_array_default_np(handles, HANDLES, "pi/pi_trial") != GRPC_NO_ERROR)
        give_up("grpc_function_handle_array_default_np");

    int failed = 0;
    for (int i = 0; i < HANDLES; i++) {
        places[i] = (struct place){.session = GRPC_SESSIONID_VOID};
        if ((places[i].task = next_task(&farm)) >= 0)
            begin(&handles[i], &places[i], points);
    }
    for (;;) {
        grpc_sessionid_t session;
        grpc_error_t error = grpc_wait_any(&session);
        if (session == GRPC_SESSIONID_VOID)
            break; /* none is left */
        int i = place_of(places, session);
        struct place *place = &places[i];
        if (error != GRPC_NO_ERROR) {
            fprintf(stderr, "task %d: %s\n", place->task, grpc_error_detail_np(session));
            if (place->attempts < ATTEMPTS) {
                begin(&handles[i], place, points);
                continue;
            }
            if (++failed > MOST_FAILED) {
                fprintf(stderr, "too many tasks have failed\n");
                grpc_finalize();
                return 1;
            }
        } else {
            int64_t count = place->count;
            if (journal_file != NULL &&
                task_journal_add(&journal, (uint64_t)place->task, &count) != 0) {
                grpc_finalize();
                return cannot_use(journal_file, &journal);
            }
            take(&farm, (uint64_t)place->task, &count);
        }
        *place = (struct place){.session = GRPC_SESSIONID_VOID};
        if ((place->task = next_task(&farm)) >= 0)
            begin(&handles[i], place, points);
    }

    if (journal_file != NULL && task_journal_close(&journal) != 0)
        return cannot_use(journal_file, &journal);
    if (farm.done > 0)
        printf("pi is about %.6f, by %d tasks of %ld points\n",
               4.0 * (double)farm.inside / ((double)points * farm.done), farm.done, points);
    free(farm.is_done);
    grpc_function_handle_array_destruct_np(handles, HANDLES);
    grpc_finalize();
    return failed ? 1 : 0;
}
