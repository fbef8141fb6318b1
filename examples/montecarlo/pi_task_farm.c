/*
 * A task farm in C: pi by random points, on an array of handles.
 *
 *     pi_task_farm [CONFIGURATION] [TASKS] [POINTS PER TASK]
 *
 * Each handle works at one task at a time and gets the next one as soon as that has ended. A task
 * that fails is given once more to the same handle; when too many have failed, all is given up.
 */
#include <stdio.h>
#include <stdlib.h>

#include <grpc.h>

enum { HANDLES = 4, ATTEMPTS = 2, MOST_FAILED = 3 };

/* What is under way with one handle. */
struct place {
    grpc_sessionid_t session;
    int task, attempts;
    long count;
};

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

int main(int argc, char **argv)
{
    const char *configuration = argc > 1 ? argv[1] : NULL;
    int tasks = argc > 2 ? atoi(argv[2]) : 100;
    long points = argc > 3 ? atol(argv[3]) : 1000000;
    grpc_function_handle_t handles[HANDLES];
    struct place places[HANDLES];

    if (grpc_initialize(configuration) != GRPC_NO_ERROR)
        give_up("grpc_initialize");
    if (grpc_function_handle_array_default_np(handles, HANDLES, "pi/pi_trial") != GRPC_NO_ERROR)
        give_up("grpc_function_handle_array_default_np");

    int begun = 0, failed = 0;
    long inside = 0;
    for (int i = 0; i < HANDLES; i++) {
        places[i] = (struct place){.session = GRPC_SESSIONID_VOID};
        if (begun < tasks) {
            places[i].task = begun++;
            begin(&handles[i], &places[i], points);
        }
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
            inside += place->count;
        }
        *place = (struct place){.session = GRPC_SESSIONID_VOID};
        if (begun < tasks) {
            place->task = begun++;
            begin(&handles[i], place, points);
        }
    }

    int done = tasks - failed;
    if (done > 0)
        printf("pi is about %.6f, by %d tasks of %ld points\n",
               4.0 * (double)inside / ((double)points * done), done, points);
    grpc_function_handle_array_destruct_np(handles, HANDLES);
    grpc_finalize();
    return failed ? 1 : 0;
}
