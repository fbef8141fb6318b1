/*
 * The ensemble as a task farm in C.
 *
 *     farm_c [CONFIGURATION] [MEMBERS] [DAYS]
 *
 * Each handle forecasts one member at a time and gets the next one as soon as that has ended. A
 * member that fails is reported; the mean and the spread are those of the others.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <grpc.h>

enum { HANDLES = 4, TRUNCATION = 20, SIZE = (TRUNCATION + 1) * (TRUNCATION + 1), TEXT = 160 };

/* What is under way with one handle. */
struct place {
    grpc_sessionid_t session;
    int member, status;
    char message[TEXT];
};

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, grpc_error_detail_np(GRPC_SESSIONID_VOID));
    grpc_finalize();
    exit(1);
}

/* The standard deviation of the vorticity over members and the sphere. A state begins with the
 * coefficients that are real; all others count twice, for the waves in both directions. */
static double spread(int members, int frames, double *states, const char *has_state)
{
    double sum = 0;
    int count = 0;
    for (int m = 0; m < members; m++)
        count += has_state[m];
    for (int i = 0; i < SIZE; i++) {
        double mean = 0, squares = 0;
        for (int m = 0; m < members; m++)
            if (has_state[m])
                mean += states[((size_t)m * frames + frames - 1) * SIZE + i] / count;
        for (int m = 0; m < members; m++)
            if (has_state[m])
                squares += pow(states[((size_t)m * frames + frames - 1) * SIZE + i] - mean, 2);
        sum += (i <= TRUNCATION ? 1 : 2) * squares / count;
    }
    return sqrt(sum);
}

int main(int argc, char **argv)
{
    const char *configuration = argc > 1 ? argv[1] : NULL;
    int members = argc > 2 ? atoi(argv[2]) : 20;
    int days = argc > 3 ? atoi(argv[3]) : 10;
    int frames = 4 * days;
    if (members < 1 || days < 1 || days > 10000) {
        fprintf(stderr, "members and days have to be 1 or more, and days 10000 at most\n");
        return 1;
    }
    double(*initial)[SIZE] = malloc(members * sizeof *initial);
    double *states = malloc(sizeof(double) * members * frames * SIZE);
    char *has_state = calloc(members, 1);
    if (initial == NULL || states == NULL || has_state == NULL) {
        fprintf(stderr, "not enough memory for %d members of %d days\n", members, days);
        return 1;
    }

    grpc_function_handle_t perturb, handles[HANDLES];
    struct place places[HANDLES] = {{.member = 0}};
    if (grpc_initialize(configuration) != GRPC_NO_ERROR)
        give_up("grpc_initialize");
    if (grpc_function_handle_default(&perturb, "ensemble/initial_state") != GRPC_NO_ERROR ||
        grpc_function_handle_array_default_np(handles, HANDLES, "ensemble/forecast") !=
            GRPC_NO_ERROR)
        give_up("ensemble");
    for (int m = 0; m < members; m++)
        if (grpc_call(&perturb, TRUNCATION, m, 1.0, initial[m]) != GRPC_NO_ERROR)
            give_up("ensemble/initial_state");

    int next = 0, complete = 0;
    for (int i = 0; i < HANDLES; i++)
        places[i].session = GRPC_SESSIONID_VOID;
    grpc_sessionid_t ended = GRPC_SESSIONID_VOID;
    do {
        for (int i = 0; i < HANDLES; i++) {
            struct place *place = &places[i];
            if (place->session != ended || next == members)
                continue;
            place->member = next++;
            if (grpc_call_async(&handles[i], &place->session, TRUNCATION, frames, "settings.nml",
                                initial[place->member],
                                states + (size_t)place->member * frames * SIZE, &place->status,
                                place->message) != GRPC_NO_ERROR)
                give_up("ensemble/forecast");
        }
        grpc_error_t error = grpc_wait_any(&ended);
        for (int i = 0; i < HANDLES && ended != GRPC_SESSIONID_VOID; i++) {
            struct place *place = &places[i];
            if (place->session != ended)
                continue;
            if (error != GRPC_NO_ERROR)
                fprintf(stderr, "member %d: %s\n", place->member, grpc_error_detail_np(ended));
            else if (place->status != 0)
                fprintf(stderr, "member %d: %.*s\n", place->member, TEXT, place->message);
            else
                complete += has_state[place->member] = 1;
        }
    } while (ended != GRPC_SESSIONID_VOID);

    printf("%d of %d members, day %d: the spread of the vorticity is %.3e /s\n", complete, members,
           days, complete ? spread(members, frames, states, has_state) : NAN);
    grpc_function_handle_array_destruct_np(handles, HANDLES);
    grpc_function_handle_destruct(&perturb);
    grpc_finalize();
    free(initial);
    free(states);
    free(has_state);
    return complete < members;
}
