/* In the style of the tests of Ninf-G 2 and 4. */
#include "grpc.h"

static int errors = 0;

static void check(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "failed: %s\n", what);
        errors++;
    }
}

static void call_failed(const char *name, grpc_error_t result)
{
    fprintf(stderr, "%s: %s\n", name, grpc_error_string(result));
    grpc_perror_np("detail");
    errors++;
}

#define CALL(name, ...)                                                          \
    do {                                                                         \
        grpc_function_handle_t handle;                                           \
        grpc_error_t result = grpc_function_handle_default(&handle, "idioms/" name); \
        if (result == GRPC_NO_ERROR)                                             \
            result = grpc_call(&handle, __VA_ARGS__);                            \
        if (result != GRPC_NO_ERROR)                                             \
            call_failed(name, result);                                           \
        grpc_function_handle_destruct(&handle);                                  \
    } while (0)

static void test_numbers(void)
{
    int width = 0, given = 0, count = 3, nulls = 0, i;
    int a[5] = { 1, 2, 3, 4, 5 }, b[5], c[5] = { 1, 2, 3, 4, 5 };
    double root = 0, m[8] = { 0 };

    CALL("width", &width, &given);
    check(width == 4 && given == 7 + 3, "options and macros");
    CALL("one", 9.0, &root, &count);
    check(root == 3 && count == 4, "[] is one element");
    CALL("skip", 5, 0, a, b);
    check(b[0] == 2 && b[4] == 10, "[size:start] with 0 is the whole array");
    CALL("skip", 5, 2, a, b);
    check(b[0] == 2 && b[4] == 10, "without Shrink arrays are whole");
    CALL("columns", 4, 2, m);
    check(m[0] == 100 && m[1] == 100 && m[7] == 100, "[lda:n] without Shrink");
    CALL("part", 5, 1, 3, c);
    for (i = 0; i < 5; i++)
        check(c[i] == (i == 1 || i == 2 ? -i - 1 : i + 1), "Shrink \"yes\"");
    CALL("empty", 0, a, &root, &nulls);
    check(nulls == 2, "arrays without elements are NULL");
    CALL("canceled", &width);
    check(width == 0, "grpc_is_canceled_np");
}

static void test_complex(void)
{
    scomplex in[2] = { { 1, 2 }, { 3, 4 } }, out[2];
    dcomplex z = { 5, 6 }, w;

    memset(out, 0, sizeof(out));
    CALL("complexes", 2, z, in, out, &w);
    check(out[0].r == 2 && out[0].i == -2 && out[1].r == 6 && out[1].i == -4, "scomplex");
    check(w.r == 5 && w.i == -6, "dcomplex");
}

static void test_strings(void)
{
    char *one = NULL, *two = NULL, *out[3], text[] = "given", *both = text;
    int i;

    CALL("alias", "given", &one, &two);
    check(one && two && !strcmp(one, "given") && !strcmp(two, "given"), "*o = i");
    CALL("nothing", &one);
    check(one && !strcmp(one, ""), "*o = \"\"");
    CALL("literals", 3, out);
    check(!strcmp(out[0], "even") && !strcmp(out[1], "odd") && !strcmp(out[2], "even"), "literals");
    for (i = 0; i < 3; i++) {
        char expected[80];

        sprintf(expected, "static, %d", i + 1);
        CALL("buffer", "static", &two);
        check(two && !strcmp(two, expected), "a static buffer");
    }
    CALL("replace", &both);
    check(both && !strcmp(both, "another"), "an INOUT string that is replaced");
}

static void test_objects(void)
{
    grpc_object_handle_t_np object;
    double x[] = { 1, 2, 3 }, sum = 0;

    check(grpc_object_handle_default_np(&object, "idioms/accumulator") == GRPC_NO_ERROR, "object");
    check(grpc_invoke_np(&object, "add", 3, x) == GRPC_NO_ERROR, "add");
    check(grpc_invoke_np(&object, "add", 2, x) == GRPC_NO_ERROR, "add");
    check(grpc_invoke_np(&object, "get", &sum) == GRPC_NO_ERROR && sum == 9, "get");
    check(grpc_object_handle_destruct_np(&object) == GRPC_NO_ERROR, "destruct");
}

int main(int argc, char **argv)
{
    if (argc != 2 || grpc_initialize(argv[1]) != GRPC_NO_ERROR) {
        fprintf(stderr, "usage: %s CONFIG\n", argv[0]);
        return EXIT_FAILURE;
    }
    errno = 0;
    test_numbers();
    test_complex();
    test_strings();
    test_objects();
    grpc_finalize();
    printf("%s\n", errors ? "FAILED" : "OK");
    return errors != 0;
}
