"""Commands of PBS, Torque, LSF and Flux that print what the manuals of these systems say.

They stand for systems that do not install where the tests run. A job's script really runs, with
the variables that the system would set. As many jobs run as `SLOTS` says; the others wait.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

#: Commands of each system.
COMMANDS = {
    "pbs": ["qsub", "qstat", "qselect", "qdel"],
    "torque": ["qsub", "qstat", "qselect", "qdel"],
    "lsf": ["bsub", "bjobs", "bkill"],
    "flux": ["flux"],
}


@dataclass(frozen=True)
class Member:
    """A job, or a member of an array: a folder with its files."""

    folder: Path

    @property
    def identifier(self) -> str:
        """As the system prints it."""
        return self.folder.name

    @property
    def name(self) -> str:
        """Of its job."""
        return (self.folder / "name").read_text()

    def status(self) -> str:
        """`waits`, `runs`, or its exit status."""
        if (self.folder / "status").exists():
            return (self.folder / "status").read_text().strip() or "runs"
        return "runs" if (self.folder / "pid").exists() else "waits"

    def start(self, variables: dict[str, str]) -> None:
        """Run its script, and write its status when it ends."""
        # It begins when its number is known: what looks for jobs that run may do so at once.
        script = f'read go; sh "{self.folder}/script" </dev/null; echo $? >"{self.folder}/status"'
        process = subprocess.Popen(
            ["sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | variables,
            start_new_session=True,
        )
        (self.folder / "pid").write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.close()

    def cancel(self) -> None:
        """End it."""
        if self.status() == "runs":
            os.killpg(int((self.folder / "pid").read_text()), signal.SIGKILL)
        if self.status() in {"runs", "waits"}:
            (self.folder / "status").write_text("271\n")


class System:
    """One batch system."""

    #: What the option lines of scripts begin with, and options with one value and with none.
    directive: ClassVar[str]
    valued: ClassVar[str]
    flags: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.jobs = folder / "jobs"
        self.jobs.mkdir(exist_ok=True)
        self.slots = int(os.environ["SLOTS"])

    def members(self) -> list[Member]:
        """All jobs, first ones first."""
        folders = [folder for folder in self.jobs.iterdir() if (folder / "name").exists()]
        numbers = re.compile(r"\d+")
        folders.sort(key=lambda one: [int(number) for number in numbers.findall(one.name)])
        return [Member(folder) for folder in folders]

    def chosen(self, names: list[str]) -> list[Member]:
        """Jobs, members of arrays, and all members of an array."""
        return [member for member in self.members() if self.is_of(member.identifier, names)]

    def is_of(self, identifier: str, names: list[str]) -> bool:
        """Whether names include a job or its array."""
        array = re.sub(r"\[\d+\]", self.array_suffix, identifier)
        return identifier in names or array in names

    array_suffix: ClassVar[str] = "[]"

    def unknown(self, names: list[str]) -> list[str]:
        """Names of no job."""
        return [name for name in names if not self.chosen([name])]

    def options(self, script: str) -> list[tuple[str, str]]:
        """The options of a script; ends with an error if there are others."""
        found = []
        for line in script.splitlines():
            if not line.startswith(self.directive):
                continue
            option, _, value = line.removeprefix(self.directive).partition(" ")
            letter = option.removeprefix("-")
            if letter not in (self.valued if value else self.flags).split():
                sys.exit(f"illegal option {option!r} with {value!r}")
            found.append((letter, value.strip('"')))
        return found

    def submit(
        self, identifiers: list[str], name: str, script: str, variable: str, first: int
    ) -> None:
        """Make jobs, and run as many as there is room for."""
        running = sum(member.status() == "runs" for member in self.members())
        for number, identifier in enumerate(identifiers):
            folder = self.jobs / identifier
            folder.mkdir()
            (folder / "script").write_text(script)
            (folder / "name").write_text(name)
            if running < self.slots:
                variables = {variable: str(number + first), "PBS_O_WORKDIR": os.getcwd()}
                Member(folder).start(variables)
                running += 1

    def number(self) -> int:
        """The next job's."""
        return 1 + max(
            (int(re.findall(r"\d+", job.name)[0]) for job in self.jobs.iterdir()), default=41
        )


class PBS(System):
    """OpenPBS 23.06."""

    directive = "#PBS "
    valued = "N j o m r J l q P A"
    flags = "V"
    array_letter, variable, finished = "J", "PBS_ARRAY_INDEX", "F"

    def qsub(self, _words: list[str]) -> None:
        script = sys.stdin.read()
        options = self.options(script)
        given = dict(options)
        if given.get("q") == "nope":
            sys.exit("qsub: Unknown queue")
        array = given.get(self.array_letter)
        if array and given["r"] == "n" and self.array_letter == "J":
            sys.exit("qsub: cannot submit non-rerunable Array Job")
        if self.array_letter == "t" and len(given["N"]) > 15:
            sys.exit("qsub: illegal -N value")
        number = self.number()
        members = range(int(array.split("-")[1]) + 1) if array else None
        names = [f"{number}[{n}].pbs" for n in members] if members else [f"{number}.pbs"]
        self.submit(names, given["N"], script, self.variable, 0)
        print(f"{number}[].pbs" if members else f"{number}.pbs")

    def qstat(self, words: list[str]) -> None:
        names = [word for word in words if not word.startswith("-")]
        for member in self.chosen(names):
            status = member.status()
            print(f"Job Id: {member.identifier}")
            print(f"    Job_Name = {member.name}")
            letter = {"waits": "Q", "runs": "R"}.get(status, self.finished)
            print(f"    job_state = {letter}")
            if letter == "Q":
                # Long lines continue behind a tab.
                words = "Not Running: Insufficient amount of resource: ncpus (R: 1 A\n\t: 0 T: 8)"
                print(f"    comment = {words}")
            else:
                print("    exec_host = n01/0\n    run_count = 1")
            if letter == self.finished:
                print(f"    Exit_status = {status}")
            print()
        if missing := self.unknown(names):
            sys.stderr.writelines(f"qstat: Unknown Job Id {name}\n" for name in missing)
            sys.exit(153)

    def qselect(self, words: list[str]) -> None:
        for member in self.members():
            if member.name == words[1] and member.status() in {"runs", "waits"}:
                print(member.identifier)

    def qdel(self, words: list[str]) -> None:
        for member in self.chosen(words):
            member.cancel()
        if missing := self.unknown(words):
            sys.exit(f"qdel: Unknown Job Id {missing[0]}")


class Torque(PBS):
    """Torque 6.1."""

    valued = "N j o m r t l q A"
    flags = "V n"
    array_letter, variable, finished = "t", "PBS_ARRAYID", "C"


class LSF(System):
    """LSF 10.1."""

    directive = "#BSUB "
    valued = "J n R o W q P"
    flags = "r rn x"
    array_suffix = ""

    def bsub(self, _words: list[str]) -> None:
        script = sys.stdin.read()
        given = dict(self.options(script))
        if given.get("q") == "nope":
            sys.exit("nope: No such queue. Job not submitted.")
        name, _, array = given["J"].partition("[")
        number = self.number()
        count = int(array.rstrip("]").split("-")[1]) if array else 0
        names = [f"{number}[{n + 1}]" for n in range(count)] or [f"{number}"]
        self.submit(names, name, script, "LSB_JOBINDEX", 1)
        print(f"Job <{number}> is submitted to default queue <normal>.")

    def bjobs(self, words: list[str]) -> None:
        names = words[4:]
        for member in self.chosen(names):
            job, _, index = member.identifier.rstrip("]").partition("[")
            status = member.status()
            stat = {"waits": "PEND", "runs": "RUN", "0": "DONE"}.get(status, "EXIT")
            host, begun = ("-", "-") if stat == "PEND" else ("4*hostA", "Nov 30 21:40")
            code = status if stat == "EXIT" else "-"
            why = "Job slot limit reached: 1 host;" if stat == "PEND" else "-"
            print(job, index or "0", stat, host, code, begun, "-", why, sep="|")
        if missing := self.unknown(names):
            sys.stderr.writelines(f"Job <{name}> is not found\n" for name in missing)
            sys.exit(255)

    def bkill(self, words: list[str]) -> None:
        named = words[1] if words[0] == "-J" else None
        members = [one for one in self.members() if one.name == named] if named else []
        members = members or self.chosen(words)
        for member in members:
            member.cancel()
            print(f"Job <{member.identifier}> is being terminated")
        if not members:
            sys.exit("No matching job found")


class Flux(System):
    """flux-core 0.60."""

    #: Of flux-submit(1).
    known: ClassVar = (
        "--job-name --cc --nodes --ntasks --cores-per-task --output --time-limit --queue --bank"
        " --exclusive --requires --gpus-per-task"
    )

    def submit_command(self, words: list[str]) -> None:
        at = words.index("sh")
        given = dict(word.partition("=")[::2] for word in words[:at])
        if odd := set(given) - set(self.known.split()):
            sys.exit(f"flux-submit: error: unrecognized arguments: {' '.join(odd)}")
        if given.get("--queue") == "nope":
            sys.exit("flux-submit: ERROR: [Errno 22] 'nope' is not a valid queue")
        count = int(given["--cc"].split("-")[1]) + 1 if "--cc" in given else 1
        number = self.number()
        names = [f"f{number + n}" for n in range(count)]
        self.submit(names, given["--job-name"], Path(words[at + 1]).read_text(), "FLUX_JOB_CC", 0)
        print(*names, sep="\n")

    def jobs_command(self, words: list[str]) -> None:
        if "--no-header" in words and "-a" not in words:
            name = words[1].removeprefix("--name=")
            active = [one for one in self.members() if one.status() in {"runs", "waits"}]
            print(*(one.identifier for one in active if one.name == name), sep="\n")
            return
        names = words[4:]
        for member in self.chosen(names):
            status = member.status()
            shown = {"waits": "SCHED", "runs": "RUN", "0": "COMPLETED"}.get(status, "FAILED")
            code = status if status.isdigit() else ""
            why = "insufficient resources" if status == "waits" else ""
            node = "" if status == "waits" else "n1"
            print(member.identifier, shown, node, "0.0", code, why, "", sep="|")
        if missing := self.unknown(names):
            sys.exit(f"flux-jobs: ERROR: JobID {missing[0]} unknown")

    def cancel_command(self, words: list[str]) -> None:
        for member in self.chosen(words):
            member.cancel()
        if missing := self.unknown(words):
            sys.exit(f"flux-cancel: ERROR: {missing[0]}: unknown job")


SYSTEMS: dict[str, type[System]] = {"pbs": PBS, "torque": Torque, "lsf": LSF, "flux": Flux}


def install(system: str, folder: Path) -> None:
    """Put the commands of a system into `folder/bin`."""
    (folder / "bin").mkdir(parents=True)
    for command in COMMANDS[system]:
        program = folder / "bin" / command
        line = f'exec {sys.executable} -S {__file__} {system} {folder} {command} "$@"'
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)


def main() -> None:
    """Run a command: its system, its folder, its name and its arguments."""
    name, folder, command, *words = sys.argv[1:]
    system = SYSTEMS[name](Path(folder))
    if command == "flux":
        command, *words = f"{words[0]}_command", *words[1:]
    with (Path(folder) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        getattr(system, command)(words)


if __name__ == "__main__":
    main()
