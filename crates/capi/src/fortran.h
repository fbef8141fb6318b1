/*
 * What stands between the Fortran module `grpc` and the library.
 *
 * How a Fortran compiler describes an argument is its own affair: only its ISO_Fortran_binding.h
 * knows. So fortran/grpc_arguments.c, which is compiled beside the module, turns descriptors into
 * the structs below, and the library itself depends on no Fortran compiler.
 *
 * Module and library belong together, version by version. Programs use nothing of this directly.
 */
#ifndef GRIDRPC_FORTRAN_H
#define GRIDRPC_FORTRAN_H

#include <stddef.h>

#include "grpc.h"

/* So many arguments can a call have: the module lists them one by one. */
#define GRIDRPC_FORTRAN_ARGUMENTS 32

enum gridrpc_fortran_kind {
    GRIDRPC_FORTRAN_ABSENT = 0, /* an optional argument that is not there */
    GRIDRPC_FORTRAN_INTEGER = 1,
    GRIDRPC_FORTRAN_REAL = 2,            /* float, double */
    GRIDRPC_FORTRAN_LONG_REAL = 3,       /* long double */
    GRIDRPC_FORTRAN_QUAD_REAL = 4,       /* of 128 bits, where long double is something else */
    GRIDRPC_FORTRAN_COMPLEX = 5,         /* of two of these each */
    GRIDRPC_FORTRAN_LONG_COMPLEX = 6,
    GRIDRPC_FORTRAN_QUAD_COMPLEX = 7,
    GRIDRPC_FORTRAN_CHARACTER = 8,
    GRIDRPC_FORTRAN_FUNCTION = 9, /* type(c_funptr) */
    GRIDRPC_FORTRAN_POINTER = 10, /* type(c_ptr) */
    GRIDRPC_FORTRAN_OTHER = 11    /* logical, derived types, other characters */
};

/* One argument of a call. */
struct gridrpc_fortran_argument {
    void *address;       /* of the first element; NULL if it is not allocated or not associated */
    size_t element_size; /* bytes; the length of characters */
    size_t elements;     /* 1 for what is no array; SIZE_MAX if the array does not know */
    int kind;            /* of enum gridrpc_fortran_kind */
    int is_array;
    int is_contiguous;
};

/* One call. Either `function` or `object` is there, and with `object` the method. */
struct gridrpc_fortran_call {
    grpc_function_handle_t *function;
    grpc_object_handle_t_np *object;
    const char *method; /* as Fortran has it: filled up with blanks, without a 0 */
    size_t method_length;
    grpc_session_attr_t_np *attr;  /* NULL: the call has none */
    grpc_sessionid_t *session_id;  /* NULL: the call is waited for */
    const struct gridrpc_fortran_argument *arguments;
    size_t count; /* behind the last of them that is not absent */
};

/*
 * Converts the arguments by the function's interface and makes the call. What is wrong with an
 * argument is GRPC_OTHER_ERROR_CODE, and the error's detail has its number and name.
 */
grpc_error_t gridrpc_fortran_call(const struct gridrpc_fortran_call *call);

/* Makes it the last error of this thread that something was wrong in the module itself. */
grpc_error_t gridrpc_fortran_refuse(const char *problem);

#endif /* GRIDRPC_FORTRAN_H */
