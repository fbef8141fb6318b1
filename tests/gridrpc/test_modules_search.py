"""Finding compiled modules: places, names, the catalogue, and files that are no modules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl, opened

IDL = "Module places; Define one(OUT int r[1]) { *r = 1; } Define common(OUT int r[1]) { *r = 1; }"
OTHER = "Module other; Define two(OUT int r[1]) { *r = 2; } Define common(OUT int r[1]) { *r = 2; }"
ANOTHER_PLACES = "Module places; Define one(OUT int r[1]) { *r = 111; }"


@pytest.fixture(autouse=True)
def _places_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRIDRPC_CATALOGUE", str(tmp_path / "catalogue"))
    monkeypatch.delenv("GRIDRPC_MODULE_PATH", raising=False)


def one_of(grid: Grid) -> int:
    return int(grid.function("places/one")()[0])


@pytest.mark.parametrize("worker", ["native", "python"])
def test_modules_are_files_or_folders(compile_idl: CompileIdl, worker: str) -> None:
    file = compile_idl(IDL)
    for places in ([file], [file.parent], [str(file)], file, str(file.parent)):
        with opened(workers=1, worker=worker, modules=places) as grid:
            assert one_of(grid) == 1


def test_the_working_directory_may_change(
    compile_idl: CompileIdl, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = compile_idl(IDL)
    monkeypatch.chdir(file.parent)
    with opened(workers=1, worker="native", modules=[file.name]) as grid:
        assert one_of(grid) == 1
        function = grid.function("places/common")
        monkeypatch.chdir("/")
        assert function()[0] == 1


def test_the_module_path_and_the_catalogue_are_looked_through(
    compile_idl: CompileIdl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue" / "other.so").symlink_to(compile_idl(OTHER))
    monkeypatch.setenv("GRIDRPC_MODULE_PATH", f"/no/such/place::{compile_idl(IDL).parent}")
    with opened(workers=1, worker="native") as grid:
        assert one_of(grid) == 1
        assert grid.function("other/two")()[0] == 2


def test_what_is_named_goes_above_the_module_path(
    compile_idl: CompileIdl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDRPC_MODULE_PATH", str(compile_idl(IDL)))
    with opened(workers=1, worker="native", modules=[compile_idl(ANOTHER_PLACES)]) as grid:
        assert one_of(grid) == 111
    with opened(workers=1, worker="native") as grid:
        assert one_of(grid) == 1


def test_modules_in_the_configuration(compile_idl: CompileIdl, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(f'[grid]\nworker = "native"\nmodules = ["{compile_idl(IDL)}"]\n')
    with opened(workers=1, config=file) as grid:
        assert one_of(grid) == 1


def test_bare_names_are_looked_for_in_all_modules(compile_idl: CompileIdl) -> None:
    with opened(workers=1, modules=[compile_idl(OTHER), compile_idl(IDL)]) as grid:
        assert grid.function("one")()[0] == 1
        assert grid.function("two")()[0] == 2
        assert grid.function("common")()[0] == 2, "the first place counts"
        with pytest.raises(ValueError, match="`three` is not a function's name"):
            grid.function("three")


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("places/none", gridrpc.FunctionNotFound, "has no function `none`; it has one, common"),
        ("places/none.one", gridrpc.FunctionNotFound, "has no function `none.one`"),
        ("places/", ValueError, "is not a function's name"),
        ("/one", ValueError, "is not a function's name"),
        ("", ValueError, "is not a function's name"),
        ("nowhere/one", gridrpc.FunctionNotFound, "there is no module `nowhere` in `/"),
        ("../one", gridrpc.FunctionNotFound, "there is no module"),
    ],
)
def test_names_that_are_not_there(
    compile_idl: CompileIdl, name: str, kind: type[Exception], said: str
) -> None:
    with (
        opened(workers=1, modules=[compile_idl(IDL)]) as grid,
        pytest.raises(kind, match=said),
    ):
        grid.function(name)


def test_no_place_to_look_at_is_said_with_what_to_do() -> None:
    with (
        opened(workers=1) as grid,
        pytest.raises(gridrpc.FunctionNotFound, match="GRIDRPC_MODULE_PATH"),
    ):
        grid.function("places/one")


def test_places_that_are_not_there_are_refused() -> None:
    with pytest.raises(gridrpc.ConfigError, match=r"`/no/such\.so`, which is not there"):
        gridrpc.Grid(modules=["/no/such.so"])


def test_files_that_are_no_modules(tmp_path: Path) -> None:
    library = next(Path(sys.prefix).rglob("*multiarray*.so"))
    for content, said in (
        (b"", "it is not a shared library"),
        (b"hello", "it is not a shared library"),
        (Path(sys.executable).read_bytes()[:5_000], "is not a module"),
        (library.read_bytes(), "a shared library without an interface"),
    ):
        (tmp_path / "broken.so").write_bytes(content)
        with opened(workers=1, modules=[tmp_path]) as grid:
            with pytest.raises(gridrpc.FunctionNotFound, match=said):
                grid.function("broken/f")
            with pytest.raises(ValueError, match="is not a function's name"):
                grid.function("f")


def test_a_module_of_another_version_says_to_compile_it_again(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    content = compile_idl(IDL).read_bytes()
    assert b"gridrpc module 1\n" in content
    (tmp_path / "places.so").write_bytes(
        content.replace(b"gridrpc module 1\n", b"gridrpc module 9\n")
    )
    with (
        opened(workers=1, modules=[tmp_path]) as grid,
        pytest.raises(gridrpc.FunctionNotFound, match=r"another version .*compile it again"),
    ):
        grid.function("places/one")


@pytest.mark.parametrize("worker", ["native", "python"])
def test_a_file_that_has_gone_is_an_error_of_the_call(
    compile_idl: CompileIdl, tmp_path: Path, worker: str
) -> None:
    file = Path(shutil.copy(compile_idl(IDL), tmp_path / "places.so"))
    with opened(workers=1, worker=worker, modules=[file]) as grid:
        one = grid.function("places/one")
        file.unlink()
        with pytest.raises(gridrpc.RemoteError, match=r"could not read `.*places.so`"):
            one()
        assert grid.function("places/common") is not None


def test_a_module_that_was_compiled_again_is_told_apart(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    changed = "Module places; Define one(IN int more, OUT int r[1]) { *r = more; }"
    file = Path(shutil.copy(compile_idl(IDL), tmp_path / "places.so"))
    with opened(workers=1, worker="native", modules=[file]) as grid:
        one = grid.function("places/one")
        new = Path(shutil.copy(compile_idl(changed), tmp_path / "new"))
        new.rename(file)
        with pytest.raises(TypeError, match="another version of the module"):
            one()


def test_a_library_that_cannot_be_loaded_is_an_error_of_the_call(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    part = tmp_path / "libpart.so"
    command = ["cc", "-shared", "-x", "c", "-", "-o", str(part)]
    subprocess.run(command, input="int part(void) { return 5; }", text=True, check=True)
    module = compile_idl(f"""
        Module parted; Globals {{ int part(void); }} Library "{part}";
        Define one(OUT int r[1]) {{ *r = part(); }}
    """)
    part.unlink()
    with (
        opened(workers=1, worker="native", modules=[module]) as grid,
        pytest.raises(gridrpc.RemoteError, match=r"could not load .*libpart"),
    ):
        grid.function("parted/one")()
