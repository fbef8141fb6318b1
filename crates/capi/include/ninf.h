/*
 * ninf.h: the calls of the original Ninf, in terms of the GridRPC API.
 *
 *   #include <ninf.h>
 *   if (Ninf_call("sample/mmul", n, a, b, c) < 0)
 *       Ninf_perror("mmul");
 *
 * There is nothing to initialise: the first call reads the configuration as grpc_initialize(NULL)
 * does. A program may use both APIs; sessions have the same numbers in both.
 *
 * An entry is "module/function", a bare "function", or "ninf://host:port/module/function". Without
 * a host it is the default server: that of Ninf_set_server, Ninf_parse_arg, $NINF_SERVER, or the
 * configuration, in this order.
 *
 * Functions return 0 or the requested value, and -1 for an error, which Ninf_perror prints.
 *
 * In a transaction, calls run at once and one after the other. What they leave in the caller's
 * memory at its end is what Ninf's metaserver would have left there, which ran them in parallel as
 * far as they did not depend on each other.
 */
#ifndef GRIDRPC_NINF_H
#define GRIDRPC_NINF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types and codes ------------------------------------------------------------------------- */

enum ninf_results {
    NINF_OK = 0,
    NINF_ERROR = -1
};

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

/* An entry that has been found, for many calls. */
typedef struct ninf_executable_s Ninf_executable_t;

/* Many calls of one entry that are waited for together. */
typedef struct ninf_group_s Ninf_group_t;

/* How a session went. Times are in seconds; those that are not known yet are 0. */
typedef struct ninf_info_s {
    int session;                   /* its number */
    int ended;                     /* 1 if it has ended */
    int error;                     /* a code of grpc.h; 0 if it went well, or still runs */
    double wait_time;              /* from the call until it ran */
    double argument_time;          /* for handing over the arguments */
    double run_time;               /* for the function itself */
    double result_time;            /* for handing back the results */
    double total_time;             /* from the call until its end */
    unsigned long long bytes_sent; /* size of the arguments */
    unsigned long long bytes_received; /* size of the results */
    char host[256];                /* where it ran, ended by a 0 */
} Ninf_info;

/* ---- Which server ---------------------------------------------------------------------------- */

/* Sets the default server. The port, a text, is taken for old programs' sake, without effect. */
int Ninf_set_server(const char *host, const char *port);

/* Takes `-server HOST` and `-port PORT` out of the arguments and returns how many are left. */
int Ninf_parse_arg(int argc, char **argv);

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Calls an entry and waits for its end. Arguments are as in grpc_call. */
int Ninf_call(const char *entry, ...);

/* Begins a call and returns its session, 0 or greater. */
int Ninf_call_async(const char *entry, ...);

/* Ninf_call with an array of addresses, one per parameter, as in grpc_arg_stack_push_arg. */
int Ninf_call_v(const char *entry, size_t nargs, void **args);

/* Ninf_call_async with an array of addresses. */
int Ninf_call_v_async(const char *entry, size_t nargs, void **args);

/* ---- Entries for many calls ------------------------------------------------------------------ */

/* Finds an entry, to be given up with Ninf_executable_finalize; NULL if there is none such. */
Ninf_executable_t *Ninf_get_executable(const char *entry);

/* Calls it and waits for its end. */
int Ninf_call_executable(Ninf_executable_t *executable, ...);

/* Begins a call of it and returns its session. */
int Ninf_call_executable_async(Ninf_executable_t *executable, ...);

/* Gives it up, and cancels its sessions that still run. */
int Ninf_executable_finalize(Ninf_executable_t *executable);

/* ---- Groups: many calls of one entry --------------------------------------------------------- */

/* Makes a group for an entry, to be given up with Ninf_group_finalize; NULL if there is none such. */
Ninf_group_t *Ninf_group_init(const char *entry);

/* Begins a call in the group and returns its session. */
int Ninf_group_call_async(Ninf_group_t *group, ...);

/* Waits for all calls of the group; -1 if any failed. The group can be used again. */
int Ninf_group_wait_all(Ninf_group_t *group);

/* Gives the group up, and cancels its sessions that still run. */
int Ninf_group_finalize(Ninf_group_t *group);

/* ---- Transactions ---------------------------------------------------------------------------- */

/* Begins a transaction; -1 if one has begun already. */
int Ninf_transaction_begin(void);

/* Waits for all sessions that were begun in the transaction, and ends it; -1 if any of its calls
   failed, or if none has begun. */
int Ninf_transaction_end(void);

/* Their older names. */
#define Ninf_check_in Ninf_transaction_begin
#define Ninf_check_out Ninf_transaction_end

/* ---- Sessions -------------------------------------------------------------------------------- */

/* Waits for a session; -1 if it failed. */
int Ninf_wait(int session);

/* Waits for all sessions that were not waited for; -1 if any failed. */
int Ninf_wait_all(void);

/* Waits for any of them and stores which, or -1 if there is none. */
int Ninf_wait_any(int *session);

/* Waits for all `n` sessions; -1 if any failed. Numbers that are no session are passed over. */
int Ninf_wait_and(const int *sessions, int n);

/* Waits until one of `n` sessions has ended, and returns which; -1 if none of them is a session.
   Numbers that are no session are passed over. */
int Ninf_wait_or(const int *sessions, int n);

/* Returns TRUE while the session is alive, and FALSE when it has ended. grpc_probe says the
   opposite. */
int Ninf_session_probe(int session);

/* Asks a session to end, and does not wait for that. */
int Ninf_session_cancel(int session);

/* Forgets a session that has ended. */
int Ninf_session_remove(int session);

/* Returns how a session went: the library's own, until the next such call in this thread. */
const Ninf_info *Ninf_get_info(int session);

/* The same for the session that ended last; NULL if none has. */
const Ninf_info *Ninf_get_last_info(void);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Prints "TEXT: the last error of this thread" to standard error. */
void Ninf_perror(const char *text);

/* Returns that error as a text, to be read only and never freed. */
char *Ninf_perror_string(void);

#ifdef __cplusplus
}
#endif

#endif /* GRIDRPC_NINF_H */
