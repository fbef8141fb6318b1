/* Types and numbers of calls from Fortran. Whatever is declared here stays inside the library. */
#ifndef GRIDRPC_FORTRAN_NUMBER_H
#define GRIDRPC_FORTRAN_NUMBER_H

#include "fortran.h"

#pragma GCC visibility push(hidden)

/* One number of any type that a parameter can have. */
union gridrpc_fortran_number {
    unsigned char bytes[16];
    double _Complex largest;
};

/* What an array of a type is made of in Fortran: a kind of enum gridrpc_fortran_kind, and bytes. */
int gridrpc_fortran_kind_of(grpc_type_t_np type);
size_t gridrpc_fortran_size(grpc_type_t_np type);

/* Whether characters can be passed for it. */
int gridrpc_fortran_is_byte(grpc_type_t_np type);

/* How a type is declared in Fortran: "real(c_double)". */
const char *gridrpc_fortran_declaration(grpc_type_t_np type);

/* What an argument is, for messages: "an integer". */
const char *gridrpc_fortran_kind_name(int kind);

/* Stores an argument as a number of a type. Returns NULL, or what is wrong with it: "is ...". */
const char *gridrpc_fortran_convert(const struct gridrpc_fortran_argument *from,
                                    grpc_type_t_np type, union gridrpc_fortran_number *to);

#pragma GCC visibility pop

#endif /* GRIDRPC_FORTRAN_NUMBER_H */
