"""From the command line, the environment and a configuration file to what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridbench.errors import InputError
from gridbench.hosts.where import chosen
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.sync.arguments import placeholders, split
from gridbench.sync.request import Request
from gridbench.sync.setup_file import (
    read_setup,
    setup_of_environment,
    setup_of_options,
)
from gridbench.sync.tasks import BUILT_INS, command


def request_of(
    given: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    policy: Policy,
    printing: Printing,
) -> Request:
    """What the command line asks for, with what it leaves open from the environment and the file.
    InputError for what cannot be meant."""
    words = given["words"]
    if words and given["arguments"] is not None:
        raise InputError(
            "the arguments are given twice, behind the task and by --arguments",
            remedy="give them once",
        )
    options = {**given, "arguments": list(words) or given["arguments"]}
    setup = setup_of_options(options).over(setup_of_environment(environment))
    if given["config"] is not None:
        setup = setup.over(read_setup(given["config"]))
    if setup.task is None:
        raise InputError(
            "no task is named",
            remedy=f"name a program, or one of {', '.join(BUILT_INS)}, as in `gridbench sync null`",
        )
    program, *arguments = command(setup.task, setup.arguments or ())
    values = setup.parameters or ("",)
    chdir = setup.chdir or "."
    used = placeholders(split([*arguments, chdir]))
    if "parameter" in used and values == ("",):
        raise InputError(
            "the arguments have {parameter}, and there are no parameters",
            remedy="add --parameters 4k,8k",
        )
    return Request(
        task=setup.task,
        program=program,
        arguments=tuple(arguments),
        workers=setup.workers or (),
        parameters=values,
        repeats=setup.rounds or 3,
        starts=setup.start or ("entry",),
        timeout=setup.timeout or 600.0,
        directory=chdir,
        placement=setup.placement or "spread",
        oversubscribe=bool(setup.oversubscribe),
        watched=setup.watch or (),
        where=chosen(
            hosts=setup.hosts,
            grid=setup.grid,
            servers=setup.servers,
            emulate=setup.emulate,
            nodes=setup.nodes,
            patience=setup.start_timeout,
        ),
        folder=setup.out,
        fresh=given["fresh"],
        retry_failed=given["retry_failed"],
        policy=policy,
        printing=printing,
    )
