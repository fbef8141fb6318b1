/*
 * ninf_error.h: the results of calls, and names of errors that programs of the original Ninf
 * mention. No function returns the latter: a function that a signal ends makes its call fail with
 * NINF_ERROR, and Ninf_perror_string names the signal.
 */
#ifndef GRIDRPC_NINF_ERROR_H
#define GRIDRPC_NINF_ERROR_H

#include "ninf.h"

/* A function used memory that it did not have, or computed with traps enabled. */
#define STUB_ERROR_SIGSEGV 1011
#define STUB_ERROR_SIGFPE 1008

#endif /* GRIDRPC_NINF_ERROR_H */
