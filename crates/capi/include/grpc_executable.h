/*
 * grpc_executable.h: what the code of remote functions may use, under the name that Ninf-G's header
 * had: the codes, the complex types, and grpc_is_canceled_np. Remote functions that are clients of
 * others need nothing else either.
 */
#ifndef GRIDRPC_GRPC_EXECUTABLE_H
#define GRIDRPC_GRPC_EXECUTABLE_H

#include "grpc.h"

#endif /* GRIDRPC_GRPC_EXECUTABLE_H */
