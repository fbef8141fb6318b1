"""Running `ip` and `tc` of iproute2, and telling the user why they could not do what was asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, Literal

from gridbench_testbed.errors import InputError

Program = Literal["ip", "tc"]

_PATIENCE = 60.0  # seconds for what takes milliseconds
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"  # not in everybody's PATH


def require() -> None:
    """InputError unless this process is root's and iproute2 is installed."""
    if os.geteuid() != 0:
        raise InputError(
            "links between network namespaces can be made by root only",
            remedy="run it as root, or measure on one host, without links",
        )
    for program in ("ip", "tc"):
        if shutil.which(program, path=environment()["PATH"]) is None:
            raise InputError(
                f"links need the program `{program}`, which is not installed",
                remedy="install iproute2: `apt install iproute2`, or"
                " `dnf install iproute iproute-tc`",
            )


def environment() -> dict[str, str]:
    """That of this process, for children that are to find `ip` where systems have it."""
    # An empty entry would be the current folder.
    return {**os.environ, "PATH": f"{os.environ.get('PATH') or os.defpath}:{_SYSTEM_FOLDERS}"}


def run(
    program: Program,
    commands: Sequence[str],
    *,
    namespace: str = "",
    needs: str = "",
    whatever_comes: bool = False,
) -> None:
    """Have `ip` or `tc` carry out the commands, in a network namespace if one is named.

    `needs`: what of the kernel the commands need, for the message when it refuses.
    `whatever_comes`: go on behind commands that fail, and say nothing. InputError otherwise.
    """
    force = ["-force"] if whatever_comes else []
    inside = ["-netns", namespace] if namespace else []
    text = "".join(f"{command}\n" for command in commands)
    ran = _call([program, *inside, *force, "-batch", "-"], text)
    if ran.returncode == 0 or whatever_comes:
        return
    raise _refused(program, ran.stderr, needs)


def ask(program: Program, arguments: Sequence[str], *, namespace: str = "") -> Any:
    """What `ip -json` or `tc -json` answers."""
    inside = ["-netns", namespace] if namespace else []
    ran = _call([program, *inside, "-json", *arguments], "")
    if ran.returncode != 0:
        raise _refused(program, ran.stderr, "")
    return json.loads(ran.stdout or "[]")


def _call(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    try:
        # In a session of its own: Ctrl-C is for us, who then take down what was made.
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
            env={**environment(), "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"`{command[0]}` did not end within {_PATIENCE:.0f} s",
            remedy="see whether another program changes the network at the same time",
        ) from None


def _refused(program: Program, said: str, needs: str) -> InputError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    # The last line only names the number of the command that failed.
    lines = [line for line in lines if not line.startswith("Command failed")]
    what = lines[0] if lines else "no reason given"
    if "not permitted" in what or "Permission denied" in what:
        return InputError(
            f"this process may not change the network (`{program}`: {what})",
            remedy="a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN, such as by `--privileged`",
        )
    return InputError(
        f"the system did not make the links (`{program}`: {what})",
        remedy=f"see that the kernel has {needs}" if needs else "",
    )
