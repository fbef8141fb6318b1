"""Functions of compiled modules: strings, arrays of strings, and files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened

IDL = r"""
Module texts;
Globals {
    #include <malloc.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>

    static char buffer[20] = "static";
    static char *copy(const char *text) { return text ? strdup(text) : 0; }
}
Define length(IN string s, OUT long r[1]) { *r = s ? (long)strlen(s) : -1; }
Define same(IN string s, OUT string r) { *r = copy(s); }
Define nothing(OUT string r) { (void)r; }
Define borrowed(IN string given, IN int n, IN char array[n], OUT string r[7], OUT string same)
    {
        r[0] = given;
        r[1] = given + 1;
        r[2] = "literal";
        r[3] = buffer;
        r[4] = array;
        r[5] = *same = copy("twice");
        r[6] = r[5] + 2;
    }
Define replaced(INOUT string s) { free(*s); *s = "new"; }
Define in_use(OUT long bytes[1])
    { struct mallinfo2 all = mallinfo2(); *bytes = all.uordblks + all.hblkhd; }
Define appended(INOUT string s)
    { *s = realloc(*s, strlen(*s) + 2); strcat(*s, "!"); }
Define cut(INOUT string s) { (*s)[1] = 0; }
Define dropped(INOUT string s) { free(*s); *s = 0; }
Define joined(IN int n, IN string s[n], OUT string r)
    {
        *r = calloc(1, 1000000);
        for (int i = 0; i < n; i++)
            strcat(strcat(*r, s[i] ? s[i] : "(none)"), ";");
    }
Define numbered(IN int n, OUT string r[n])
    { for (int i = 0; i < n; i++) { r[i] = malloc(20); sprintf(r[i], "%d", i); } }
Define reversed(IN int n, INOUT string s[n])
    {
        for (int i = 0; i < n / 2; i++) {
            char *kept = s[i];
            s[i] = s[n - 1 - i];
            s[n - 1 - i] = kept;
        }
    }
Define size_of(IN filename f, OUT long r[1])
    { FILE *file = fopen(f, "r"); fseek(file, 0, SEEK_END); *r = ftell(file); fclose(file); }
Define written(IN string what, IN int times, OUT filename f)
    { FILE *file = fopen(f, "w"); while (times-- > 0) fputs(what, file); fclose(file); }
Define untouched(OUT filename f) { (void)f; }
Define extended(INOUT filename f) { FILE *file = fopen(f, "a"); fputs("more", file); fclose(file); }
Define concatenated(IN int n, IN filename parts[n], OUT filename whole)
    {
        FILE *out = fopen(whole, "w");
        for (int i = 0; i < n; i++) {
            FILE *in = fopen(parts[i], "r");
            for (int c; (c = getc(in)) != EOF;)
                putc(c, out);
            fclose(in);
        }
        fclose(out);
    }
Define path_of(IN filename f, OUT string r) { *r = strdup(f); }
"""

TEXTS = ["", "a", "with spaces", "\N{SNOWMAN} and more", "x" * 100_000, "\udcff"]


@pytest.mark.parametrize("text", TEXTS, ids=["empty", "one", "spaces", "UTF-8", "long", "byte"])
def test_strings_go_there_and_back(each_module_grid: Grid, text: str) -> None:
    assert each_module_grid.function("texts/same")(text) == text
    assert each_module_grid.function("texts/length")(text)[0] == len(os.fsencode(text))


def test_bytes_and_paths_are_strings_too(module_grid: Grid) -> None:
    assert module_grid.function("same")(b"bytes") == "bytes"
    assert module_grid.function("same")(Path("/a/b")) == "/a/b"


def test_none_is_a_null_pointer(each_module_grid: Grid) -> None:
    assert each_module_grid.function("same")(None) is None
    assert each_module_grid.function("length")(None)[0] == -1
    assert each_module_grid.function("nothing")() is None
    joined = each_module_grid.function("joined")
    assert joined(3, ["a", None, "c"]) == "a;(none);c;"


@pytest.mark.parametrize("count", [0, 1, 3, 5_000])
def test_arrays_of_strings(each_module_grid: Grid, count: int) -> None:
    texts = [str(i) for i in range(count)]
    joined = each_module_grid.function("texts/joined")(count, texts)
    assert joined == "".join(text + ";" for text in texts)
    assert each_module_grid.function("texts/numbered")(count) == texts


def test_strings_that_are_changed_are_returned(each_module_grid: Grid) -> None:
    assert each_module_grid.function("appended")("well") == "well!"
    assert each_module_grid.function("cut")("well") == "w"
    assert each_module_grid.function("dropped")("well") is None
    assert each_module_grid.function("reversed")(3, ["a", None, "c"]) == ["c", None, "a"]
    with pytest.raises(gridrpc.ArgumentError, match="`s` is missing"):
        each_module_grid.function("appended")()


def test_any_iterable_of_strings_is_an_array(module_grid: Grid) -> None:
    joined = module_grid.function("joined")
    assert joined(2, ("a", b"b")) == "a;b;"
    assert joined(2, (c for c in "ab")) == "a;b;"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("length", (5,), "`s` has to be a string, not int"),
        ("length", (["a"],), "`s` has to be a string, not list"),
        ("length", ("a\0b",), "`s` has a zero byte in it"),
        ("joined", (1, "a"), "`s` has to be a list of strings, not one string"),
        ("joined", (1, 5), "`s` has to be a list of strings, not int"),
        ("joined", (1, None), "`s` has to be a list of strings, not NoneType"),
        ("joined", (1, [5]), "`s` has to be a list of strings"),
        ("joined", (1, ["a\0b"]), "`s` has a zero byte in it"),
        ("joined", (3, ["a", "b"]), "`s` has 2 strings, but needs 3"),
        ("joined", (1, ["a", "b"]), "`s` has 2 strings, but needs 1"),
        ("size_of", (None,), "`f` has to name a file"),
        ("size_of", ("",), "`f` has to name a file"),
        ("size_of", (5,), "`f` has to be a string, not int"),
        ("written", ("x", 1), "`f` is missing"),
        ("written", ("x", 1, None), "`f` has to name a file"),
    ],
)
def test_texts_that_do_not_fit(
    module_grid: Grid, name: str, arguments: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(gridrpc.ArgumentError, match="argument " + said):
        module_grid.function(f"texts/{name}")(*arguments)


@pytest.mark.parametrize("size", [0, 10, 3_000_000])
def test_files_travel_by_content(each_module_grid: Grid, tmp_path: Path, size: int) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"\0" * size)
    assert each_module_grid.function("size_of")(file)[0] == size
    assert each_module_grid.function("size_of")(str(file))[0] == size
    path = each_module_grid.function("path_of")(file)
    assert path != str(file)


def test_files_that_are_results_are_written_where_the_caller_says(
    each_module_grid: Grid, tmp_path: Path
) -> None:
    file = tmp_path / "out"
    file.write_text("something longer than what comes")
    assert each_module_grid.function("written")("ab", 3, file) is None
    assert file.read_text() == "ababab"
    each_module_grid.function("written")("0123456789", 100_000, file)
    assert file.stat().st_size == 1_000_000
    each_module_grid.function("untouched")(tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == b""
    each_module_grid.function("extended")(file)
    assert file.read_text().endswith("789more")


def test_arrays_of_files(each_module_grid: Grid, tmp_path: Path) -> None:
    parts = [tmp_path / str(i) for i in range(3)]
    for part in parts:
        part.write_text(part.name * 2)
    concatenated = each_module_grid.function("concatenated")
    concatenated(3, parts, tmp_path / "whole")
    assert (tmp_path / "whole").read_text() == "001122"


def test_a_file_that_cannot_be_read_says_so(module_grid: Grid) -> None:
    size_of = module_grid.function("size_of")
    with pytest.raises(FileNotFoundError, match="`f` names `/no/such/file`"):
        size_of("/no/such/file")
    with pytest.raises(IsADirectoryError, match="`f` names `/tmp`"):
        size_of("/tmp")


def test_a_result_that_cannot_be_written_says_so(module_grid: Grid, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"could not write .*missing/out"):
        module_grid.function("written")("x", 1, tmp_path / "missing" / "out")


def test_files_of_calls_are_gone_afterwards(module_grid: Grid, tmp_path: Path) -> None:
    before = set(os.listdir("/tmp"))
    file = tmp_path / "in"
    file.write_text("x")
    path = module_grid.function("path_of")(file)
    assert path.startswith("/proc/")
    assert {name for name in set(os.listdir("/tmp")) - before if "gridrpc" in name} == set()


def test_texts_that_are_not_the_functions_to_give_are_not_freed(each_module_grid: Grid) -> None:
    array = np.frombuffer(b"array\0", np.int8)
    for _ in range(20):
        texts, same = each_module_grid.function("borrowed")("given", array)
        assert texts == ["given", "iven", "literal", "static", "array", "twice", "ice"]
        assert same == "twice"
        assert each_module_grid.function("replaced")("old") == "new"


def test_texts_of_malloc_are_freed(compile_idl: CompileIdl) -> None:
    with opened(workers=1, modules=[compile_idl(IDL)]) as grid:
        in_use, joined = grid.function("in_use"), grid.function("joined")
        joined(1, ["text"])
        before = in_use()[0]
        for _ in range(50):
            joined(1, ["text"])
        assert in_use()[0] < before + 10_000_000, "each call left 1 MB behind"
