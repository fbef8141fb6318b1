/*
 * Calls from Fortran: see fortran.h.
 *
 * A Fortran program gives what it has, and the function's interface says what that has to become:
 * numbers of any kind become numbers of the parameter's type, strings become copies without the
 * blanks at their end, and arrays are passed as they are, if they are what the function takes. All
 * of it goes into an argument stack, so that calls from Fortran go the same way as those from C.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "fortran.h"

#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fortran_number.h"
#include "variadic.h" /* gridrpc_note_error */

/* Above everything that counts; room for the method's name and the place in a message. */
enum { TEXT_LENGTH = 512 };

/* Strings that come back, or that have to stay until the call has been made. */
struct texts {
    char **current;  /* what the library reads, and where it stores its own */
    char **copies;   /* what was made here */
    size_t count;
    int comes_back;
};

/* One call on its way. */
struct call {
    const struct gridrpc_fortran_call *from;
    char *method; /* NULL for a function */
    grpc_parameter_np parameters[GRIDRPC_FORTRAN_ARGUMENTS];
    union gridrpc_fortran_number numbers[GRIDRPC_FORTRAN_ARGUMENTS];
    struct texts texts[GRIDRPC_FORTRAN_ARGUMENTS];
    size_t count;
};

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The function, or the class and the method, as far as they are known. */
static void name_of(const struct call *call, char *name, size_t size)
{
    const struct gridrpc_fortran_call *from = call->from;
    grpc_handle_attr_t_np attr;
    void *value = NULL;
    int known = from->function ? grpc_function_handle_get_attr_np(from->function, &attr)
                               : grpc_object_handle_get_attr_np(from->object, &attr);
    if (known == GRPC_NO_ERROR) {
        grpc_handle_attr_get_np(&attr, GRPC_HANDLE_ATTR_FUNCNAME, &value);
        grpc_handle_attr_destruct_np(&attr);
    }
    snprintf(name, size, "%s%s%s", value ? (char *)value : "call", call->method ? "." : "",
             call->method ? call->method : "");
    if (value != NULL)
        grpc_handle_attr_release_np(value);
}

/* Tells what is wrong with a call, and returns the code for it. */
__attribute__((format(printf, 2, 3))) static grpc_error_t refuse(const struct call *call,
                                                                 const char *format, ...)
{
    char name[TEXT_LENGTH], problem[TEXT_LENGTH], detail[2 * TEXT_LENGTH + 2];
    va_list list;
    va_start(list, format);
    vsnprintf(problem, sizeof problem, format, list);
    va_end(list);
    name_of(call, name, sizeof name);
    snprintf(detail, sizeof detail, "%s: %s", name, problem);
    return gridrpc_note_error(GRPC_OTHER_ERROR_CODE, detail);
}

/* The same for one argument, which the problem continues from. */
static grpc_error_t refuse_argument(const struct call *call, size_t index, const char *problem)
{
    return refuse(call, "argument %zu (`%s`) %s", index + 1, call->parameters[index].name, problem);
}

static grpc_error_t out_of_memory(const struct call *call)
{
    return refuse(call, "out of memory for the arguments");
}

/* ---- Strings --------------------------------------------------------------------------------- */

/* Fortran's strings are filled up with blanks; C's end in a 0. */
static char *without_blanks(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        if (length > 0)
            memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

static grpc_error_t take_texts(struct call *call, size_t index, void **argument)
{
    const struct gridrpc_fortran_argument *from = &call->from->arguments[index];
    const grpc_parameter_np *parameter = &call->parameters[index];
    struct texts *texts = &call->texts[index];
    if (from->kind != GRIDRPC_FORTRAN_CHARACTER)
        return refuse_argument(call, index, "has to be of type character");
    if (from->is_array && !parameter->is_array)
        return refuse_argument(call, index, "is an array, but has to be one string");
    if (from->elements == SIZE_MAX)
        return refuse_argument(call, index,
                               "is an assumed-size array: it has to tell how many strings it has");
    /* What goes back in a file name is the file, not its name. */
    texts->comes_back = parameter->type == GRPC_TYPE_STRING_NP && parameter->mode != GRPC_MODE_IN_NP;
    if (texts->comes_back && call->from->session_id != NULL)
        return refuse_argument(call, index,
                               "is a string that comes back, which only calls that are waited for "
                               "can bring: use grpc_call or grpc_invoke_np");
    size_t room = from->elements > 0 ? from->elements : 1;
    texts->current = calloc(room, sizeof *texts->current);
    texts->copies = calloc(room, sizeof *texts->copies);
    if (texts->current == NULL || texts->copies == NULL)
        return out_of_memory(call);
    texts->count = from->elements;
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = (const char *)from->address + i * from->element_size;
        if (texts->comes_back && parameter->mode == GRPC_MODE_OUT_NP)
            continue;
        texts->current[i] = texts->copies[i] = without_blanks(text, from->element_size);
        if (texts->copies[i] == NULL)
            return out_of_memory(call);
    }
    *argument = parameter->is_array || texts->comes_back ? (void *)texts->current
                                                         : (void *)texts->current[0];
    return GRPC_NO_ERROR;
}

/* Brings strings back into their variables. Those that are too long are cut off, which is reported. */
static grpc_error_t bring_back(const struct call *call, size_t index)
{
    const struct gridrpc_fortran_argument *to = &call->from->arguments[index];
    const struct texts *texts = &call->texts[index];
    size_t longest = 0;
    if (!texts->comes_back)
        return GRPC_NO_ERROR;
    for (size_t i = 0; i < texts->count; i++) {
        if (texts->current[i] == NULL)
            continue;
        char *place = (char *)to->address + i * to->element_size;
        size_t length = strlen(texts->current[i]);
        size_t fits = length < to->element_size ? length : to->element_size;
        memcpy(place, texts->current[i], fits);
        memset(place + fits, ' ', to->element_size - fits);
        if (length > longest)
            longest = length;
    }
    if (longest <= to->element_size)
        return GRPC_NO_ERROR;
    return refuse(call, "argument %zu (`%s`) has room for %zu characters, but %zu came", index + 1,
                  call->parameters[index].name, to->element_size, longest);
}

static void free_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (texts->current != NULL && texts->copies != NULL && texts->current[i] != texts->copies[i])
            free(texts->current[i]);
        if (texts->copies != NULL)
            free(texts->copies[i]);
    }
    free(texts->current);
    free(texts->copies);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static grpc_error_t take_array(const struct call *call, size_t index, void **argument)
{
    const struct gridrpc_fortran_argument *from = &call->from->arguments[index];
    grpc_type_t_np type = call->parameters[index].type;
    *argument = from->address;
    /* Characters of any length are so many bytes one behind the other. */
    if (from->kind == GRIDRPC_FORTRAN_CHARACTER && gridrpc_fortran_is_byte(type))
        return GRPC_NO_ERROR;
    const char *wanted = gridrpc_fortran_declaration(type);
    if (from->kind == GRIDRPC_FORTRAN_POINTER)
        return refuse(call,
                      "argument %zu (`%s`) is a type(c_ptr), but has to be an array of %s: make a "
                      "Fortran pointer with c_f_pointer",
                      index + 1, call->parameters[index].name, wanted);
    if (from->kind != gridrpc_fortran_kind_of(type) ||
        from->element_size != gridrpc_fortran_size(type))
        return refuse(call, "argument %zu (`%s`) is %s (%zu bytes), but has to be an array of %s",
                      index + 1, call->parameters[index].name,
                      gridrpc_fortran_kind_name(from->kind), from->element_size, wanted);
    return GRPC_NO_ERROR;
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

static int is_in_code(struct dl_phdr_info *object, size_t size, void *data)
{
    uintptr_t address = *(uintptr_t *)data;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && address >= start &&
            address - start < part->p_memsz)
            return 1;
    }
    return 0;
}

static int is_code(void *address)
{
    uintptr_t number = (uintptr_t)address;
    return dl_iterate_phdr(is_in_code, &number) != 0;
}

static grpc_error_t take_callback(const struct call *call, size_t index, void **argument)
{
    const struct gridrpc_fortran_argument *from = &call->from->arguments[index];
    if (from->kind != GRIDRPC_FORTRAN_FUNCTION || from->elements != 1)
        return refuse_argument(call, index,
                               "is a callback: it has to be a type(c_funptr), from c_funloc");
    /*
     * A variable is described by its own address. For `c_funloc(f)` itself, without a variable,
     * gfortran gives the address of f instead.
     */
    void *function = from->address;
    if (!is_code(function))
        memcpy(&function, from->address, sizeof function);
    if (function == NULL)
        return refuse_argument(call, index, "is a callback: it must not be c_null_funptr");
    if (!is_code(function))
        return refuse_argument(call, index,
                               "is a callback: it has to be a procedure of a module, or one that "
                               "uses nothing of the procedure around it");
    *argument = function;
    return GRPC_NO_ERROR;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static grpc_error_t take_number(struct call *call, size_t index, void **argument)
{
    const struct gridrpc_fortran_argument *from = &call->from->arguments[index];
    grpc_type_t_np type = call->parameters[index].type;
    if (from->is_array)
        return refuse(call, "argument %zu (`%s`) is an array, but has to be one number: %s",
                      index + 1, call->parameters[index].name, gridrpc_fortran_declaration(type));
    const char *problem = gridrpc_fortran_convert(from, type, &call->numbers[index]);
    *argument = &call->numbers[index];
    if (problem == NULL)
        return GRPC_NO_ERROR;
    return refuse(call, "argument %zu (`%s`) %s: it has to be %s", index + 1,
                  call->parameters[index].name, problem, gridrpc_fortran_declaration(type));
}

static grpc_error_t take(struct call *call, size_t index, void **argument)
{
    const struct gridrpc_fortran_argument *from = &call->from->arguments[index];
    const grpc_parameter_np *parameter = &call->parameters[index];
    if (from->kind == GRIDRPC_FORTRAN_ABSENT)
        return refuse_argument(call, index, "is absent");
    /* Nobody looks at these. */
    if (parameter->mode == GRPC_MODE_WORK_NP) {
        *argument = NULL;
        return GRPC_NO_ERROR;
    }
    if (from->kind == GRIDRPC_FORTRAN_FUNCTION && !parameter->is_callback)
        return refuse_argument(call, index, "is a type(c_funptr), but no callback");
    if (from->address == NULL && from->kind == GRIDRPC_FORTRAN_FUNCTION)
        return refuse_argument(call, index, "is a callback: it must not be c_null_funptr");
    if (from->address == NULL && from->element_size > 0)
        return refuse_argument(call, index, "is not allocated, or not associated");
    if (!from->is_contiguous)
        return refuse_argument(call, index,
                               "is not contiguous: give a whole array, or copy the part that is "
                               "meant into one");
    if (parameter->is_callback)
        return take_callback(call, index, argument);
    if (parameter->type == GRPC_TYPE_STRING_NP || parameter->type == GRPC_TYPE_FILENAME_NP)
        return take_texts(call, index, argument);
    if (parameter->is_array)
        return take_array(call, index, argument);
    return take_number(call, index, argument);
}

/* The interface, and whether as many arguments are given as it has parameters. */
static grpc_error_t take_interface(struct call *call)
{
    const struct gridrpc_fortran_call *from = call->from;
    const size_t most = GRIDRPC_FORTRAN_ARGUMENTS;
    if (from->object != NULL) {
        call->method = without_blanks(from->method, from->method_length);
        if (call->method == NULL)
            return out_of_memory(call);
    }
    grpc_error_t error =
        from->function
            ? grpc_function_parameters_np(from->function, call->parameters, most, &call->count)
            : grpc_method_parameters_np(from->object, call->method, call->parameters, most,
                                        &call->count);
    if (error != GRPC_NO_ERROR)
        return error;
    if (call->count > most)
        return refuse(call, "it has %zu parameters, and calls from Fortran at most %zu arguments",
                      call->count, most);
    if (from->count != call->count)
        return refuse(call, "it has %zu parameters, but %zu are given", call->count,
                      from->count);
    return GRPC_NO_ERROR;
}

static grpc_error_t start(const struct call *call, grpc_arg_stack_t *stack)
{
    const struct gridrpc_fortran_call *from = call->from;
    grpc_session_attr_t_np *attr = from->attr;
    if (from->session_id == NULL) {
        if (from->function != NULL)
            return attr ? grpc_call_arg_stack_with_attr_np(from->function, attr, stack)
                        : grpc_call_arg_stack(from->function, stack);
        return attr ? grpc_invoke_arg_stack_with_attr_np(from->object, call->method, attr, stack)
                    : grpc_invoke_arg_stack_np(from->object, call->method, stack);
    }
    if (attr == NULL)
        return from->function
                   ? grpc_call_argstack_async(from->function, from->session_id, stack)
                   : grpc_invoke_argstack_async_np(from->object, call->method, from->session_id,
                                                   stack);
    *from->session_id =
        from->function
            ? grpc_call_arg_stack_async_with_attr_np(from->function, attr, stack)
            : grpc_invoke_arg_stack_async_with_attr_np(from->object, call->method, attr, stack);
    return *from->session_id == GRPC_SESSIONID_VOID ? grpc_last_error_get_np() : GRPC_NO_ERROR;
}

static grpc_error_t run(struct call *call, grpc_arg_stack_t *stack)
{
    for (size_t i = 0; i < call->count; i++) {
        void *argument = NULL;
        grpc_error_t error = take(call, i, &argument);
        if (error != GRPC_NO_ERROR)
            return error;
        if (grpc_arg_stack_push_arg(stack, argument) != 0)
            return out_of_memory(call);
    }
    grpc_error_t error = start(call, stack);
    for (size_t i = 0; error == GRPC_NO_ERROR && i < call->count; i++)
        error = bring_back(call, i);
    return error;
}

grpc_error_t gridrpc_fortran_refuse(const char *problem)
{
    return gridrpc_note_error(GRPC_OTHER_ERROR_CODE, problem);
}

grpc_error_t gridrpc_fortran_call(const struct gridrpc_fortran_call *from)
{
    struct call call;
    memset(&call, 0, sizeof call);
    call.from = from;
    if (from->session_id != NULL)
        *from->session_id = GRPC_SESSIONID_VOID;
    grpc_error_t error = take_interface(&call);
    if (error == GRPC_NO_ERROR) {
        grpc_arg_stack_t *stack = grpc_arg_stack_new((int)call.count);
        error = stack ? run(&call, stack) : out_of_memory(&call);
        if (stack != NULL)
            grpc_arg_stack_destruct(stack);
    }
    for (size_t i = 0; i < GRIDRPC_FORTRAN_ARGUMENTS; i++)
        free_texts(&call.texts[i]);
    free(call.method);
    return error;
}
