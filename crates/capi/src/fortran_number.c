/* Types and numbers of calls from Fortran: see fortran_number.h. */
#include "fortran_number.h"

#include <complex.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* As large as Fortran's largest integer, and larger than all that C has to be given. */
__extension__ typedef __int128 wide;

#define INTEGER GRIDRPC_FORTRAN_INTEGER
#define REAL GRIDRPC_FORTRAN_REAL
#define COMPLEX GRIDRPC_FORTRAN_COMPLEX

struct type {
    int kind;
    size_t size;
    wide least, most; /* of integers */
    const char *declaration;
};

static const struct type types[] = {
    [GRPC_TYPE_NONE_NP] = {0, 0, 0, 0, "nothing"},
    [GRPC_TYPE_CHAR_NP] = {INTEGER, 1, CHAR_MIN, CHAR_MAX, "character or integer(c_signed_char)"},
    [GRPC_TYPE_UNSIGNED_CHAR_NP] = {INTEGER, 1, 0, UCHAR_MAX,
                                    "character or integer(c_signed_char)"},
    [GRPC_TYPE_SHORT_NP] = {INTEGER, sizeof(short), SHRT_MIN, SHRT_MAX, "integer(c_short)"},
    [GRPC_TYPE_UNSIGNED_SHORT_NP] = {INTEGER, sizeof(short), 0, USHRT_MAX, "integer(c_short)"},
    [GRPC_TYPE_INT_NP] = {INTEGER, sizeof(int), INT_MIN, INT_MAX, "integer(c_int)"},
    [GRPC_TYPE_UNSIGNED_INT_NP] = {INTEGER, sizeof(int), 0, UINT_MAX, "integer(c_int)"},
    [GRPC_TYPE_LONG_NP] = {INTEGER, sizeof(long), LONG_MIN, LONG_MAX, "integer(c_long)"},
    [GRPC_TYPE_UNSIGNED_LONG_NP] = {INTEGER, sizeof(long), 0, ULONG_MAX, "integer(c_long)"},
    [GRPC_TYPE_LONG_LONG_NP] = {INTEGER, sizeof(long long), LLONG_MIN, LLONG_MAX,
                                "integer(c_long_long)"},
    [GRPC_TYPE_UNSIGNED_LONG_LONG_NP] = {INTEGER, sizeof(long long), 0, ULLONG_MAX,
                                         "integer(c_long_long)"},
    [GRPC_TYPE_FLOAT_NP] = {REAL, sizeof(float), 0, 0, "real(c_float)"},
    [GRPC_TYPE_DOUBLE_NP] = {REAL, sizeof(double), 0, 0, "real(c_double)"},
    [GRPC_TYPE_SCOMPLEX_NP] = {COMPLEX, sizeof(float _Complex), 0, 0, "complex(c_float_complex)"},
    [GRPC_TYPE_DCOMPLEX_NP] = {COMPLEX, sizeof(double _Complex), 0, 0,
                               "complex(c_double_complex)"},
    [GRPC_TYPE_INT8_NP] = {INTEGER, 1, INT8_MIN, INT8_MAX, "integer(c_int8_t)"},
    [GRPC_TYPE_UINT8_NP] = {INTEGER, 1, 0, UINT8_MAX, "integer(c_int8_t)"},
    [GRPC_TYPE_INT16_NP] = {INTEGER, 2, INT16_MIN, INT16_MAX, "integer(c_int16_t)"},
    [GRPC_TYPE_UINT16_NP] = {INTEGER, 2, 0, UINT16_MAX, "integer(c_int16_t)"},
    [GRPC_TYPE_INT32_NP] = {INTEGER, 4, INT32_MIN, INT32_MAX, "integer(c_int32_t)"},
    [GRPC_TYPE_UINT32_NP] = {INTEGER, 4, 0, UINT32_MAX, "integer(c_int32_t)"},
    [GRPC_TYPE_INT64_NP] = {INTEGER, 8, INT64_MIN, INT64_MAX, "integer(c_int64_t)"},
    [GRPC_TYPE_UINT64_NP] = {INTEGER, 8, 0, UINT64_MAX, "integer(c_int64_t)"},
    [GRPC_TYPE_STRING_NP] = {GRIDRPC_FORTRAN_CHARACTER, 0, 0, 0, "character"},
    [GRPC_TYPE_FILENAME_NP] = {GRIDRPC_FORTRAN_CHARACTER, 0, 0, 0, "character"},
};

static const struct type *of(grpc_type_t_np type)
{
    size_t number = (size_t)type;
    return &types[number < sizeof types / sizeof *types ? number : GRPC_TYPE_NONE_NP];
}

int gridrpc_fortran_kind_of(grpc_type_t_np type)
{
    return of(type)->kind;
}

size_t gridrpc_fortran_size(grpc_type_t_np type)
{
    return of(type)->size;
}

int gridrpc_fortran_is_byte(grpc_type_t_np type)
{
    return of(type)->kind == INTEGER && of(type)->size == 1;
}

const char *gridrpc_fortran_declaration(grpc_type_t_np type)
{
    return of(type)->declaration;
}

const char *gridrpc_fortran_kind_name(int kind)
{
    switch (kind) {
    case INTEGER:
        return "integer";
    case REAL:
    case GRIDRPC_FORTRAN_LONG_REAL:
    case GRIDRPC_FORTRAN_QUAD_REAL:
        return "real";
    case COMPLEX:
    case GRIDRPC_FORTRAN_LONG_COMPLEX:
    case GRIDRPC_FORTRAN_QUAD_COMPLEX:
        return "complex";
    case GRIDRPC_FORTRAN_CHARACTER:
        return "character";
    default:
        return "logical or of a derived type";
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* A number as it came. */
struct number {
    int kind; /* INTEGER, REAL or COMPLEX */
    wide integer;
    long double re, im;
};

static wide integer_at(const void *address, size_t size)
{
    int8_t of_1;
    int16_t of_2;
    int32_t of_4;
    int64_t of_8;
    wide of_16;
    switch (size) {
    case 1:
        memcpy(&of_1, address, size);
        return of_1;
    case 2:
        memcpy(&of_2, address, size);
        return of_2;
    case 4:
        memcpy(&of_4, address, size);
        return of_4;
    case 8:
        memcpy(&of_8, address, size);
        return of_8;
    default:
        memcpy(&of_16, address, sizeof of_16);
        return of_16;
    }
}

/* One real number, or one part of a complex one. Which it is, kind and size tell together. */
static long double real_at(const void *address, int kind, size_t size)
{
    float single;
    double twofold;
    long double extended;
    if (kind == GRIDRPC_FORTRAN_LONG_REAL || kind == GRIDRPC_FORTRAN_LONG_COMPLEX) {
        memcpy(&extended, address, sizeof extended);
        return extended;
    }
#ifdef __SIZEOF_FLOAT128__
    if (kind == GRIDRPC_FORTRAN_QUAD_REAL || kind == GRIDRPC_FORTRAN_QUAD_COMPLEX) {
        __extension__ __float128 quad;
        memcpy(&quad, address, sizeof quad);
        return (long double)quad;
    }
#endif
    if (size == sizeof single) {
        memcpy(&single, address, size);
        return single;
    }
    memcpy(&twofold, address, sizeof twofold);
    return twofold;
}

/* Returns 0 if it is no number. */
static int read_number(const struct gridrpc_fortran_argument *from, struct number *number)
{
    size_t half = from->element_size / 2;
    memset(number, 0, sizeof *number);
    switch (from->kind) {
    case INTEGER:
        number->kind = INTEGER;
        number->integer = integer_at(from->address, from->element_size);
        number->re = (long double)number->integer;
        return 1;
    case REAL:
    case GRIDRPC_FORTRAN_LONG_REAL:
    case GRIDRPC_FORTRAN_QUAD_REAL:
        number->kind = REAL;
        number->re = real_at(from->address, from->kind, from->element_size);
        return 1;
    case COMPLEX:
    case GRIDRPC_FORTRAN_LONG_COMPLEX:
    case GRIDRPC_FORTRAN_QUAD_COMPLEX:
        number->kind = COMPLEX;
        number->re = real_at(from->address, from->kind, half);
        number->im = real_at((const char *)from->address + half, from->kind, half);
        return 1;
    default:
        return 0;
    }
}

/* Whether a number is finite, but has no finite neighbour in the smaller type. */
static int is_too_large(long double number, size_t size)
{
    int becomes_infinite = size == sizeof(float) ? isinf((float)number) : isinf((double)number);
    return becomes_infinite && !isinf(number);
}

static void store_real(long double number, size_t size, unsigned char *to)
{
    float single = (float)number;
    double twofold = (double)number;
    if (size == sizeof single)
        memcpy(to, &single, size);
    else
        memcpy(to, &twofold, size);
}

const char *gridrpc_fortran_convert(const struct gridrpc_fortran_argument *from,
                                    grpc_type_t_np type, union gridrpc_fortran_number *to)
{
    const struct type *wanted = of(type);
    struct number number;
    memset(to, 0, sizeof *to);
    if (from->kind == GRIDRPC_FORTRAN_CHARACTER && gridrpc_fortran_is_byte(type)) {
        /* As for a dummy argument that is one character, the rest does not matter. */
        if (from->element_size == 0)
            return "is an empty string";
        memcpy(to->bytes, from->address, 1);
        return NULL;
    }
    if (!read_number(from, &number))
        return from->kind == GRIDRPC_FORTRAN_CHARACTER ? "is character" : "is not a number";
    if (wanted->kind == INTEGER) {
        if (number.kind != INTEGER)
            return number.kind == REAL ? "is real" : "is complex";
        if (number.integer < wanted->least || number.integer > wanted->most)
            return "is out of range";
        /* The low end of a wide number is the number itself, wherever the low end is. */
        unsigned long long bits = (unsigned long long)number.integer;
        unsigned char *start = (unsigned char *)&bits;
        const unsigned short one = 1;
        if (*(const unsigned char *)&one == 0)
            start += sizeof bits - wanted->size;
        memcpy(to->bytes, start, wanted->size);
        return NULL;
    }
    if (wanted->kind == REAL && number.kind == COMPLEX)
        return "is complex";
    size_t part = wanted->kind == COMPLEX ? wanted->size / 2 : wanted->size;
    if (is_too_large(number.re, part) || is_too_large(number.im, part))
        return "is out of range";
    store_real(number.re, part, to->bytes);
    if (wanted->kind == COMPLEX)
        store_real(number.im, part, to->bytes + part);
    return NULL;
}
