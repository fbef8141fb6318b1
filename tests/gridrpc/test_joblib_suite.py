"""joblib's own tests, as they are installed, with our backend beside loky."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

#: What passes with loky and not here, by the function's name, and why that is meant.
DIFFERENT = {
    "test_error_capture": "an error in a task does not replace the workers: they survive it",
    "test_auto_memmap_on_arrays_from_generator": "arrays come from shared memory, not from files",
    "test_memmapping_leaks": "there are no temporary files that could be left",
}


def test_as_many_pass_as_with_loky(tmp_path: Path) -> None:
    passed, failed = outcomes("gridrpc", tmp_path)
    assert len(passed | failed) > 100, "joblib's tests are no longer found as they were"
    mended = {name.partition("[")[0] for name in passed} & set(DIFFERENT)
    assert not mended, "these pass: take them from the list"
    unexpected = {name for name in failed if name.partition("[")[0] not in DIFFERENT}
    if unexpected:
        # They may fail with loky, too.
        with_loky, _ = outcomes("loky", tmp_path)
        unexpected = {name for name in unexpected if name.replace("gridrpc", "loky") in with_loky}
    assert not unexpected, (tmp_path / "gridrpc.txt").read_text(encoding="utf-8")[-20_000:]


def outcomes(backend: str, folder: Path) -> tuple[set[str], set[str]]:
    """Names of joblib's tests with a backend that pass, and of those that fail."""
    report = folder / f"{backend}.xml"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "with_gridrpc"),
        *("--pyargs", "joblib.test.test_parallel", "-k", backend, f"--junitxml={report}"),
    ]
    plugin = Path(__file__).parent / "joblib_suite"
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(plugin)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False,
    )  # fmt: skip
    (folder / f"{backend}.txt").write_text(ran.stdout, encoding="utf-8")
    assert report.exists(), ran.stdout
    passed, failed = set(), set()
    for case in ElementTree.parse(report).iter("testcase"):
        states = {child.tag for child in case}
        if states & {"failure", "error"}:
            failed.add(case.get("name", ""))
        elif "skipped" not in states:
            passed.add(case.get("name", ""))
    return passed, failed
