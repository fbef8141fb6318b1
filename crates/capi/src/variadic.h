/*
 * What stands between the variadic functions, which have to be in C, and the rest, which is Rust.
 *
 * A variadic function cannot know its arguments' types; the interface does. So it asks Rust for one
 * code per argument, takes the arguments by them into slots, and hands those to Rust.
 *
 *   i  int, and everything that is promoted to it      c  float _Complex
 *   l  long, long long, and other 64-bit integers      z  double _Complex
 *   d  double, and float, which is promoted to it      p  an address
 *
 * Every parameter has an argument, WORK parameters too: the point of the original Ninf was that
 * `dgefa(a, lda, n, work)` becomes `Ninf_call("dgefa", a, lda, n, work)` with the same list. The
 * argument for WORK has the code p and is not looked at; NULL will do.
 *
 * With `fortran_compatible true`, all codes are p, and Rust looks behind the addresses.
 *
 * Whatever is declared here stays inside the library.
 */
#ifndef GRIDRPC_VARIADIC_H
#define GRIDRPC_VARIADIC_H

#include "grpc.h"
#include "ninf.h"

#pragma GCC visibility push(hidden)

/* One argument, as it came. Rust has the same layout. */
union gridrpc_slot {
    int i;
    long long l;
    double d;
    float _Complex c;
    double _Complex z;
    void *p;
};

_Static_assert(sizeof(union gridrpc_slot) == 16, "Rust counts on it");

/*
 * All arguments of a call. `codes` is what Rust had given, so that it can tell whether the handle
 * has been made again for another function meanwhile.
 */
struct gridrpc_arguments {
    const unsigned char *codes;
    const union gridrpc_slot *slots;
    size_t count;
};

/*
 * The codes of a function, a method, or a Ninf entry, executable or group. They stay as long as the
 * process. The GridRPC ones return an error code; those of Ninf return 0, or -1.
 */
int gridrpc_parameter_codes(const grpc_function_handle_t *handle, const unsigned char **codes,
                            size_t *count);
int gridrpc_method_codes(const grpc_object_handle_t_np *handle, const char *method_name,
                         const unsigned char **codes, size_t *count);
int gridrpc_entry_codes(const char *entry, const unsigned char **codes, size_t *count);
int gridrpc_executable_codes(const Ninf_executable_t *executable, const unsigned char **codes,
                             size_t *count);
int gridrpc_group_codes(const Ninf_group_t *group, const unsigned char **codes, size_t *count);

/*
 * The calls. `wait`: 1 to wait for the end, 0 to store the session. `attr` may be NULL only where
 * the caller's function has none: with `has_attr` 1 a NULL is the caller's mistake.
 */
int gridrpc_call(grpc_function_handle_t *handle, int has_attr, grpc_session_attr_t_np *attr,
                 int wait, grpc_sessionid_t *session_id, const struct gridrpc_arguments *arguments);
int gridrpc_invoke(grpc_object_handle_t_np *handle, const char *method_name, int has_attr,
                   grpc_session_attr_t_np *attr, int wait, grpc_sessionid_t *session_id,
                   const struct gridrpc_arguments *arguments);

int gridrpc_detach(grpc_function_handle_t *handle, char *id, size_t size,
                   const struct gridrpc_arguments *arguments);
int gridrpc_attach(grpc_function_handle_t *handle, const char *id, grpc_sessionid_t *session_id,
                   const struct gridrpc_arguments *arguments);

/* Those of Ninf return 0 or the session, or -1. */
int gridrpc_entry_call(const char *entry, int wait, const struct gridrpc_arguments *arguments);
int gridrpc_executable_call(Ninf_executable_t *executable, int wait,
                            const struct gridrpc_arguments *arguments);
int gridrpc_group_call(Ninf_group_t *group, const struct gridrpc_arguments *arguments);

/* Notes an error that arose on this side, and returns its code. */
int gridrpc_note_error(int code, const char *detail);

#pragma GCC visibility pop

#endif /* GRIDRPC_VARIADIC_H */
