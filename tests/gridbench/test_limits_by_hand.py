"""What a simulated run keeps busy for how long, added up by hand."""

from __future__ import annotations

import pytest

from gridbench.model.pipeline import Effort, Link, Parameters
from gridbench.simulate.limits import uses
from gridbench.simulate.simulation import simulate
from gridbench.simulate.start_up import Batch
from gridbench.simulate.systems import System
from gridbench.simulate.work import Work


def test_one_client_submits_and_takes_results_and_both_links_carry_data() -> None:
    one = System(
        name="by hand",
        title="by hand",
        parameters=Parameters(
            to_workers=Link(rate=10.0, per_message=0.5),
            from_workers=Link(rate=20.0),
            shared_rate=40.0,
            submit_cost=2.0,
            retrieve_cost=3.0,
            take_output=Effort(fixed=1.0, per_byte=0.1),
        ),
        start_up=Batch(constant=0.0, per_worker=0.0),
    )
    work = Work(cores=2, tasks=4, sleep=100.0, bytes_in=30.0, bytes_out=60.0, bytes_shared=80.0)
    done = simulate(work, one)
    busy = {use.what: use.busy for use in uses(done)}
    assert busy == {
        "the client, submitting and taking results": pytest.approx(4 * (2 + 3 + 1 + 60 * 0.1)),
        # Shared data goes once to each of the two workers.
        "the link to the workers": pytest.approx(4 * (0.5 + 30 / 10) + 2 * 80 / 40),
        "the link from the workers": pytest.approx(4 * 60 / 20),
        "the workers, computing": pytest.approx(4 * 100 / 2),
    }
    assert all(use.share == pytest.approx(use.busy / done.total) for use in uses(done))
