/* What Rust needs C for to call functions whose parameters are known only at run time. */
#ifndef GRIDRPC_TRAMPOLINE_H
#define GRIDRPC_TRAMPOLINE_H

#pragma GCC visibility push(hidden)

/*
 * Calls `function` with 6 (x86-64) or 8 words in registers for integers and addresses, 8 numbers in
 * registers for floating-point numbers, and 32 words on the stack.
 */
void gridrpc_call_function(void *function, const unsigned long long *words, const double *floats,
                           const unsigned long long *stack);

#pragma GCC visibility pop

#endif /* GRIDRPC_TRAMPOLINE_H */
