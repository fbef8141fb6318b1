"""How often engines and cases are run, until their outcome is known, and the sentence about it."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from gridbench.errors import InputError
from gridbench.experiment import Bench
from gridbench.process.interrupt import Interrupt
from gridbench.quantities import AUTO, ROUNDS
from gridbench.report.prose import verdict
from gridbench.report.run_analysis import studies_of, together
from gridbench.run.comparison import outcome_sentence
from gridbench.run.experiment import rounds
from gridbench.run.runner import EngineRun
from gridbench.scenario.experiment import ScenarioExperiment
from gridbench.scenario.options import ScenarioParameters
from gridbench.scenario.results import CaseResult
from gridbench.statistics.claims import FEWEST, MOST, apart, decided, settled, undecided
from gridbench.statistics.interval import index_of_median
from running import MakeSetup, Run, accept
from scenario_results import all_done
from test_verdicts import runs_of

A, B = "gridrpc-native", "process-pool"
FAST, SLOW = (1.0, 1.01, 1.02), (2.0, 2.1, 2.2)


def test_one_of_two_is_ahead_if_the_ratio_excludes_equality() -> None:
    assert decided(FAST, SLOW) == "first"
    assert decided(SLOW, FAST) == "second"
    # Two rounds have no bounds, and what takes no time has no ratio.
    assert decided(FAST[:2], SLOW) == "open"
    assert decided((0.0, 0.0, 0.0), SLOW) == "open"
    # A late round among nine does not hide who is faster; among three it does.
    assert decided((*FAST, *FAST, *FAST[:2], 3.0), SLOW * 3) == "first"
    assert decided((1.0, 1.01, 2.15), SLOW) == "open"


def test_two_are_alike_only_if_both_bounds_say_so() -> None:
    close = (1.0, 1.01, 0.99, 1.005)
    assert decided(close, (1.001, 1.011, 0.991, 1.006)) == "alike"
    assert decided(close, (1.0, 1.2, 0.9, 1.01)) == "open"
    assert decided((1.0, 1.2, 0.9, 1.01), (1.0, 1.2, 0.9, 1.01), alike=1.4) == "alike"
    # Ahead by little is ahead.
    assert decided(FAST, [value * 1.045 for value in FAST]) == "first"


def test_equals_are_rarely_said_to_differ() -> None:
    draw = random.Random(1)
    claimed = 0
    for _ in range(300):
        one: list[float] = []
        other: list[float] = []
        decision = "open"
        while decision == "open" and len(one) < MOST:
            one.append(draw.lognormvariate(0, 0.03))
            other.append(draw.lognormvariate(0, 0.03))
            decision = decided(one, other)
        claimed += decision in ("first", "second")
    assert claimed <= 9
    # Two rounds that happen to be in order are no proof, and a single one is none at all.
    assert not apart((1.0, 1.02), (1.03, 1.05))
    assert apart((1.0, 1.02), (2.0, 2.03))
    assert not apart((1.0,), (2.0, 2.0))


def test_a_single_one_is_settled_when_no_round_is_far_from_the_median() -> None:
    assert settled((1.0, 1.04, 1.08), within=1.05)
    assert not settled((1.0, 1.04, 1.10), within=1.05)
    assert not settled((0.9, 1.04, 1.05), within=1.05)
    assert not settled((1.0, 1.0))


def test_who_has_to_go_on() -> None:
    assert undecided({"a": FAST, "b": SLOW}) == []
    assert undecided({"a": FAST, "b": SLOW[:2]}) == ["b"]
    assert undecided({"a": FAST, "b": ()}) == ["b"]
    assert undecided({"a": FAST}) == []
    assert undecided({"a": (1.0, 1.0, 2.0)}) == ["a"]
    # Who is far behind need not run again to find out which of the others is faster.
    rival = (0.9, 1.5, 1.01)
    assert sorted(undecided({"slow": SLOW, "a": FAST, "b": rival})) == ["a", "b"]


def test_the_middle_round() -> None:
    assert index_of_median([3.0, 1.0, 2.0]) == 2
    assert index_of_median([4.0, 1.0, 3.0, 2.0]) == 3
    assert index_of_median([7.0]) == 0


def test_sentences_say_who_won_how_much_and_how_sure() -> None:
    assert outcome_sentence({"a": SLOW, "b": FAST}) == (
        "b won, 1.010 s against 2.100 s of a, 2.08 times in the medians; its slowest run of 3 was"
        " faster than the fastest of 3."
    )
    assert outcome_sentence({"a": (*FAST, *FAST, *FAST[:2], 3.0), "b": SLOW * 3}) == (
        "a won, 1.010 s against 2.100 s of b, 2.08 times in the medians of 9 and 9 runs; the ratio"
        " is above 1.98 with 95 % confidence."
    )
    close = (1.0, 1.01, 0.99, 1.005)
    assert outcome_sentence({"a": close, "b": (1.001, 1.011, 0.991, 1.006)}) == (
        "No engine won: a and b are as fast as each other within 5 %, 1.002 s and 1.003 s in the"
        " medians of 4 and 4 runs."
    )
    assert outcome_sentence({"a": FAST, "b": (0.9, 1.5, 1.1)}) == (
        "Provisional: a 1.01 s, b 1.10 s (1.09 times); rounds scatter so much that b may be as"
        " fast."
    )
    assert outcome_sentence({"a": FAST, "b": SLOW[:1]}) == (
        "Provisional: a 1.01 s, b 2.00 s (1.98 times); a claim takes 2 undisturbed rounds of each"
        " engine."
    )
    assert outcome_sentence({"a": FAST}) == "a ran 3 times, in 1.000 s to 1.020 s."
    assert outcome_sentence({"a": FAST[:1]}) == ""


def test_disturbed_rounds_give_a_provisional_answer() -> None:
    assert outcome_sentence(
        {"pool": [], "grid": []}, {"pool": [1.3, 1.2, 1.27], "grid": [0.8, 0.82, 0.81]}
    ) == (
        "Provisional: grid 810 ms, pool 1.27 s (1.57 times); the machine was busy in 6 of 6 rounds."
    )
    # All rounds of all engines are compared, as other programs slow both sides then.
    assert outcome_sentence({"a": [1.0], "b": []}, {"a": [3.0, 3.0], "b": [6.0]}) == (
        "Provisional: a 3.00 s, b 6.00 s (2 times); the machine was busy in 3 of 4 rounds."
    )
    assert outcome_sentence({"a": []}, {"a": [0.81]}) == (
        "Provisional: a 810 ms; the machine was busy in 1 of 1 round."
    )
    # Where undisturbed rounds suffice, disturbed ones change nothing.
    assert outcome_sentence({"a": SLOW, "b": FAST}, {"a": [0.1], "b": []}) == outcome_sentence(
        {"a": SLOW, "b": FAST}
    )


Outcome = Callable[[str, int | None], EngineRun]


def outcomes(
    totals: dict[str, Sequence[float]],
    *,
    failing: str = "",
    disturbed: Sequence[tuple[str, int]] = (),
) -> tuple[Outcome, list[tuple[str, int | None]]]:
    """Runs that take these times in turn, over and over; and the list of those that were made."""
    made: list[tuple[str, int | None]] = []

    def run(engine: str, number: int | None) -> EngineRun:
        made.append((engine, number))
        own, valid = totals[engine], (engine, number) not in disturbed
        total = own[((number or 1) - 1) % len(own)]
        status = int(engine == failing)
        return EngineRun(
            engine=engine,
            round=number,
            folder=Path(engine),
            record={"valid": valid and not status},
            exit_status=status,
            disturbed=not valid,
            total=total,
        )

    return run, made


def ran(
    engines: str,
    totals: dict[str, Sequence[float]],
    number: int | None,
    *,
    limit: float = math.inf,
    accept: bool = False,
    **how: object,
) -> tuple[list[tuple[str, int | None]], str]:
    run, made = outcomes(totals, **how)  # type: ignore[arg-type]
    message, records = io.StringIO(), list[EngineRun]()
    console = Console(file=message)
    for batch in rounds(
        list(engines), records, number, limit=limit, accept=accept, console=console
    ):
        records += [run(one.engine, one.round) for one in batch]
    return made, message.getvalue()


def test_rounds_go_on_until_it_is_known_who_is_faster() -> None:
    made, message = ran("ab", {"a": FAST, "b": SLOW}, None)
    # Each round begins with another engine.
    assert made == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)]
    assert "round 2: a 1.000 s, b 2.000 s so far" in message
    assert "round 3: a 1.000 s to 1.010 s, b 2.000 s to 2.100 s so far" in message


def test_engines_that_are_decided_on_do_not_run_again() -> None:
    equal = (1.0, 1.3, 0.8)
    made, _ = ran("abc", {"a": equal, "b": equal, "c": SLOW}, None)
    counts = {engine: sum(one == engine for one, _ in made) for engine in "abc"}
    assert counts == {"a": MOST, "b": MOST, "c": FEWEST}


def test_disturbed_rounds_are_made_up_for_and_failed_engines_left_out() -> None:
    made, message = ran("ab", {"a": FAST, "b": SLOW}, None, disturbed=[("a", 1), ("a", 3)])
    assert [number for engine, number in made if engine == "a"] == [1, 2, 3, 4, 5]
    assert [number for engine, number in made if engine == "b"] == [1, 2, 3]
    assert "a has no run that counts" in message
    made, _ = ran("ab", {"a": FAST, "b": SLOW}, None, failing="b")
    assert [engine for engine, _ in made] == ["a", "b", "a", "a"]
    made, _ = ran("b", {"b": SLOW}, 3, failing="b")
    assert made == [("b", 1)]


def test_a_number_of_rounds_is_kept_and_time_limits_the_others() -> None:
    made, _ = ran("ab", {"a": FAST, "b": SLOW}, 5)
    assert len(made) == 10
    assert ran("a", {"a": FAST}, 1)[0] == [("a", None)]
    made, message = ran("ab", {"a": FAST, "b": SLOW}, None, limit=0.0)
    assert made == [("a", 1), ("b", 1)]
    assert "no further round: it would end after the" in message
    # Where the load is accepted and all were disturbed, more rounds would be so too.
    both = [("a", 1), ("b", 1)]
    made, message = ran("ab", {"a": FAST, "b": SLOW}, None, accept=True, disturbed=both)
    assert (made, message) == (both, "no further round: other programs use the machine\n")
    made, _ = ran("ab", {"a": FAST, "b": SLOW}, None, accept=True, disturbed=both[:1])
    assert len(made) == 7


def test_a_report_shows_the_middle_round_of_each_engine() -> None:
    studies = runs_of(("a", 4.0), ("a", 2.0), ("a", 3.0), ("b", 9.0))
    first, second, third, other = (
        replace(one, run=replace(one.run, record=one.run.record | {"round": number}))
        for number, one in enumerate(studies, 1)
    )
    shown, alone = together([first, second, third, other])
    assert (shown.end, alone.end) == (3.0, 9.0)
    assert shown.rounds is not None
    assert (shown.rounds.totals, shown.rounds.number) == ((4.0, 2.0, 3.0), 3)
    assert verdict([shown]) == "a ran 3 times, in 2.000 s to 4.000 s."

    def spoiled(one, **record):  # type: ignore[no-untyped-def]
        return replace(one, run=replace(one.run, record=one.run.record | record))

    why = {"invalid_because": ["others"], "load": {"judgement": "disturbed"}}
    (shown,) = together([first, spoiled(second, **why), third])
    assert shown.rounds is not None
    assert (shown.rounds.totals, shown.rounds.number) == ((4.0, 3.0), 3)
    assert shown.rounds.disturbed == (2.0,)
    assert verdict([shown]) == (
        "a ran 2 times, in 3.000 s to 4.000 s. 1 further round that other programs disturbed does"
        " not count."
    )
    (shown,) = together([spoiled(one, **why) for one in (first, second, third)])
    assert shown.end == 3.0
    assert verdict([shown]) == ("Provisional: a 3.00 s; the machine was busy in 3 of 3 rounds.")
    # A round that went wrong by itself is not hidden behind good ones.
    (shown,) = together([first, spoiled(second, invalid_because=["a task failed"]), third])
    assert verdict([shown]).startswith("Nothing can be claimed")
    # Without a number runs stand for themselves.
    assert together(studies) == studies


def test_rounds_of_a_run_lie_side_by_side(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    engines = ("--engine", "process-pool", "--engine", "gridrpc-native")
    setup = make_setup(tasks=4, nodes=2, sleep=0.01)
    done = gridbench("run", setup, *engines, "--rounds", "2", "--out", "out", "--no-check")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    places = {"process-pool", "process-pool-2", "gridrpc-native", "gridrpc-native-2"}
    assert {place.name for place in out.iterdir() if place.is_dir()} == places
    rounds = {name: json.loads((out / name / "run.json").read_text())["round"] for name in places}
    assert rounds == {name: 2 if name.endswith("-2") else 1 for name in places}
    assert "Rounds that count" in done.stdout
    # A page for what is shown of each engine, and one on both.
    assert len(list(out.glob("*/report.html"))) == 2
    accept(out)
    studies = studies_of([out])
    assert [study.run.name for study in studies] == ["gridrpc-native", "process-pool"]
    assert all(study.rounds is not None and study.rounds.number == 2 for study in studies)
    done = gridbench("report", "out", "--out", "page.html", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert {(one["engine"], len(one["values"])) for one in figures} == {
        ("gridrpc-native", 2), ("process-pool", 2),
    }  # fmt: skip
    # All rounds are replaced, not only the first ones.
    alone = ("--engine", "process-pool", "--no-check", "--out", "out", "--force")
    done = gridbench("run", setup, *alone)
    assert done.returncode == 0, done.stderr
    assert not [place for place in out.iterdir() if place.is_dir()]


@pytest.mark.parametrize("text", ["0", "-1", "1001", "2.5", "", "always", "٣", "9" * 50])
def test_what_is_no_number_of_rounds_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no number of rounds"):
        ROUNDS.convert(text, None, None)


def test_numbers_of_rounds_are_read() -> None:
    assert [ROUNDS.convert(text, None, None) for text in ("1", " 12", 3, AUTO)] == [1, 12, 3, AUTO]


def batches(
    results: Callable[[int], list[CaseResult]], engines: tuple[str, ...]
) -> list[list[int]]:
    """The rounds in each batch of a case, if round n of it has results(n)."""
    done: list[CaseResult] = []
    key = all_done(3)[0].case
    experiment = ScenarioExperiment([3], ScenarioParameters(engines=engines, rounds="auto"))
    experiment.grids[3] = [one for one in experiment.grids[3] if one.key == key]
    found = []
    with Interrupt() as interrupt, ExitStack() as stack:
        bench = Bench(Path(), interrupt, Console(quiet=True), stack)
        for items in experiment.batches(bench, done):
            found.append(sorted(item.round for item in items))
            for number in sorted({item.round for item in items}):
                done += [replace(one, round=number) for one in results(number)]
    return found


def test_cases_of_scenarios_are_repeated_until_they_tell() -> None:
    case = all_done(3)[0]

    def with_overhead(number: int, factors: Sequence[float], engine: str) -> CaseResult:
        overhead = (case.overhead_s or 0.0) * factors[number % len(factors)]
        return replace(case, engine=engine, total_s=(case.ideal_s or 0.0) + overhead)

    clear = batches(lambda n: [with_overhead(n, FAST, A), with_overhead(n, SLOW, B)], (A, B))
    assert clear == [[0, 0, 1, 1, 2, 2]]
    scattered = batches(lambda n: [with_overhead(n, (1.0, 3.0, 0.5), A)], (A,))
    assert scattered == [[0, 1, 2], *([number] for number in range(3, MOST))]
    skipped = batches(lambda n: [replace(case, engine=A, status="skipped", round=n)], (A,))
    assert skipped == [[0, 1, 2]]
