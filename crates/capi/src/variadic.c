/* The variadic functions of grpc.h and ninf.h: see variadic.h. */
#include "variadic.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* So many arguments need no memory from the heap. */
#define FEW 32

/* The arguments of one call while it is being made. */
struct collected {
    struct gridrpc_arguments arguments;
    union gridrpc_slot few[FEW];
    union gridrpc_slot *many;
};

/* Takes the arguments by their codes. Returns GRPC_NO_ERROR, or a code that has been noted. */
static int collect(struct collected *into, const unsigned char *codes, size_t count, va_list list)
{
    union gridrpc_slot *slots = into->few;
    into->many = NULL;
    if (count > FEW) {
        slots = into->many = calloc(count, sizeof *slots);
        if (slots == NULL)
            return gridrpc_note_error(GRPC_OTHER_ERROR_CODE, "out of memory for the arguments");
    } else {
        memset(slots, 0, count * sizeof *slots);
    }
    for (size_t i = 0; i < count; i++) {
        switch (codes[i]) {
        case 'i':
            slots[i].i = va_arg(list, int);
            break;
        case 'l':
            slots[i].l = va_arg(list, long long);
            break;
        case 'd':
            slots[i].d = va_arg(list, double);
            break;
        case 'c':
            slots[i].c = va_arg(list, float _Complex);
            break;
        case 'z':
            slots[i].z = va_arg(list, double _Complex);
            break;
        case 'p':
            slots[i].p = va_arg(list, void *);
            break;
        default:
            /* From here on the list cannot be read. */
            free(into->many);
            return gridrpc_note_error(GRPC_OTHER_ERROR_CODE,
                                      "a parameter has a type that no argument can have");
        }
    }
    into->arguments.codes = codes;
    into->arguments.slots = slots;
    into->arguments.count = count;
    return GRPC_NO_ERROR;
}

/* ---- grpc.h ---------------------------------------------------------------------------------- */

/* Takes the arguments of a function. */
static int collect_parameters(struct collected *into, const grpc_function_handle_t *handle,
                              va_list list)
{
    const unsigned char *codes = NULL;
    size_t count = 0;
    int error = gridrpc_parameter_codes(handle, &codes, &count);
    return error == GRPC_NO_ERROR ? collect(into, codes, count, list) : error;
}

static int call(grpc_function_handle_t *handle, int has_attr, grpc_session_attr_t_np *attr,
                int wait, grpc_sessionid_t *session_id, va_list list)
{
    struct collected collected;
    int error = collect_parameters(&collected, handle, list);
    if (error != GRPC_NO_ERROR)
        return error;
    error = gridrpc_call(handle, has_attr, attr, wait, session_id, &collected.arguments);
    free(collected.many);
    return error;
}

static int invoke(grpc_object_handle_t_np *handle, const char *method_name, int has_attr,
                  grpc_session_attr_t_np *attr, int wait, grpc_sessionid_t *session_id,
                  va_list list)
{
    const unsigned char *codes = NULL;
    size_t count = 0;
    struct collected collected;
    int error = gridrpc_method_codes(handle, method_name, &codes, &count);
    if (error == GRPC_NO_ERROR)
        error = collect(&collected, codes, count, list);
    if (error != GRPC_NO_ERROR)
        return error;
    error = gridrpc_invoke(handle, method_name, has_attr, attr, wait, session_id,
                           &collected.arguments);
    free(collected.many);
    return error;
}

grpc_error_t grpc_call(grpc_function_handle_t *handle, ...)
{
    va_list list;
    va_start(list, handle);
    int error = call(handle, 0, NULL, 1, NULL, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_call_async(grpc_function_handle_t *handle, grpc_sessionid_t *session_id, ...)
{
    va_list list;
    va_start(list, session_id);
    int error = call(handle, 0, NULL, 0, session_id, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_call_with_attr_np(grpc_function_handle_t *handle, grpc_session_attr_t_np *attr,
                                    ...)
{
    va_list list;
    va_start(list, attr);
    int error = call(handle, 1, attr, 1, NULL, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_call_async_with_attr_np(grpc_function_handle_t *handle,
                                          grpc_sessionid_t *session_id,
                                          grpc_session_attr_t_np *attr, ...)
{
    va_list list;
    va_start(list, attr);
    int error = call(handle, 1, attr, 0, session_id, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_detach_np(grpc_function_handle_t *handle, char *id, size_t size, ...)
{
    struct collected collected;
    va_list list;
    va_start(list, size);
    int error = collect_parameters(&collected, handle, list);
    va_end(list);
    if (error != GRPC_NO_ERROR)
        return error;
    error = gridrpc_detach(handle, id, size, &collected.arguments);
    free(collected.many);
    return error;
}

grpc_error_t grpc_attach_np(grpc_function_handle_t *handle, const char *id,
                            grpc_sessionid_t *session_id, ...)
{
    struct collected collected;
    va_list list;
    va_start(list, session_id);
    int error = collect_parameters(&collected, handle, list);
    va_end(list);
    if (error != GRPC_NO_ERROR)
        return error;
    error = gridrpc_attach(handle, id, session_id, &collected.arguments);
    free(collected.many);
    return error;
}

grpc_error_t grpc_invoke_np(grpc_object_handle_t_np *handle, const char *method_name, ...)
{
    va_list list;
    va_start(list, method_name);
    int error = invoke(handle, method_name, 0, NULL, 1, NULL, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_invoke_async_np(grpc_object_handle_t_np *handle, const char *method_name,
                                  grpc_sessionid_t *session_id, ...)
{
    va_list list;
    va_start(list, session_id);
    int error = invoke(handle, method_name, 0, NULL, 0, session_id, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_invoke_with_attr_np(grpc_object_handle_t_np *handle, const char *method_name,
                                      grpc_session_attr_t_np *attr, ...)
{
    va_list list;
    va_start(list, attr);
    int error = invoke(handle, method_name, 1, attr, 1, NULL, list);
    va_end(list);
    return error;
}

grpc_error_t grpc_invoke_async_with_attr_np(grpc_object_handle_t_np *handle,
                                            const char *method_name, grpc_sessionid_t *session_id,
                                            grpc_session_attr_t_np *attr, ...)
{
    va_list list;
    va_start(list, attr);
    int error = invoke(handle, method_name, 1, attr, 0, session_id, list);
    va_end(list);
    return error;
}

/* ---- ninf.h ---------------------------------------------------------------------------------- */

static int call_entry(const char *entry, int wait, va_list list)
{
    const unsigned char *codes = NULL;
    size_t count = 0;
    struct collected collected;
    if (gridrpc_entry_codes(entry, &codes, &count) < 0 ||
        collect(&collected, codes, count, list) != GRPC_NO_ERROR)
        return NINF_ERROR;
    int result = gridrpc_entry_call(entry, wait, &collected.arguments);
    free(collected.many);
    return result;
}

static int call_executable(Ninf_executable_t *executable, int wait, va_list list)
{
    const unsigned char *codes = NULL;
    size_t count = 0;
    struct collected collected;
    if (gridrpc_executable_codes(executable, &codes, &count) < 0 ||
        collect(&collected, codes, count, list) != GRPC_NO_ERROR)
        return NINF_ERROR;
    int result = gridrpc_executable_call(executable, wait, &collected.arguments);
    free(collected.many);
    return result;
}

int Ninf_call(const char *entry, ...)
{
    va_list list;
    va_start(list, entry);
    int result = call_entry(entry, 1, list);
    va_end(list);
    return result;
}

int Ninf_call_async(const char *entry, ...)
{
    va_list list;
    va_start(list, entry);
    int result = call_entry(entry, 0, list);
    va_end(list);
    return result;
}

int Ninf_call_executable(Ninf_executable_t *executable, ...)
{
    va_list list;
    va_start(list, executable);
    int result = call_executable(executable, 1, list);
    va_end(list);
    return result;
}

int Ninf_call_executable_async(Ninf_executable_t *executable, ...)
{
    va_list list;
    va_start(list, executable);
    int result = call_executable(executable, 0, list);
    va_end(list);
    return result;
}

int Ninf_group_call_async(Ninf_group_t *group, ...)
{
    const unsigned char *codes = NULL;
    size_t count = 0;
    struct collected collected;
    va_list list;
    if (gridrpc_group_codes(group, &codes, &count) < 0)
        return NINF_ERROR;
    va_start(list, group);
    int error = collect(&collected, codes, count, list);
    va_end(list);
    if (error != GRPC_NO_ERROR)
        return NINF_ERROR;
    int result = gridrpc_group_call(group, &collected.arguments);
    free(collected.many);
    return result;
}
