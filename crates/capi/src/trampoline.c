/* Calls functions whose parameters are known only at run time: see call/callback.rs. */
#include "trampoline.h"

/*
 * The calling conventions of x86-64 and aarch64 give integers and floating-point numbers registers
 * of their own kinds, whatever their order, and put what is left on the stack in words of 8 bytes.
 * So one call with all registers and enough of the stack fits every function: what it has no
 * parameters for it does not look at, and who calls clears the stack up.
 */
#define FOUR(array, at) (array)[at], (array)[at + 1], (array)[at + 2], (array)[at + 3]
#define EIGHT(array, at) FOUR(array, at), FOUR(array, at + 4)

typedef unsigned long long word;

#define FOUR_WORDS word, word, word, word
#define EIGHT_WORDS FOUR_WORDS, FOUR_WORDS
#define EIGHT_DOUBLES double, double, double, double, double, double, double, double

#if defined __x86_64__

typedef void any_function(word, word, word, word, word, word, EIGHT_DOUBLES, EIGHT_WORDS,
                          EIGHT_WORDS, EIGHT_WORDS, EIGHT_WORDS);

void gridrpc_call_function(void *function, const word *words, const double *floats,
                           const word *stack)
{
    ((any_function *)function)(words[0], words[1], words[2], words[3], words[4], words[5],
                               EIGHT(floats, 0), EIGHT(stack, 0), EIGHT(stack, 8),
                               EIGHT(stack, 16), EIGHT(stack, 24));
}

#else

/* As far as only words are passed this is right for other machines of 64 bits as well. */
typedef void any_function(EIGHT_WORDS, EIGHT_DOUBLES, EIGHT_WORDS, EIGHT_WORDS, EIGHT_WORDS,
                          EIGHT_WORDS);
typedef void word_function(EIGHT_WORDS, EIGHT_WORDS, EIGHT_WORDS, EIGHT_WORDS, EIGHT_WORDS);

void gridrpc_call_function(void *function, const word *words, const double *floats,
                           const word *stack)
{
#if defined __aarch64__
    ((any_function *)function)(EIGHT(words, 0), EIGHT(floats, 0), EIGHT(stack, 0), EIGHT(stack, 8),
                               EIGHT(stack, 16), EIGHT(stack, 24));
#else
    (void)floats;
    ((word_function *)function)(EIGHT(words, 0), EIGHT(stack, 0), EIGHT(stack, 8),
                                EIGHT(stack, 16), EIGHT(stack, 24));
#endif
}

#endif
