#ifdef WIDE
#define WIDTH 4
#else
#define WIDTH 2
#endif
