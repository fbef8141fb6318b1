"""Tables 5.5.6-1 to -4: the work of 100 s divided into tasks, and the report's estimates."""

from __future__ import annotations

from collections.abc import Mapping

from gridbench.analysis.transfer import transfer_time
from gridbench.formats import as_given
from gridbench.published.figures import Figure, Reproduced
from gridbench.published.printed import Computed, Printed, computed, figure_in_text, table, tasks_of


def table_5_5_6_1() -> Reproduced:
    """Symphony, no data."""
    return _processing("5.5.6-1", "Symphony: 100 s of work in n tasks, no data (scenario 6)", {})


def table_5_5_6_2() -> Reproduced:
    """Symphony, 1 MB."""
    rate = float(figure_in_text("node_rate", "symphony")["value"])
    return _estimates("5.5.6-2", "Symphony: 100 s in n tasks, 1 MB each (scenario 6)", rate)


def table_5_5_6_3() -> Reproduced:
    """Ninf-G, no data."""
    return _processing(
        "5.5.6-3",
        "Ninf-G: 100 s of work in n tasks, no data (scenario 6)",
        {"200": "21.299 s - 19.641 s is 1.658 s"},
    )


def table_5_5_6_4() -> Reproduced:
    """Ninf-G, 1 MB."""
    rate = float(figure_in_text("link_rate", "ninfg")["value"])
    return _estimates("5.5.6-4", "Ninf-G: 100 s in n tasks, 1 MB each (scenario 6)", rate)


def _processing(name: str, title: str, exceptions: Mapping[str, str]) -> Reproduced:
    return Reproduced(
        name,
        title,
        "Processing = total - start-up.",
        tuple(
            Figure(
                tasks_of(row),
                "processing",
                "s",
                Printed(row["processing_s"]),
                computed(
                    lambda total, start_up: total - start_up,
                    Printed(row["total_s"]),
                    Printed(row["start_up_s"]),
                ),
                exceptions.get(row["tasks"], ""),
            )
            for row in table(name)
        ),
    )


def _estimates(name: str, title: str, rate: float) -> Reproduced:
    figures = []
    for row in table(name):
        label = tasks_of(row)
        transfer = transfer_time(float(row["tasks"]), rate)
        # Of one task only, though with more tasks than cores several follow each other: the
        # report counts the later ones as hidden behind transfers.
        total = float(row["start_up_s"]) + float(row["sleep_s"]) + transfer
        figures += [
            Figure(label, "transfer", "s", Printed(row["transfer_s"]), Computed.exactly(transfer)),
            Figure(label, "total", "s", Printed(row["predicted_s"]), Computed.exactly(total)),
        ]
    return Reproduced(
        name,
        title,
        f"Transfer = tasks x 1 MB / {as_given(rate, 'Mbit/s')}; estimated total = start-up +"
        " sleep of one task + transfer.",
        tuple(figures),
    )
