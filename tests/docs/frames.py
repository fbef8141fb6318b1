"""Programs around the examples in C, which show a few statements each.

They get the variables that they use, a module `sample` as docs/c/README.md has it, and a session
that has begun. An example that opens the grid itself is not given an open one.
"""

from __future__ import annotations

_BEGIN = r"""
#include <grpc.h>
#include <ninf.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { N = 2 };

static void check(int code, const char *what)
{
    if (code != 0) {
        grpc_perror_np(what);
        exit(1);
    }
}

static void use(grpc_sessionid_t id) { (void)id; }
"""
_MAIN = r"""
int main(int argc, char **argv)
{
    int n = N, next = 1, tasks = 4;
    /* 100 small matrices, or one of 100 by 100. */
    static double a[100][100], b[10000], c[100][100], d[10000], e[10000];
    grpc_function_handle_t mmul, handle;
    grpc_sessionid_t id = 0;
    (void)argc, (void)argv, (void)n, (void)next, (void)tasks, (void)a, (void)b, (void)c, (void)d;
    (void)e, (void)mmul, (void)handle, (void)id, (void)use, (void)check;
"""
_OPEN = r"""
    check(grpc_initialize(NULL), "grpc_initialize");
    check(grpc_function_handle_default(&mmul, "sample/mmul"), "mmul");
    check(grpc_function_handle_default(&handle, "sample/mmul"), "mmul");
    check(grpc_call_async(&mmul, &id, n, a[0], b, c[0]), "mmul");
"""
_END = "    return 0;\n}\n"


def is_synopsis(text: str) -> bool:
    """Headers and a declaration?"""
    return text.startswith("#include") and "{" not in text


def framed(text: str) -> str:
    """A program that runs an example."""
    if "int main(" in text:
        return _BEGIN + text
    opens = "grpc_initialize(" in text
    return "".join((_BEGIN, _MAIN, "" if opens else _OPEN, "{\n", text, "}\n", _END))
