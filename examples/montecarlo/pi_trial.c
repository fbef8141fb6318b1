/* A function that knows nothing of GridRPC. */
#include <stdint.h>

/* A random number from 0 up to 1; seeds that are close give streams that are not (SplitMix64). */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

void pi_trial(int seed, long times, long *count)
{
    uint64_t state = (uint64_t)seed << 40;
    long hits = 0;
    for (long i = 0; i < times; i++) {
        double x = uniform(&state), y = uniform(&state);
        hits += x * x + y * y < 1.0;
    }
    *count = hits;
}
