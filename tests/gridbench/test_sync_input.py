"""What users write for synchronised rounds: hosts, arguments, lists, and files with all of it."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridbench.errors import InputError
from gridbench.hosts.hosts_file import HostSlots, Placement, place, read_hosts
from gridbench.quantities import MOST_ELEMENTS, Counts, Texts
from gridbench.read_config import LARGEST
from gridbench.schema import keys_of, read_parameters, record_of
from gridbench.shared_options import HostOptions, ResultsOptions
from gridbench.sync.options import SyncParameters
from gridbench.sync.tasks import PLACEHOLDERS, expand, placeholders_in, split_arguments
from running import Run

texts = Texts("parameter").read
worker_counts = Counts("count of workers").read
VALUES = {
    "parameter": "4 k", "worker": "5", "rank": "1", "host": "node2", "round": "0", "total": "56",
}  # fmt: skip
IN_A_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


# ---- Hosts


def hosts(path: Path, text: str | bytes) -> dict[str, int]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {host.name: host.cores for host in read_hosts(path)}


def test_each_form_of_a_host_is_read(path: Path) -> None:
    found = hosts(
        path,
        "# seven hosts\n"
        "node1 8\n"
        "\n"
        "node2 slots=8 max_slots=16   # OpenMPI\n"
        "node3:4\n"
        "\t2/user@node4.example.org\n"
        "node5\r\n"
        "user@node6 cpus=3\n"
        "10.0.0.7:2\n"
        "[fe80::1%eth0]:2\n"
        "[::1] 4\n",
    )
    assert found == {
        "node1": 8, "node2": 8, "node3": 4, "user@node4.example.org": 2, "node5": 1,
        "user@node6": 3, "10.0.0.7": 2, "[fe80::1%eth0]": 2, "[::1]": 4,
    }  # fmt: skip
    assert list(found)[:2] == ["node1", "node2"]


def test_lines_of_the_same_host_add_up(path: Path) -> None:
    assert hosts(path, "a\nb:2\na\n3/a\nb slots=1") == {"a": 5, "b": 3}


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("node1 eight", "the number of cores must be a whole number"),
        ("node1 0", "the number of cores must be from 1"),
        ("node1:-1", "the number of cores must be from 1"),
        ("node1 1000000", "the number of cores must be from 1 to 100,000"),
        ("node1 slots=", "the number of cores must be a whole number"),
        ("node1 4 4", "`4` is not known"),
        ("node1:4 4", "`4` follows a host that has its cores already"),
        ("node1 slts=4", "`slts` is not known"),
        ("node1 max-slots=x", "the number of cores must be a whole number"),
        ("-oProxyCommand=sh 4", "is not the name of a host"),
        ("4/-x", "is not the name of a host"),
        ("root@-x 4", "is not the name of a host"),
        ("4/", "is not the name of a host"),
        ("fe80::1 4", "could be an address or an address and its cores"),
        ("nöde 4", "is not the name of a host"),
        ("a;b 4", "is not the name of a host"),
        ("a" * 400, "is not the name of a host"),
        ("node1", "node1 has more than 100,000 cores in all"),
    ],
)
def test_a_line_that_is_no_host_is_named(path: Path, line: str, reported: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts(path, f"# hosts\nnode1 100000\n{line}\n")
    assert reported in caught.value.what
    assert (caught.value.file, caught.value.line) == (path, 3)
    assert "node1:8" in caught.value.remedy
    assert len(caught.value.what) < 200


@pytest.mark.parametrize(
    ("contents", "reported"),
    [
        (b"", "names no host"),
        (b"# nobody\n\n", "names no host"),
        (b"a 1\n\xe9 2\n", "is not text in UTF-8"),
        (b"a 1\nb\0 2\n", "holds a zero byte"),
        (b"a" * (LARGEST + 1), "too large for a host file"),
    ],
)
def test_what_is_no_host_file_is_refused(path: Path, contents: bytes, reported: str) -> None:
    with pytest.raises(InputError) as caught:
        hosts(path, contents)
    assert reported in caught.value.what
    assert caught.value.file == path
    assert caught.value.remedy
    assert caught.value.line in (None, 2)


def test_a_host_file_has_to_be_a_file(path: Path) -> None:
    for wrong in (path, path.parent, Path("/dev/zero")):
        with pytest.raises(InputError, match=r"regular file|cannot read the host file"):
            read_hosts(wrong)
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        read_hosts(path)


@IN_A_FOLDER
@given(text=st.text(alphabet="ab1:/@=#[]. -\n\tslots", max_size=40))
def test_any_host_file_is_read_or_refused(path: Path, text: str) -> None:
    try:
        found = hosts(path, text)
    except InputError as error:
        refusal = error
    else:
        assert found
        assert all(cores >= 1 and name[0] != "-" for name, cores in found.items())
        return
    assert refusal.remedy


# ---- Where workers go

SEVEN = [HostSlots(f"node{n}", 8) for n in range(1, 8)]


@pytest.mark.parametrize("workers", [2, 3, 4, 5, 6, 7])
def test_few_workers_have_a_host_each(workers: int) -> None:
    assert place(SEVEN, workers) == [(f"node{n}", 0) for n in range(1, workers + 1)]


@pytest.mark.parametrize("workers", [14, 21, 28, 35, 42, 49, 56])
def test_more_workers_are_spread_evenly(workers: int) -> None:
    ranks: dict[str, list[int]] = {}
    for host, rank in place(SEVEN, workers):
        ranks.setdefault(host, []).append(rank)
    assert ranks == {host.name: list(range(workers // 7)) for host in SEVEN}


def test_one_host_can_be_filled_after_the_other() -> None:
    few = [HostSlots("a", 2), HostSlots("b", 3)]
    assert place(few, 4, "fill") == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert place(few, 4) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert place(few, 5)[-1] == ("b", 2)


def test_more_workers_than_cores_have_to_be_wanted() -> None:
    few = [HostSlots("a", 1), HostSlots("b", 3)]
    with pytest.raises(InputError) as caught:
        place(few, 5)
    assert "5 workers cannot have a core each: the 2 hosts have 4 cores" in caught.value.what
    assert "--oversubscribe" in caught.value.remedy
    # Then each host has as many as its cores let expect.
    found = place(few, 8, oversubscribe=True)
    assert Counter(host for host, _ in found) == {"a": 2, "b": 6}
    assert len(set(found)) == 8


@given(
    cores=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    workers=st.integers(1, 60),
    placement=st.sampled_from(["spread", "fill"]),
)
def test_every_worker_has_a_place_of_its_own(
    cores: list[int], workers: int, placement: Placement
) -> None:
    known = [HostSlots(str(n), count) for n, count in enumerate(cores)]
    found = place(known, workers, placement, oversubscribe=True)
    assert len(set(found)) == workers
    used = Counter(host for host, _ in found)
    assert all(rank < used[host] for host, rank in found)
    if workers <= sum(cores):
        assert place(known, workers, placement) == found
        assert all(used[host.name] <= host.cores for host in known)


# ---- Arguments


def test_arguments_are_divided_before_placeholders_have_values() -> None:
    arguments = split_arguments("-s {parameter} -o '{host} {rank}'.{worker} {total}/{round}")
    assert placeholders_in(arguments) == set(PLACEHOLDERS)
    assert expand(arguments, VALUES) == ["-s", "4 k", "-o", "node2 1.5", "56/0"]


def test_braces_are_written_twice() -> None:
    assert expand(["{{}}", "a{{{rank}}}b", "{{{{rank}}}}"], VALUES) == ["{}", "a{1}b", "{{rank}}"]


def test_lists_are_taken_as_they_are() -> None:
    assert split_arguments(["a b", "'", "", "{host}"]) == ("a b", "'", "", "{host}")
    assert split_arguments("") == ()


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("{param}", "`{param}` in the argument `{param}` is not known"),
        ("x{}", "`{}` in the argument `x{}` is not known"),
        ("{host", "`{` in the argument `{host` is a single brace"),
        ("host}", "`}` in the argument `host}` is a single brace"),
        ("{host.__class__}", "is not known"),
        ("{host!r}", "is not known"),
        ("awk '{print $1}'", "is not known"),
        ("'a", "cannot be divided: no closing quotation"),
        ("a\\", "cannot be divided: no escaped character"),
        (["a\0b"], "holds a zero byte"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: str | list[str], reported: str) -> None:
    with pytest.raises(InputError) as caught:
        split_arguments(arguments)
    assert reported in caught.value.what
    if "{" in str(arguments):
        assert all(f"{{{name}}}" in caught.value.remedy for name in PLACEHOLDERS)


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)))
def test_any_argument_can_be_written(arguments: list[str]) -> None:
    written = [one.replace("{", "{{").replace("}", "}}") for one in arguments]
    assert expand(split_arguments(shlex.join(written)), VALUES) == arguments


@given(st.dictionaries(st.sampled_from(PLACEHOLDERS), st.text(max_size=20)))
def test_values_are_put_in_as_they_are(values: dict[str, str]) -> None:
    whole = VALUES | values
    assert expand([f"{{{name}}}" for name in PLACEHOLDERS], whole) == [
        whole[name] for name in PLACEHOLDERS
    ]


# ---- Lists


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('["4k", "8k", "16k"]', ["4k", "8k", "16k"]),
        ("['a b', \"c\\td\\u00e9\",]", ["a b", "c\tdé"]),
        ("[1, 2.50, 1e3, 0x10, 007, true]", ["1", "2.50", "1e3", "0x10", "007", "true"]),
        ("[4k, 8k]", ["4k", "8k"]),
        ("(4k '8 k' \"16k\")", ["4k", "8 k", "16k"]),
        ("4k,8k ,16k", ["4k", "8k", "16k"]),
        (" 4k 8k\t16k\n", ["4k", "8k", "16k"]),
        ("4k", ["4k"]),
        ('"a, b" c', ["a, b", "c"]),
        ("slurm:?nodes=4&workers=14", ["slurm:?nodes=4&workers=14"]),
    ],
)
def test_lists_are_read_however_they_are_written(text: str, found: list[str]) -> None:
    assert list(texts(text)) == found


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "no parameter is named"),
        ("[]", "no parameter is named"),
        ('["a" "b"]', "has no comma before `b`"),
        ('a"b"', "has no comma before `b`"),
        ("[1,,2]", "has a comma with nothing before it"),
        (",1", "has a comma with nothing before it"),
        ("[1, 2", "does not end with `]`"),
        ("[", "does not end with `]`"),
        ("(1 2]", "does not end with `)`"),
        ("[[1], 2]", "cannot be read from `[1], 2` on"),
        ("1 2]", "cannot be read from `]` on"),
        ("'a", "cannot be read from `'a` on"),
        ('["\\q"]', "which is no text of JSON"),
        ("[1, 2, 1]", "the parameter `1` occurs twice"),
        ('[""]', "must have 1 to 65,536 characters"),
        ('["\\u0000"]', "no zero byte"),
        (" ".join(map(str, range(MOST_ELEMENTS + 1))), "more than 10,000 elements"),
    ],
)
def test_lists_that_are_wrong_are_refused(text: str, reported: str) -> None:
    with pytest.raises(InputError) as caught:
        texts(text)
    assert reported in caught.value.what
    assert caught.value.remedy
    assert len(caught.value.what) < 200


@given(st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=9, unique=True))
def test_any_list_of_json_is_read(elements: list[str]) -> None:
    if any("\0" in one for one in elements):
        with pytest.raises(InputError, match="zero byte"):
            texts(json.dumps(elements))
    else:
        assert list(texts(json.dumps(elements))) == elements
        assert list(texts(elements)) == elements


@given(st.text(alphabet="a1,\"'[]() \\\n", max_size=12))
def test_any_text_is_a_list_or_is_refused(text: str) -> None:
    try:
        found = texts(text)
    except InputError as error:
        refusal = error
    else:
        assert found
        assert len(set(found)) == len(found)
        return
    assert refusal.remedy


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("56", [56]),
        (56, [56]),
        ("1,2,4", [1, 2, 4]),
        ("2-7", [2, 3, 4, 5, 6, 7]),
        ("7-56:7", [7, 14, 21, 28, 35, 42, 49, 56]),
        ("2-7, 14-56:7", [2, 3, 4, 5, 6, 7, 14, 21, 28, 35, 42, 49, 56]),
        ("[1, 2, 4]", [1, 2, 4]),
        ([1, "3-5", 2], [1, 3, 4, 5, 2]),
        ("5-5", [5]),
        ("1-10:4", [1, 5, 9]),
    ],
)
def test_counts_of_workers(given: str | int | list[str | int], found: list[int]) -> None:
    assert list(worker_counts(given)) == found


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("0", "must be from 1 to 100,000"),
        (-1, "must be from 1 to 100,000"),
        ("100001", "must be from 1 to 100,000"),
        ("1.5", "must be a whole number"),
        ("many", "must be a whole number"),
        ("7-2", "must not end below its beginning"),
        ("0-3", "must be from 1 to 100,000"),
        ("1-3:0", "must be from 1 to 100,000"),
        ("1-", "must be a whole number"),
        ("1-100000", "more than 10,000 elements"),
        ("1,2-4,3", "the count of workers `3` occurs twice"),
        ("", "no count of workers is named"),
        ("9" * 5000, "must be from 1 to 100,000"),
    ],
)
def test_counts_of_workers_that_are_wrong(given: str | int, reported: str) -> None:
    with pytest.raises(InputError) as caught:
        worker_counts(given)
    assert reported in caught.value.what
    assert len(caught.value.what) < 200


# ---- The file with all of it


def setup(path: Path, text: str | bytes) -> SyncParameters:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_parameters(SyncParameters, {}, file=path)


def setup_of_environment(environment: dict[str, str]) -> SyncParameters:
    return read_parameters(SyncParameters, {}, environment=environment)


def setup_of_options(given: dict[str, object]) -> SyncParameters:
    return read_parameters(SyncParameters, given)


WHOLE = """
task = "./mytask"
workers = "2-7"
parameters = [4, "8 k", 0.50]
arguments = ["-s", "{parameter}"]
hosts = "hosts.txt"
grid = "/etc/grid.toml"
server = ["lab", "ssh://node1"]
emulate = "ssh"
nodes = 4
placement = "fill"
oversubscribe = true
rounds = 5
hold = "both"
timeout = 60
chdir = "jobs/{host}"
watch = "gfmd, postgres"
start-timeout = 12.5
out = "results"
"""


def test_a_file_has_the_names_of_options(path: Path) -> None:
    assert set(tomllib.loads(WHOLE)) == set(keys_of(SyncParameters))
    folder = path.parent
    assert setup(path, WHOLE) == SyncParameters(
        task=f"{folder}/./mytask",
        workers=(2, 3, 4, 5, 6, 7),
        parameters=("4", "8 k", "0.50"),
        arguments=("-s", "{parameter}"),
        hosts=HostOptions(
            hosts=folder / "hosts.txt",
            grid=Path("/etc/grid.toml"),
            servers=("lab", "ssh://node1"),
            emulate="ssh",
            nodes=4,
            start_timeout=12.5,
        ),
        placement="fill",
        oversubscribe=True,
        rounds=5,
        start=("entry", "exec"),
        timeout=60.0,
        chdir=f"{folder}/jobs/{{host}}",
        watch=("gfmd", "postgres"),
        results=ResultsOptions(out=folder / "results"),
    )


OLD_SETUP = SyncParameters(
    workers=(1, 2, 4), parameters=("4k", "8k"), arguments=("-s", "{parameter}", "a b")
)


@pytest.mark.parametrize(
    "text",
    [
        'WORKER_COUNT = [1, 2, 4]\nPARAMETER_ARRAY = ["4k", "8k"]\n'
        "ARGUMENTS = \"-s {parameter} 'a b'\"\n",
        'WORKER_COUNT=1,2,4\nPARAMETER_ARRAY=["4k", "8k"]\nARGUMENTS=-s {parameter} "a b"\n',
        "# SMTEF\n\nexport WORKER_COUNT='1 2 4' # a sweep\nPARAMETER_ARRAY=(4k 8k)\n"
        "ARGUMENTS=\"-s {parameter} 'a b'\"  # as a shell\n",
        '\ufeffWORKER_COUNT="1,2,4"\r\nPARAMETER_ARRAY=4k 8k\r\nARGUMENTS="-s {parameter} \'a b\'"',
    ],
)
def test_smtefs_names_are_read_as_they_stand(path: Path, text: str) -> None:
    assert setup(path, text) == OLD_SETUP


def test_the_environment_has_the_same_names(path: Path) -> None:
    found = setup_of_environment(
        {
            "WORKER_COUNT": "1,2,4",
            "PARAMETER_ARRAY": '["4k", "8k"]',
            "ARGUMENTS": "-s {parameter} 'a b'",
            "TASK_FILE": "",
            "HOST_FILE": "hosts.txt",
            "workers": "no variable",
        }
    )
    assert found == replace(OLD_SETUP, hosts=HostOptions(hosts=Path("hosts.txt")))
    assert setup_of_environment({}) == SyncParameters()
    with pytest.raises(InputError, match=r"the variable WORKER_COUNT: .* must be a whole number"):
        setup_of_environment({"WORKER_COUNT": "x"})
    # A file that says the same with an empty value says nothing either.
    assert setup(path, "TASK_FILE=\nWORKER_COUNT=3") == SyncParameters(workers=(3,))


def test_tasks_are_files_or_names(path: Path) -> None:
    (path.parent / "mine").touch()
    assert setup(path, "TASK_FILE=mine").task == str(path.parent / "mine")
    assert setup(path, "TASK_FILE=null").task == "null"
    assert setup(path, "TASK_FILE=/bin/true").task == "/bin/true"
    assert setup_of_environment({"TASK_FILE": "./null"}).task == "./null"
    assert setup(path, "HOST_FILE=~/hosts").hosts.hosts == Path.home() / "hosts"


def test_options_are_read_as_files_are() -> None:
    given = {
        "workers": "1-2", "parameters": None, "arguments": ("a b",), "rounds": 3, "timeout": 1.5,
        "oversubscribe": False, "watch": (), "servers": ("lab,here",), "hosts": Path("h"),
        "start": "exec",
    }  # fmt: skip
    assert setup_of_options(given) == SyncParameters(
        workers=(1, 2), arguments=("a b",), rounds=3, timeout=1.5, start=("exec",),
        hosts=HostOptions(servers=("lab", "here"), hosts=Path("h")),
    )  # fmt: skip
    url = "slurm:?nodes=4&exclude=a,b"
    assert setup_of_options({"servers": (url, "x")}).hosts.servers == (url, "x")
    with pytest.raises(InputError, match="--start-timeout: must be from"):
        setup_of_options({"start_timeout": 0})
    with pytest.raises(InputError, match="--rounds: `0` is not a whole number"):
        setup_of_options({"rounds": 0})


def test_what_is_said_first_counts(path: Path) -> None:
    path.write_text("workers = 3\nrounds = 3\noversubscribe = false\ntask = 'null'")
    environment = {"WORKER_COUNT": "2", "TASK_FILE": "sleep"}
    found = read_parameters(SyncParameters, {"workers": "1"}, environment=environment, file=path)
    assert found == SyncParameters(task="sleep", workers=(1,), rounds=3)


def test_all_errors_of_a_file_are_listed_at_once(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        setup(path, "worker = 3\nrounds = 0\ntask = 'null'\nhold = 'late'\n")
    message = str(caught.value)
    assert message.startswith(f"{path}: has 3 errors:\n  line 1: `worker` is not known; did you")
    assert "\n  line 2: `rounds`: `0` is not a whole number from 1 to 10,000; " in message
    assert "\n  line 4: `hold`: must be one of entry, exec, both, not `late`; " in message


def test_results_keep_what_all_rounds_have_in_common() -> None:
    parameters = SyncParameters(task="null", chdir="x", watch=("gfmd",), workers=(1, 2))
    assert record_of(parameters) == {
        "task": "null", "placement": "spread", "timeout": 600.0, "directory": "x",
        "watched": ["gfmd"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "reported", "remedy"),
    [
        ("rounds = 2\nworker = 3", 2, "`worker` is not known", "did you mean `workers`?"),
        ("rounds = 2\nWorkerCount = 3", 2, "not known", "did you mean `WORKER_COUNT`?"),
        ("start_timeout = 3", 1, "not known", "did you mean `start-timeout`?"),
        ("WORKER_COUNT=1\nTASKFILE=./x", 2, "`TASKFILE` is not known", "`TASK_FILE`"),
        ("zebra = 1", 1, "`zebra` is not known", "known are task, workers"),
        ("servers = ['lab']", 1, "`servers` is not known", "did you mean `server`?"),
        ("[sync]\nworkers = 1", 1, "`sync` is not known", ""),
        ("workers = 1\nWORKER_COUNT = 1", 2, "`WORKER_COUNT` and `workers` are the same", "keep"),
        ("TASK_FILE=./a\nTASK_FILE=./b", 2, "`TASK_FILE` is given twice", "keep one"),
        ("workers = 1\nworkers = 2", None, "is neither TOML nor lines", ""),
        ("task = 'x'\nworkers = [1,\n", None, "is neither TOML nor lines", "workers = [1, 2, 4]"),
        ("task = 'x'\nworkers = ?\n", 2, "is neither TOML nor lines", ""),
        ("WORKER_COUNT=1\nnonsense\n", 2, "`nonsense` is no line `NAME=value`", "TOML"),
        ("task = 3", 1, "`task`: must be a text, not `3`", "quotes"),
        ("task = ['x']", 1, "`task`: must be a text", ""),
        ("workers = 2.5", 1, "`workers`: each count of workers must be a whole number", ""),
        ("workers = {a = 1}", 1, "`workers`: must be a list of texts or numbers", ""),
        ("\nparameters = [[1]]", 2, "`parameters`: must be a list of texts or numbers", ""),
        ("parameters = [true]", 1, "must be a list of texts or numbers", ""),
        ("parameters = []", 1, "`parameters`: no parameter is named", ""),
        ("arguments = '{x}'", 1, "`{x}` in the argument `{x}` is not known", "{parameter}"),
        ("ARGUMENTS=./a {x}\n", 1, "`ARGUMENTS`: `{x}` in the argument", "{parameter}"),
        ("rounds = 0", 1, "`rounds`: `0` is not a whole number from 1", ""),
        ("rounds = true", 1, "`rounds`: must be a number", ""),
        ("timeout = 'soon'", 1, "`timeout`: `soon` is not a time", "a number with a unit"),
        ("timeout = inf", 1, "`timeout`: `inf` is not a time", ""),
        ("hold = 'late'", 1, "`hold`: must be one of entry, exec, both", ""),
        ("hold = ['entry']", 1, "`hold`: must be one of entry, exec, both", ""),
        ("placement = 3", 1, "must be one of spread, fill", ""),
        ("oversubscribe = 'perhaps'", 1, "must be one of true, false", ""),
        ("watch = ['a', 'a']", 1, "`watch`: the name `a` occurs twice", ""),
        ("", None, "says nothing", ""),
        ("# nothing", None, "says nothing", ""),
        ("x = " + "[" * 5000, None, "is neither TOML nor lines", ""),
    ],
)
def test_a_file_that_is_wrong_is_refused(
    path: Path, text: str, line: int | None, reported: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        setup(path, text)
    error = caught.value
    assert reported in error.what
    assert error.file == path
    assert line is None or error.line == line
    assert remedy in error.remedy
    assert error.remedy
    assert len(error.what) < 300


@pytest.mark.parametrize(
    ("contents", "reported"),
    [
        (b"task = 'x'\n# \xe9\n", "is not text in UTF-8"),
        ("workers = 3".encode("utf-16"), "is not text in UTF-8"),
        (b"a" * (LARGEST + 1), "too large for a configuration file"),
    ],
)
def test_what_is_no_text_is_refused(path: Path, contents: bytes, reported: str) -> None:
    with pytest.raises(InputError, match=reported) as caught:
        setup(path, contents)
    assert caught.value.file == path


@IN_A_FOLDER
@given(data=st.data())
def test_no_damage_does_more_than_be_refused(path: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([WHOLE, "WORKER_COUNT=1,2\nexport ARGUMENTS='a b' c\n"]))
    contents = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(contents) - 1))
        piece = data.draw(st.binary(max_size=2) | st.sampled_from([b"[", b"'", b"=", b"\n", b"{"]))
        contents[where : where + data.draw(st.integers(0, 3))] = piece
    try:
        found = setup(path, bytes(contents))
    except InputError as error:
        refusal = error
    else:
        assert not found.workers or min(found.workers) >= 1
        return
    assert refusal.file == path
    assert refusal.remedy


@pytest.mark.parametrize("word", ["--accept-load", "--rounds=3", "--out"])
def test_own_options_behind_a_task_are_refused(refused: Run, word: str) -> None:
    done = refused("sync", "-w", "1", "null", word)
    assert done.returncode == 2
    assert done.stderr == (
        f"gridbench: error: `{word}` follows the task, and so is an argument of `null`\n"
        f"hint: options of gridbench stand before it: gridbench sync {word} ... null\n"
    )


@pytest.mark.parametrize("task", ["/bin/echo", "shell"])
def test_behind_another_program_they_are_warned_of(gridbench: Run, task: str) -> None:
    done = gridbench("sync", "-w", "1", "--dry-run", task, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "gridbench: warning: `--quiet` follows the task" in done.stderr
