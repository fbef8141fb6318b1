"""The parts of a pipeline: what they take alone, and their defaults."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.model.pipeline import (
    Link,
    Manager,
    MessageCost,
    PipelineCase,
    PipelineParameters,
    WorkerStart,
)


def test_of_what_nothing_is_reported_costs_nothing_and_has_no_bounds() -> None:
    way, effort, start = Link(), MessageCost(), WorkerStart()
    assert (way.rate, way.per_message, way.each, way.sharing) == (inf, 0, inf, "in turn")
    assert (effort.fixed, effort.per_byte) == (0, 0)
    assert (start.constant, start.prepare, start.serial, start.parallel, start.adopt) == (0,) * 5
    assert not start.all_first
    known = PipelineParameters(to_workers=way, from_workers=way)
    assert (known.shared_rate, known.chained_from, known.most_left) == (inf, inf, inf)
    assert (known.processors, known.most_waiting_bytes, known.most_outstanding) == (inf, inf, inf)
    assert (known.submit_cost, known.submit_per_byte, known.retrieve_cost) == (0, 0, 0)
    assert (known.start_latency, known.return_latency, known.kept_from, known.ahead) == (0,) * 4
    assert (known.last_used_first, known.client_lock) == (False, False)
    one = PipelineCase(np.ones(1), np.zeros(1))
    assert (one.bytes_in, one.bytes_out, one.bytes_shared, one.host) == (0, 0, 0, None)


def test_a_way_takes_as_many_messages_at_once_as_fill_it() -> None:
    assert Link(rate=10.0, each=2.0, sharing="evenly").at_once == 5
    # In turn it is one, and so where one can fill it.
    assert Link(rate=10.0, each=2.0).at_once == 1
    assert Link(rate=10.0, each=10.0, sharing="evenly").at_once == 1
    assert Link(sharing="evenly").at_once == 1
    assert Link(rate=10.0, each=2.0, per_message=0.5).work(6.0) == 3.5
    assert MessageCost(fixed=0.5, per_byte=0.25).of(6.0) == 2.0


@pytest.mark.parametrize(
    "managed",
    [
        {"ahead": 1},
        {"start": WorkerStart()},
        {"share": MessageCost(fixed=1.0)},
        {"client_lock": True},
    ],
)
def test_only_a_manager_sends_ahead_starts_shares_or_has_a_lock(managed: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="a system without a manager"):
        PipelineParameters(to_workers=Link(), from_workers=Link(), **managed)
    PipelineParameters(to_workers=Link(), from_workers=Link(), manager=Manager(), **managed)


def test_a_case_takes_any_numbers_as_the_native_module_does() -> None:
    one = PipelineCase(
        np.arange(6)[::2], np.zeros(4, dtype=np.int32)[::2], host=np.zeros(2, np.int32)
    )
    assert one.host is not None
    for values in (one.sleep, one.ready, one.host):
        assert values.flags.c_contiguous
    assert (one.sleep.dtype, one.ready.dtype, one.host.dtype) == (np.float64, np.float64, np.int64)
    assert one.sleep.tolist() == [0, 2, 4]
