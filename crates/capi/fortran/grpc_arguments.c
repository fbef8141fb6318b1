/*
 * The part of the Fortran module `grpc` that is in C: it takes the arguments of calls, of any type
 * and rank, as the compiler describes them, and hands them to the library in a form of its own.
 *
 * To be compiled by the C compiler that belongs to the Fortran compiler: `gfortran -c` will do.
 */
#include <ISO_Fortran_binding.h>
#include <stdint.h>

#include "fortran.h"

static int is_one_of(CFI_type_t type, const CFI_type_t *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        /* Negative are types that the compiler does not have. */
        if (type == types[i] && type >= 0)
            return 1;
    return 0;
}

#define IS(type, types) is_one_of(type, types, sizeof types / sizeof *types)

static int kind_of(CFI_type_t type)
{
    static const CFI_type_t integers[] = {
        CFI_type_int8_t,      CFI_type_int16_t, CFI_type_int32_t, CFI_type_int64_t,
        CFI_type_signed_char, CFI_type_short,   CFI_type_int,     CFI_type_long,
        CFI_type_long_long,   CFI_type_size_t,  CFI_type_intmax_t,
#ifdef CFI_type_int128_t
        CFI_type_int128_t,
#endif
    };
    static const CFI_type_t reals[] = {CFI_type_float, CFI_type_double};
    static const CFI_type_t complexes[] = {CFI_type_float_Complex, CFI_type_double_Complex};
    static const CFI_type_t long_real[] = {CFI_type_long_double};
    static const CFI_type_t long_complex[] = {CFI_type_long_double_Complex};
#ifdef CFI_type_float128
    static const CFI_type_t quad_real[] = {CFI_type_float128};
    static const CFI_type_t quad_complex[] = {CFI_type_float128_Complex};
    if (IS(type, quad_real) && !IS(type, long_real))
        return GRIDRPC_FORTRAN_QUAD_REAL;
    if (IS(type, quad_complex) && !IS(type, long_complex))
        return GRIDRPC_FORTRAN_QUAD_COMPLEX;
#endif
    if (IS(type, integers))
        return GRIDRPC_FORTRAN_INTEGER;
    if (IS(type, reals))
        return GRIDRPC_FORTRAN_REAL;
    if (IS(type, complexes))
        return GRIDRPC_FORTRAN_COMPLEX;
    if (IS(type, long_real))
        return GRIDRPC_FORTRAN_LONG_REAL;
    if (IS(type, long_complex))
        return GRIDRPC_FORTRAN_LONG_COMPLEX;
    if (type == CFI_type_char)
        return GRIDRPC_FORTRAN_CHARACTER;
    if (type == CFI_type_cfunptr)
        return GRIDRPC_FORTRAN_FUNCTION;
    if (type == CFI_type_cptr)
        return GRIDRPC_FORTRAN_POINTER;
    return GRIDRPC_FORTRAN_OTHER;
}

static struct gridrpc_fortran_argument describe(const CFI_cdesc_t *from)
{
    struct gridrpc_fortran_argument to = {0};
    if (from == NULL)
        return to;
    to.address = from->base_addr;
    to.element_size = from->elem_len;
    to.kind = kind_of(from->type);
    to.is_array = from->rank > 0;
    to.is_contiguous = 1;
    to.elements = 1;
    /* What is not allocated or not associated has no dimensions yet. */
    if (from->base_addr == NULL)
        return to;
    ptrdiff_t distance = (ptrdiff_t)from->elem_len;
    for (int i = 0; i < from->rank; i++) {
        ptrdiff_t extent = from->dim[i].extent;
        if (extent < 0) { /* the last dimension of a(*): always contiguous */
            to.elements = SIZE_MAX;
            break;
        }
        if (extent > 1 && from->dim[i].sm != distance)
            to.is_contiguous = 0;
        to.elements *= (size_t)extent;
        distance *= extent;
    }
    if (to.elements == 0)
        to.is_contiguous = 1;
    return to;
}

static grpc_error_t run(struct gridrpc_fortran_call call, CFI_cdesc_t *const *descriptors)
{
    struct gridrpc_fortran_argument arguments[GRIDRPC_FORTRAN_ARGUMENTS];
    call.arguments = arguments;
    call.count = 0;
    for (size_t i = 0; i < GRIDRPC_FORTRAN_ARGUMENTS; i++) {
        arguments[i] = describe(descriptors[i]);
        if (descriptors[i] != NULL)
            call.count = i + 1;
    }
    return gridrpc_fortran_call(&call);
}

typedef CFI_cdesc_t *any;

#define ANY                                                                                        \
    any a1, any a2, any a3, any a4, any a5, any a6, any a7, any a8, any a9, any a10, any a11,      \
        any a12, any a13, any a14, any a15, any a16, any a17, any a18, any a19, any a20, any a21,  \
        any a22, any a23, any a24, any a25, any a26, any a27, any a28, any a29, any a30, any a31,  \
        any a32

#define GIVEN                                                                                      \
    (const any[])                                                                                  \
    {                                                                                              \
        a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, \
            a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32                             \
    }

#define OF_FUNCTION .function = handle
#define OF_OBJECT .object = handle, .method = method->base_addr, .method_length = method->elem_len

/* One for each interface in grpc.f90. */
grpc_error_t gridrpc_f_call(grpc_function_handle_t *handle, ANY);
grpc_error_t gridrpc_f_call_async(grpc_function_handle_t *handle, grpc_sessionid_t *session_id,
                                  ANY);
grpc_error_t gridrpc_f_call_with_attr(grpc_function_handle_t *handle, grpc_session_attr_t_np *attr,
                                      ANY);
grpc_error_t gridrpc_f_call_async_with_attr(grpc_function_handle_t *handle,
                                            grpc_sessionid_t *session_id,
                                            grpc_session_attr_t_np *attr, ANY);
grpc_error_t gridrpc_f_invoke(grpc_object_handle_t_np *handle, CFI_cdesc_t *method, ANY);
grpc_error_t gridrpc_f_invoke_async(grpc_object_handle_t_np *handle, CFI_cdesc_t *method,
                                    grpc_sessionid_t *session_id, ANY);
grpc_error_t gridrpc_f_invoke_with_attr(grpc_object_handle_t_np *handle, CFI_cdesc_t *method,
                                        grpc_session_attr_t_np *attr, ANY);
grpc_error_t gridrpc_f_invoke_async_with_attr(grpc_object_handle_t_np *handle, CFI_cdesc_t *method,
                                              grpc_sessionid_t *session_id,
                                              grpc_session_attr_t_np *attr, ANY);

grpc_error_t gridrpc_f_call(grpc_function_handle_t *handle, ANY)
{
    return run((struct gridrpc_fortran_call){OF_FUNCTION}, GIVEN);
}

grpc_error_t gridrpc_f_call_async(grpc_function_handle_t *handle, grpc_sessionid_t *session_id,
                                  ANY)
{
    return run((struct gridrpc_fortran_call){OF_FUNCTION, .session_id = session_id}, GIVEN);
}

grpc_error_t gridrpc_f_call_with_attr(grpc_function_handle_t *handle, grpc_session_attr_t_np *attr,
                                      ANY)
{
    return run((struct gridrpc_fortran_call){OF_FUNCTION, .attr = attr}, GIVEN);
}

grpc_error_t gridrpc_f_call_async_with_attr(grpc_function_handle_t *handle,
                                            grpc_sessionid_t *session_id,
                                            grpc_session_attr_t_np *attr, ANY)
{
    return run(
        (struct gridrpc_fortran_call){OF_FUNCTION, .session_id = session_id, .attr = attr}, GIVEN);
}

grpc_error_t gridrpc_f_invoke(grpc_object_handle_t_np *handle, CFI_cdesc_t *method, ANY)
{
    return run((struct gridrpc_fortran_call){OF_OBJECT}, GIVEN);
}

grpc_error_t gridrpc_f_invoke_async(grpc_object_handle_t_np *handle, CFI_cdesc_t *method,
                                    grpc_sessionid_t *session_id, ANY)
{
    return run((struct gridrpc_fortran_call){OF_OBJECT, .session_id = session_id}, GIVEN);
}

grpc_error_t gridrpc_f_invoke_with_attr(grpc_object_handle_t_np *handle, CFI_cdesc_t *method,
                                        grpc_session_attr_t_np *attr, ANY)
{
    return run((struct gridrpc_fortran_call){OF_OBJECT, .attr = attr}, GIVEN);
}

grpc_error_t gridrpc_f_invoke_async_with_attr(grpc_object_handle_t_np *handle, CFI_cdesc_t *method,
                                              grpc_sessionid_t *session_id,
                                              grpc_session_attr_t_np *attr, ANY)
{
    return run(
        (struct gridrpc_fortran_call){OF_OBJECT, .session_id = session_id, .attr = attr}, GIVEN);
}
