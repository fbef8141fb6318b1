/*
 * Does the C part take every argument of a call as it was given? The Rust part is played here: it
 * gives codes and looks at the slots.
 */
#include "../../crates/capi/src/variadic.c"

#include <assert.h>
#include <complex.h>
#include <stdint.h>
#include <stdio.h>

static unsigned char codes[1001];
static size_t count;
static int errors_noted;
static void (*check)(const union gridrpc_slot *slots);

static void set_codes(const char *text)
{
    count = strlen(text);
    memcpy(codes, text, count);
}

static int give(const unsigned char **into, size_t *n)
{
    *into = codes;
    *n = count;
    return 0;
}

static int look(const struct gridrpc_arguments *arguments)
{
    assert(arguments->codes == codes && arguments->count == count);
    check(arguments->slots);
    return 0;
}

int gridrpc_parameter_codes(const grpc_function_handle_t *handle, const unsigned char **into,
                            size_t *n)
{
    return handle == NULL ? GRPC_INVALID_FUNCTION_HANDLE : give(into, n);
}

int gridrpc_method_codes(const grpc_object_handle_t_np *handle, const char *method_name,
                         const unsigned char **into, size_t *n)
{
    (void)handle;
    assert(strcmp(method_name, "method") == 0);
    return give(into, n);
}

int gridrpc_entry_codes(const char *entry, const unsigned char **into, size_t *n)
{
    assert(strcmp(entry, "entry") == 0);
    return give(into, n);
}

int gridrpc_executable_codes(const Ninf_executable_t *executable, const unsigned char **into,
                             size_t *n)
{
    return executable == NULL ? -1 : give(into, n);
}

int gridrpc_group_codes(const Ninf_group_t *group, const unsigned char **into, size_t *n)
{
    return group == NULL ? -1 : give(into, n);
}

int gridrpc_call(grpc_function_handle_t *handle, int has_attr, grpc_session_attr_t_np *attr,
                 int wait, grpc_sessionid_t *session_id, const struct gridrpc_arguments *arguments)
{
    assert(handle != NULL && wait == (session_id == NULL) && has_attr == (attr != NULL));
    return look(arguments);
}

int gridrpc_invoke(grpc_object_handle_t_np *handle, const char *method_name, int has_attr,
                   grpc_session_attr_t_np *attr, int wait, grpc_sessionid_t *session_id,
                   const struct gridrpc_arguments *arguments)
{
    assert(handle != NULL && method_name != NULL);
    assert(wait == (session_id == NULL) && has_attr == (attr != NULL));
    return look(arguments);
}

int gridrpc_detach(grpc_function_handle_t *handle, char *id, size_t size,
                   const struct gridrpc_arguments *arguments)
{
    assert(handle != NULL && id != NULL && size == 8);
    return look(arguments);
}

int gridrpc_attach(grpc_function_handle_t *handle, const char *id, grpc_sessionid_t *session_id,
                   const struct gridrpc_arguments *arguments)
{
    assert(handle != NULL && strcmp(id, "call-id") == 0 && session_id != NULL);
    return look(arguments);
}

int gridrpc_entry_call(const char *entry, int wait, const struct gridrpc_arguments *arguments)
{
    assert(entry != NULL);
    look(arguments);
    return wait ? 0 : 42;
}

int gridrpc_executable_call(Ninf_executable_t *executable, int wait,
                            const struct gridrpc_arguments *arguments)
{
    assert(executable != NULL);
    look(arguments);
    return wait ? 0 : 42;
}

int gridrpc_group_call(Ninf_group_t *group, const struct gridrpc_arguments *arguments)
{
    assert(group != NULL);
    look(arguments);
    return 42;
}

int gridrpc_note_error(int code, const char *detail)
{
    assert(*detail != 0);
    errors_noted++;
    return code;
}

static int target;

static void check_kinds(const union gridrpc_slot *s)
{
    assert(s[0].i == 'x' && s[1].i == -2 && s[2].i == INT32_MIN);
    assert(s[3].l == INT64_MIN && (uint64_t)s[4].l == UINT64_MAX);
    assert(s[5].d == 0.5 && s[6].d == -1e300);
    assert(crealf(s[7].c) == 1 && cimagf(s[7].c) == -2);
    assert(creal(s[8].z) == 3 && cimag(s[8].z) == -4);
    assert(s[9].p == &target && s[10].p == NULL);
}

/* One argument of every kind, as C promotes it. */
#define KINDS                                                                                      \
    (char)'x', (short)-2, INT32_MIN, INT64_MIN, UINT64_MAX, 0.5f, -1e300,                          \
        1.0f - 2.0f * _Complex_I, 3.0 - 4.0 * _Complex_I, (void *)&target, NULL

static void check_many(const union gridrpc_slot *s)
{
    for (size_t i = 0; i < count; i++)
        assert(s[i].i == (int)i);
}

#define TEN(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9

static void check_mixed(const union gridrpc_slot *s)
{
    /* More of each than registers hold. */
    for (int i = 0; i < 12; i++)
        assert(s[2 * i].i == i && s[2 * i + 1].d == i + 0.5);
}

#define PAIR(n) n, n + 0.5

static void check_none(const union gridrpc_slot *s)
{
    (void)s;
}

int main(void)
{
    grpc_function_handle_t handle;
    grpc_object_handle_t_np object;
    grpc_session_attr_t_np attr;
    grpc_sessionid_t id;
    char call_id[8] = "call-id";
    Ninf_executable_t *executable = (Ninf_executable_t *)&target;
    Ninf_group_t *group = (Ninf_group_t *)&target;

    set_codes("iiilldd"
              "czpp");
    check = check_kinds;
    assert(grpc_call(&handle, KINDS) == 0);
    assert(grpc_call_async(&handle, &id, KINDS) == 0);
    assert(grpc_call_with_attr_np(&handle, &attr, KINDS) == 0);
    assert(grpc_call_async_with_attr_np(&handle, &id, &attr, KINDS) == 0);
    assert(grpc_detach_np(&handle, call_id, sizeof call_id, KINDS) == 0);
    assert(grpc_attach_np(&handle, call_id, &id, KINDS) == 0);
    assert(grpc_invoke_np(&object, "method", KINDS) == 0);
    assert(grpc_invoke_async_np(&object, "method", &id, KINDS) == 0);
    assert(grpc_invoke_with_attr_np(&object, "method", &attr, KINDS) == 0);
    assert(grpc_invoke_async_with_attr_np(&object, "method", &id, &attr, KINDS) == 0);
    assert(Ninf_call("entry", KINDS) == 0);
    assert(Ninf_call_async("entry", KINDS) == 42);
    assert(Ninf_call_executable(executable, KINDS) == 0);
    assert(Ninf_call_executable_async(executable, KINDS) == 42);
    assert(Ninf_group_call_async(group, KINDS) == 42);

    set_codes("iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii");
    check = check_many;
    assert(count == 40);
    assert(grpc_call(&handle, TEN(0), TEN(10), TEN(20), TEN(30)) == 0);

    set_codes("idididididididididididid");
    check = check_mixed;
    assert(grpc_call(&handle, PAIR(0), PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6),
                     PAIR(7), PAIR(8), PAIR(9), PAIR(10), PAIR(11)) == 0);

    set_codes("");
    check = check_none;
    assert(grpc_call(&handle) == 0);
    assert(Ninf_group_call_async(group) == 42);

    assert(grpc_call(NULL, 1) == GRPC_INVALID_FUNCTION_HANDLE);
    assert(Ninf_call_executable(NULL) == -1);
    assert(Ninf_group_call_async(NULL) == -1);
    set_codes("i?");
    assert(grpc_call(&handle, 1, 2) == GRPC_OTHER_ERROR_CODE && errors_noted == 1);
    assert(Ninf_call("entry", 1, 2) == -1 && errors_noted == 2);
    assert(grpc_detach_np(&handle, call_id, sizeof call_id, 1, 2) == GRPC_OTHER_ERROR_CODE);
    assert(grpc_attach_np(NULL, call_id, &id, 1) == GRPC_INVALID_FUNCTION_HANDLE);
    assert(errors_noted == 3);
    puts("ok");
    return 0;
}
