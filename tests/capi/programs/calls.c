/* Arguments of all kinds, and results in their places. */
#include "check.h"

#include <complex.h>

static void numbers(void)
{
    grpc_function_handle_t f = function("cases/numbers");
    double seen[15];
    double expected[] = {-1, 255, -2, 65535, -3, 4e9, -5, 6, -7e15, 0.5, 1e300, 1, -2, 3, -4};
    OK(grpc_call(&f, -1, 255, -2, 65535, -3, 4000000000u, -5L, 6UL, -7000000000000000LL, 0.5f,
                 1e300, (float _Complex)(1 - 2 * I), (double _Complex)(3 - 4 * I), seen));
    for (int i = 0; i < 15; i++)
        CHECK(seen[i] == expected[i]);
    OK(grpc_function_handle_destruct(&f));
}

static void arrays(void)
{
    grpc_function_handle_t nothing = function("cases/nothing"), mmul = function("cases/mmul"),
                           scale = function("cases/scale"), work = function("cases/work"),
                           big = function("cases/big");
    double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[6] = {0, 0, 0, 0, 77, 77};
    OK(grpc_call(&nothing));
    OK(grpc_call(&mmul, 2, a, b, c));
    CHECK(c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50 && c[4] == 77);
    OK(grpc_call(&mmul, 0, NULL, NULL, NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&mmul, -1, a, b, c));
    TELLS(GRPC_SESSIONID_VOID, "cases/mmul");
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&mmul, 2, a, NULL, c));
    TELLS(GRPC_SESSIONID_VOID, "`b`");
    OK(grpc_call(&work, 10, NULL, c));
    CHECK(c[0] == 45);
    double many[50];
    for (int i = 0; i < 50; i++)
        many[i] = i;
    OK(grpc_call(&big, 9, many, c));
    CHECK(c[0] == 45);

    long n = 300000;
    double *large = malloc((size_t)n * sizeof *large), *shared = grpc_malloc_np(8 * (size_t)n);
    CHECK(shared != NULL && shared[0] == 0 && shared[n - 1] == 0);
    for (long i = 0; i < n; i++)
        large[i] = shared[i] = (double)i;
    OK(grpc_call(&scale, n, 2.0, large));
    OK(grpc_call(&scale, n, 3.0, shared));
    for (long i = 0; i < n; i++)
        CHECK(large[i] == 2.0 * (double)i && shared[i] == 3.0 * (double)i);
    OK(grpc_call(&scale, n / 2, 2.0, shared + 10));
    CHECK(shared[9] == 27 && shared[10] == 60);
    OK(grpc_free_np(shared));
    OK(grpc_free_np(NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_free_np(shared));
    IS(GRPC_OTHER_ERROR_CODE, grpc_free_np(large));
    free(large);
}

static void strings(void)
{
    grpc_function_handle_t greet = function("cases/greet"), turn = function("cases/turn"),
                           join = function("cases/join"), split = function("cases/split");
    char *text = NULL;
    OK(grpc_call(&greet, "you", &text));
    CHECK(strcmp(text, "hello, you") == 0);
    free(text);
    char *turned = text = strdup("abc");
    OK(grpc_call(&turn, &turned));
    CHECK(strcmp(turned, "cba") == 0 && turned != text);
    free(turned);
    free(text);
    turned = text = strdup("aba");
    OK(grpc_call(&turn, &turned));
    CHECK(turned == text);
    free(text);
    char *parts[] = {"ab", "", "cd"};
    OK(grpc_call(&join, 3, parts, &text));
    CHECK(strcmp(text, "abcd") == 0);
    free(text);
    char *pieces[3];
    OK(grpc_call(&split, "xyz", 3, pieces));
    for (int i = 0; i < 3; i++) {
        CHECK(pieces[i][0] == 'x' + i && pieces[i][1] == 0);
        free(pieces[i]);
    }
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&greet, "you", NULL));
    /* A list that nobody wants. */
    OK(grpc_call(&split, "xyz", 3, NULL));
    grpc_sessionid_t id;
    OK(grpc_call_async(&greet, &id, "again", &text));
    OK(grpc_wait(id));
    CHECK(strcmp(text, "hello, again") == 0);
    free(text);
}

static void files(void)
{
    grpc_function_handle_t upper = function("cases/upper");
    FILE *file = fopen("in.txt", "w");
    fputs("some text", file);
    fclose(file);
    OK(grpc_call(&upper, "in.txt", "out.txt"));
    char line[100] = "";
    file = fopen("out.txt", "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    CHECK(strcmp(line, "SOME TEXT") == 0);
    fclose(file);
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&upper, "not there", "out.txt"));
    TELLS(GRPC_SESSIONID_VOID, "not there");
    /* NULL and "" name no file, and arrive as they are. */
    grpc_function_handle_t unnamed = function("cases/unnamed");
    int is[3] = {7, 7, 7}; /* 1 is NULL, 0 is "", 3 a path */
    OK(grpc_call(&unnamed, NULL, NULL, NULL, is));
    CHECK(is[0] == 1 && is[1] == 1 && is[2] == 1);
    OK(grpc_call(&unnamed, "", "", "", is));
    CHECK(is[0] == 0 && is[1] == 0 && is[2] == 0);
    OK(grpc_call(&unnamed, "in.txt", NULL, "", is));
    CHECK(is[0] == 3 && is[1] == 1 && is[2] == 0);
    OK(grpc_call(&unnamed, "in.txt", "new.txt", NULL, is));
    CHECK(is[0] == 3 && is[1] == 3 && is[2] == 1 && (file = fopen("new.txt", "r")) != NULL);
    CHECK(fgets(line, sizeof line, file) != NULL && strcmp(line, "written") == 0);
    fclose(file);
}

static int bells;
static void bell(void) { bells++; }
static void half(double *x, double *y) { *y = *x / 2; }
static void next(int *value) { *value = ++bells; }
static void mixed(int a, double b, float c, double *d)
{
    d[0] += a + b;
    d[1] += c;
}

static char told[100];

static void one(char *text, int length)
{
    CHECK(text == NULL ? length == -1 : (int)strlen(text) == length);
    strcat(told, text == NULL ? "-" : text);
}

static void all(int n, char **texts)
{
    for (int i = 0; i < n; i++)
        strcat(strcat(told, "/"), texts[i] == NULL ? "-" : texts[i]);
}

static volatile int begun;
static grpc_sessionid_t own;
static grpc_error_t waits[4];

/* A session cannot end before its callbacks return: to wait for it there is an error. */
static void waits_for_itself(void)
{
    while (!begun) usleep(1000);
    grpc_sessionid_t done;
    waits[0] = grpc_wait_all();
    waits[1] = grpc_wait(own);
    waits[2] = grpc_wait_any(&done);
    waits[3] = grpc_wait_or(&own, 1, &done);
}

static void callbacks(void)
{
    grpc_function_handle_t spell = function("cases/spell");
    OK(grpc_call(&spell, 4, one, all));
    CHECK(strcmp(told, "word-/a/-//four") == 0);
    grpc_function_handle_t integrate = function("cases/integrate"), tick = function("cases/tick"),
                           produce = function("cases/produce"), mix = function("cases/mixed");
    double sum;
    int last = 0;
    OK(grpc_call(&integrate, 100, &sum, half));
    CHECK(fabs(sum - 0.25) < 1e-12);
    OK(grpc_call(&tick, 7, bell));
    CHECK(bells == 7);
    OK(grpc_call(&produce, 3, &last, next));
    CHECK(bells == 10 && last == 10);
    OK(grpc_call(&mix, &sum, mixed));
    CHECK(sum == 10 + 7.5 + 20 + 0.25);
    IS(GRPC_OTHER_ERROR_CODE, grpc_call(&tick, 7, NULL));
    grpc_sessionid_t id;
    OK(grpc_call_async(&tick, &id, 5, bell));
    OK(grpc_wait(id));
    CHECK(bells == 15);
    OK(grpc_call_async(&tick, &own, 1, waits_for_itself));
    begun = 1;
    OK(grpc_wait(own));
    for (int i = 0; i < 4; i++)
        IS(GRPC_OTHER_ERROR_CODE, waits[i]);
    grpc_session_info_t_np info;
    int status;
    OK(grpc_get_info_np(id, &info, &status));
    CHECK(info.gei_measureClient.callbackNtimesCalled == 5 &&
          info.gei_measureExecutable.callbackNtimesCalled == 5);
}

static void stacks(void)
{
    grpc_function_handle_t add = function("cases/add");
    int a = 3, b = 4, sum = 0, other = 0;
    grpc_arg_stack_t *stack = grpc_arg_stack_new(3);
    CHECK(grpc_arg_stack_push_arg(stack, &a) == 0 && grpc_arg_stack_push_arg(stack, &b) == 0);
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_arg_stack(&add, stack));
    CHECK(grpc_arg_stack_push_arg(stack, &sum) == 0);
    CHECK(grpc_arg_stack_push_arg(stack, &sum) == -1);
    OK(grpc_call_arg_stack(&add, stack));
    CHECK(sum == 7);
    a = 10;
    grpc_sessionid_t id = grpc_call_arg_stack_async(&add, stack);
    CHECK(id >= 0);
    OK(grpc_wait(id));
    CHECK(sum == 14);
    CHECK(grpc_arg_stack_pop_arg(stack) == &sum);
    CHECK(grpc_arg_stack_push_arg(stack, &other) == 0);
    OK(grpc_call_argstack_async(&add, &id, stack));
    OK(grpc_wait(id));
    CHECK(other == 14);

    grpc_function_handle_t scale = function("cases/scale");
    long n = 3;
    double by = 2, x[4] = {1, 2, 3, 4};
    for (size_t length = 2; length <= 4; length++) {
        grpc_arg_stack_t *sized = grpc_arg_stack_new(3);
        grpc_arg_stack_push_arg(sized, &n);
        grpc_arg_stack_push_arg(sized, &by);
        CHECK(grpc_arg_stack_push_array_np(sized, x, length * sizeof x[0]) == 0);
        CHECK(grpc_arg_stack_push_array_np(sized, x, 0) == -1);
        if (length == 3) {
            OK(grpc_call_arg_stack(&scale, sized));
        } else {
            IS(GRPC_OTHER_ERROR_CODE, grpc_call_arg_stack(&scale, sized));
            CHECK(strstr(grpc_error_detail_np(GRPC_SESSIONID_VOID), "has to have 3") != NULL);
        }
        CHECK(x[0] == (length == 2 ? 1 : 2) && x[3] == 4);
        grpc_arg_stack_destruct(sized);
    }
    OK(grpc_function_handle_destruct(&scale));

    grpc_session_attr_t_np attr;
    OK(grpc_session_attr_initialize_np(&add, &attr));
    OK(grpc_call_arg_stack_with_attr_np(&add, &attr, stack));
    id = grpc_call_arg_stack_async_with_attr_np(&add, &attr, stack);
    OK(grpc_wait(id));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_arg_stack_with_attr_np(&add, NULL, stack));
    OK(grpc_session_attr_destruct_np(&attr));
    CHECK(grpc_arg_stack_destruct(stack) == 0 && grpc_arg_stack_destruct(stack) == -1);
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_arg_stack(&add, stack));
    IS(GRPC_OTHER_ERROR_CODE, grpc_call_arg_stack(&add, NULL));
    IS(GRPC_SESSIONID_VOID, grpc_call_arg_stack_async(&add, NULL));
    IS(GRPC_OTHER_ERROR_CODE, grpc_last_error_get_np());
}

int main(void)
{
    OK(grpc_initialize(NULL));
    numbers();
    arrays();
    strings();
    files();
    callbacks();
    stacks();
    OK(grpc_finalize());
    return 0;
}
