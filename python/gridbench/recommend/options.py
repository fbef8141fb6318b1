"""`gridbench recommend`: reads results, decides, and writes the page in all forms."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.printing import Printing, printing_options
from gridbench.quantities import CORES

if TYPE_CHECKING:
    from gridbench.recommend.decision import PlannedWork

_PAGE = "recommendation.html"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SECONDS = 120
"""After which a browser is ended."""


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench recommend runs/compare runs/scenario-4",
        "gridbench recommend runs/* --work 100h --price 0.04",
        "gridbench recommend lab/runs cloud/runs --work 5000x30s --out proposal",
    ),
)
@click.argument(
    "sources", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FOLDER..."
)
@click.option(
    "--work",
    metavar="TIME|NxTIME",
    help="What has to be done: the time on one core, such as 100h, or tasks and the time of each,"
    " such as 5000x30s. Without it there are no core-hours.",
)
@click.option(
    "--cores", type=CORES, metavar="N", help="Cores that may be used. [default: the most measured]"
)
@click.option("--price", type=float, metavar="X", help="Price of a core-hour, in any currency.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the page. [default: runs/recommendation-<time>]",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@printing_options
def recommend(
    *,
    sources: tuple[Path, ...],
    work: str | None,
    cores: int | None,
    price: float | None,
    out: Path | None,
    force: bool,
    printing: Printing,
) -> None:
    """Write the one-page recommendation from any results.

    FOLDERs are results of run, micro, scenario, advise, sync, data or compare, of one or several
    machines; of run and advise also folders above theirs. The page says which engine to use, how
    large tasks should be, on how many cores, the bottleneck, how sure that is, and what it costs in
    core-hours. Several results of the same kind become a history. Nothing is measured: what is
    missing is named with the command that measures it.

    DIR then holds recommendation.html, recommendation.md with its pictures as SVG, and, if Chromium
    is installed, recommendation.pdf.
    """
    if price is not None and (work is None or not 0 <= price < math.inf):
        raise InputError(
            "--price is the price of a core-hour of --work",
            remedy="give a number from 0 on, and the work, such as --work 100h",
        )
    sys.exit(
        run_recommend(
            sources,
            work=None if work is None else planned_work(work, price),
            cores=cores,
            folder=out,
            force=force,
            printing=printing,
        )
    )


def run_recommend(
    sources: Sequence[Path],
    *,
    work: PlannedWork | None,
    cores: int | None,
    folder: Path | None,
    printing: Printing,
    force: bool = False,
) -> int:
    """Write the recommendation; the exit status. InputError if it is not a results folder."""
    from gridbench.atomic_write import write_file
    from gridbench.pages.document import StaticChart, markdown, write_page
    from gridbench.pages.terminal import print_document
    from gridbench.recommend.decision import recommendations
    from gridbench.recommend.document import document_of, to_record
    from gridbench.recommend.evidence import read_evidence
    from gridbench.results_folder import default_folder, refuse_to_replace, unusable

    folder = folder or default_folder("recommendation")
    refuse_to_replace(folder, [_PAGE], "a recommendation", replace=force)
    made = recommendations(read_evidence(sources), work, cores)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(folder, error) from None
    page = folder / _PAGE
    document = document_of(made)
    write_page(document, page)
    write_file(folder / "recommendation.md", markdown(document))
    for _, block in document.blocks("page"):
        if isinstance(block, StaticChart):
            write_file(folder / block.file, block.svg)
    no_pdf = write_pdf(page, folder / "recommendation.pdf")
    print_document(printing.tables(), document)
    printing.document(
        lambda: {
            "recommendation": document.sentences[0],
            "machines": [to_record(one) for one in made],
            "results": folder,
        }
    )
    if no_pdf:
        printing.say(f"no PDF: {no_pdf}")
    printing.say(f"results: {folder}")
    return 0


def write_pdf(page: Path, out: Path) -> str:
    """Print a page as PDF with a browser. Why that was not possible, or nothing."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        return "Chromium is not installed; run `apt-get install chromium`, or print the HTML page"
    with tempfile.TemporaryDirectory(prefix="gridbench-browser-") as profile:
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-sync",
            # Nothing listens there: the page can reach no network.
            "--proxy-server=http://127.0.0.1:9", f"--user-data-dir={profile}",
            "--no-pdf-header-footer", f"--print-to-pdf={out.resolve()}", page.resolve().as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{program} did not end within {_SECONDS} s; print the HTML page instead"
    if done.returncode or not out.exists():
        return f"{program} failed with exit status {done.returncode}; print the HTML page instead"
    return ""


def planned_work(work: str, price: float | None) -> PlannedWork:
    """The work of `--work`: a time of one core, or `NxTIME`. InputError if it is not one."""
    from gridbench.advise.work import parse_time
    from gridbench.recommend.decision import PlannedWork

    count, times, each = work.lower().partition("x")
    if not times:
        return PlannedWork(parse_time("--work", work), None, price)
    digits = count.strip().replace(",", "")
    if not digits.isascii() or not digits.isdecimal() or not 0 < int(digits[:9]) <= 10_000_000:
        raise InputError(
            f"--work: `{count[:40]}` is no number of tasks",
            remedy="give the time of one core, such as 100h, or tasks and their time: 5000x30s",
        )
    return PlannedWork(int(digits) * parse_time("--work", each), int(digits), price)
