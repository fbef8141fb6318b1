"""Remote Linpack: what follows from cases, and the options."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.linpack.document import answer_values, document_of, headline, notices
from gridbench.linpack.model_kind import COMMUNICATION, COMPUTATION, LinpackAnswer, series_of
from gridbench.linpack.options import LinpackParameters, LinpackPath, ShapedLink, Speed, link_of
from gridbench.linpack.record import (
    FORM,
    LinpackCase,
    Solve,
    operations,
    transferred,
    wrong_solution,
)
from gridbench.linpack.result_kind import RULES
from gridbench.linpack.servers import INTERFACE
from gridbench.model.cost_model import TOTAL
from gridbench.model.held_out import EACH
from gridbench.pages.document import markdown
from gridbench.pages.render import page
from gridbench.pages.terminal import print_document
from gridbench.result_kind import kind_of
from gridbench.schema import read_parameters
from linpack_results import (
    DISTURBED,
    FAST,
    SERVER,
    SLOW,
    case_of,
    header_of,
    measured,
    write_folder,
)
from running import REPOSITORY, Run

EVIL = "<script>document.title='broken'</script><b>bold</b>"

FOLDERS: dict[str, list[LinpackCase]] = {
    "all": measured(),
    "nothing": [],
    "failed": [case_of("tls", 100, (0, 1), status="failed", why="the server ended", solves=())],
    "one size": measured(sizes=(400,)),
    "local only": measured({}),
    "disturbed": [replace(one, load=DISTURBED) for one in measured(repeats=1)],
}


def printed(found: Sequence[LinpackCase], width: int = 160) -> str:
    out = io.StringIO()
    print_document(Console(file=out, width=width), document_of(header_of(), found))
    return out.getvalue()


def answer_of(found: Sequence[LinpackCase]) -> LinpackAnswer:
    return LinpackAnswer(series_of(found))


def solve_of(seconds: float, calculation: float = 0.0) -> Solve:
    return Solve(seconds=seconds, calculation=calculation, info=0, residual=0.01)


# Figures.


def test_operations_and_bytes_are_those_of_the_benchmark() -> None:
    assert operations(300) == pytest.approx(2 / 3 * 300**3 + 2 * 300**2)
    # A and b there, x and the pivots back.
    assert transferred(300) == 8 * 300 * 300 + 8 * 300 + 8 * 300 + 4 * 300


def test_a_time_is_the_median_and_of_a_slowed_client_the_mean() -> None:
    solves = tuple(map(solve_of, (1.0, 1.0, 7.0)))
    assert case_of("tls", 100, (0, 1), solves=solves).seconds == 1.0
    # It stood still in the third call for the first and the second as well.
    assert case_of("tls", 100, (0, 1), solves=solves, speed=0.1).seconds == 3.0


def test_communication_is_what_the_solver_does_not_take() -> None:
    remote = case_of("tls", 100, (0.25, 1.0))
    assert (remote.computation, remote.communication) == (1.0, 0.25)
    local = case_of("local", 100, (0.25, 1.0))
    assert (local.computation, local.communication) == (1.25, 0.0)


@pytest.mark.parametrize(
    ("solve", "why"),
    [
        (Solve(seconds=1, calculation=1, info=7, residual=0), "a pivot of 0 in column 7"),
        (Solve(seconds=1, calculation=1, info=-4, residual=0), "dgesv refused argument 4"),
        (Solve(seconds=1, calculation=1, info=0, residual=16.5), "off by 16.5 rounding errors"),
        (Solve(seconds=1, calculation=1, info=0, residual=float("nan")), "a solution is wrong"),
    ],
)
def test_wrong_solutions_are_reported(solve: Solve, why: str) -> None:
    assert why in wrong_solution([solve_of(1.0), solve])
    assert wrong_solution([solve_of(1.0)]) == ""


# The model.


def test_constants_are_found_and_lie_in_their_intervals() -> None:
    models = answer_of(measured()).models
    for path, known in SERVER.items():
        estimates = {(one.part, one.name): one for one in models[f"C, {path}"].estimates}
        for key, value in (
            ((COMMUNICATION, "start"), known.comm0),
            ((COMMUNICATION, "byte"), 1 / known.bandwidth),
            ((COMPUTATION, "operation"), 1 / known.speed),
        ):
            found = estimates[key]
            assert found.value == pytest.approx(value, rel=0.03)
            assert found.low is not None
            assert found.high is not None
            assert found.low * 0.98 <= value <= found.high * 1.02


def test_sizes_held_out_are_predicted() -> None:
    models = answer_of(measured(spread=0.0, repeats=1)).models
    assert len(models) == 6
    for model in models.values():
        (each,) = (one for one in model.held_out[TOTAL] if one.what == EACH)
        assert each.largest < 1e-6


def test_results_are_modelled_and_predicted_by_the_commands(gridbench: Run, tmp_path: Path) -> None:
    write_folder(tmp_path / "linpack", measured(spread=0.0, repeats=1))
    assert gridbench("model", "linpack", "--out", "model.json").returncode == 0
    done = gridbench("simulate", "--profile", "model.json", "--case", "n=3000", "--json")
    assert done.returncode == 0, done.stderr
    text = json.dumps(json.loads(done.stdout))
    assert "outside what was measured" in text
    assert "C at 10% speed, 100mbit+10ms" in text


# Overtaking.


def test_a_server_overtakes_where_both_take_as_long() -> None:
    answer = answer_of(measured(spread=0.0))

    def equal(path: str, n: float) -> float:
        local, remote = SLOW, SERVER[path]
        return sum(remote.seconds(round(n))) - sum(local.seconds(round(n)))

    for path in SERVER:
        found = answer.overtaking("C at 10% speed", path)
        assert found is not None
        assert found.predicted is not None
        assert found.measured.kind == found.predicted.kind == "from"
        below, above = found.predicted.at * 0.98, found.predicted.at * 1.02
        assert equal(path, below) > 0 > equal(path, above)
        assert found.measured.at == pytest.approx(found.predicted.at, rel=0.15)


def test_a_server_as_fast_as_the_client_never_overtakes() -> None:
    found = answer_of(measured()).overtaking("C", "socket")
    assert found is not None
    assert found.measured.kind == "never"
    assert FAST.speed == SERVER["socket"].speed
    assert (
        "Client in C: a server is faster at no size over socket"
        in headline(answer_of(measured()), measured())[0]
    )


def test_repeats_that_overlap_decide_nothing() -> None:
    found = measured(spread=0.6)
    assert headline(answer_of(found), found)[0] == (
        "Client in C: a server is faster at no size over 100mbit+10ms; undecided over socket, as"
        " times of repeats overlap."
    )


def test_only_disturbed_cases_make_a_provisional_answer() -> None:
    found = FOLDERS["disturbed"]
    assert headline(answer_of(found), found)[0].startswith("Provisional: ")
    assert answer_values(found)["sentences"] == headline(answer_of(found), found)
    assert not headline(answer_of(measured()), measured())[0].startswith("Provisional: ")


def test_what_was_not_measured_is_reported() -> None:
    found = FOLDERS["failed"]
    assert "n = 100, C, tls: failed: the server ended." in notices(answer_of(found), found)


# The document.


@pytest.mark.parametrize("name", FOLDERS)
def test_a_document_is_written_as_before(name: str) -> None:
    found = FOLDERS[name]
    text = markdown(document_of(header_of(), found))
    same_as_golden(f"{text}\n{'-' * 80}\n{printed(found)}", f"linpack/{name}.md")


def test_the_page_shows_the_interface() -> None:
    assert INTERFACE in (REPOSITORY / "docs/linpack.md").read_text(encoding="utf-8")


def test_texts_are_escaped() -> None:
    found = [replace(one, status="failed", why=EVIL) for one in measured(repeats=1)]
    assert EVIL not in page(document_of(header_of(), found))


def test_pages_have_the_figures_of_the_paper() -> None:
    names = [one.name for one in document_of(header_of(), measured()).charts]
    assert names == ["performance-0", "performance-1", "throughput-0", "throughput-1"]


# Rows and rules.


def test_rows_have_time_performance_and_throughput(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, [case_of("tls", 100, (0.5, 0.5))])
    found = {row.metric: row for row in kind_of([folder]).rows(folder)}
    assert found["time of a call"].value == 1.0
    assert found["performance"].value == pytest.approx(operations(100))
    assert found["throughput"].value == pytest.approx(transferred(100) / 0.5)
    assert found["performance"].better == found["throughput"].better == "more"
    assert found["time of a call"].parameters["n"] == 100


def outcomes(found: Sequence[LinpackCase], folder: Path) -> dict[str, str]:
    write_folder(folder, found)
    return {one.rule: one.outcome for one in RULES.judge(RULES.read(folder))}


def test_rules_are_kept_and_broken(tmp_path: Path) -> None:
    assert set(outcomes(measured(), tmp_path).values()) == {"kept"}
    disturbed = outcomes(FOLDERS["disturbed"], tmp_path)
    assert disturbed["nothing else was at work"] == disturbed["repeated"] == "broken"
    assert outcomes(FOLDERS["failed"], tmp_path)["complete"] == "broken"
    wrong = replace(case_of("tls", 100, (0, 1)), solves=(replace(solve_of(1), residual=99.0),))
    assert outcomes([wrong], tmp_path)["correct"] == "broken"


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert FORM.read(write_folder(tmp_path, measured()))[1] == measured()


# Options.


def test_paths_are_read() -> None:
    assert link_of("1gbit") == ShapedLink(1e9, 0.0)
    assert link_of("100mbit+10ms") == ShapedLink(100e6, 10e-3)
    assert link_of("tls") is None
    for text in ("ssl", "1gbit+", "1gbit+x", "1gb"):
        with pytest.raises(InputError, match="is no path to a server"):
            LinpackPath().read(text)


def test_speeds_are_read() -> None:
    assert Speed().read("10%") == Speed().read(0.1) == 0.1
    for text in ("100%", "0", "-5%", "fast"):
        with pytest.raises(InputError, match="is no speed of a client"):
            Speed().read(text)


def test_wrong_options_say_what_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, why in (
        ({"sizes": "100,20000"}, "10,000"),
        ({"languages": "Fortran"}, "Fortran"),
        ({"paths": ""}, "--paths"),
    ):
        with pytest.raises(InputError, match=why):
            read_parameters(LinpackParameters, given)
    with pytest.raises(InputError, match="1000 threads need as many processors"):
        read_parameters(LinpackParameters, {"threads": "1000"}).check()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(InputError, match="root only"):
        read_parameters(LinpackParameters, {"paths": "tls,1gbit"}).links()
    assert read_parameters(LinpackParameters, {}).links() == {}
