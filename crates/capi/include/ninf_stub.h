/*
 * ninf_stub.h: what the code of remote functions of the original Ninf may use, under the name that
 * its header had.
 */
#ifndef GRIDRPC_NINF_STUB_H
#define GRIDRPC_NINF_STUB_H

#include "grpc_executable.h"
#include "ninf_error.h"

#endif /* GRIDRPC_NINF_STUB_H */
