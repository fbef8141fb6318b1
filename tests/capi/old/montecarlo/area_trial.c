/* Compiled by make's own rule; a global of its own makes it no object for a library by itself. */
#ifndef POINTS
#error CPPFLAGS or CFLAGS of the makefile did not arrive
#endif

long area_calls = 0;

static unsigned long area_state;

static double area_random(void)
{
    area_state = (area_state * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return area_state / 2147483648.0;
}

long area_trial(int seed, long times)
{
    long i, counter = 0;

    area_calls++;
    area_state = (unsigned long)seed;
    for (i = 0; i < times * POINTS; i++) {
        double x = area_random(), y = area_random();

        if (x * x + y * y < 1.0)
            counter++;
    }
    return counter;
}

void area_trials(int seed, long times, long *count)
{
    *count = area_trial(seed, times);
}
