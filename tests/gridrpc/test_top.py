"""`gridrpc top`: a grid looked at by another process, in a terminal, in a pipe, and as a page."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

import gridrpc
from grids import PROGRAM
from processes import LONG, environment, until, write_script

#: A program that has a grid, makes calls, and waits for the signal to continue.
PROGRAM_WITH_GRID = """
    import sys, gridrpc

    def square(x):
        return x * x

    def fail():
        raise ValueError("as it is to")

    if __name__ == "__main__":
        with gridrpc.Grid(workers=2) as grid:
            grid.wait_until_ready()
            for call in [grid.submit(square, x) for x in range(40)]:
                call.result()
            grid.submit(fail).exception()
            print("ready", flush=True)
            for line in sys.stdin:
                exec(line)
                print("done", flush=True)
"""


class Watched:
    """A process with a grid."""

    def __init__(self, folder: Path, *before: str) -> None:
        script = write_script(folder, PROGRAM_WITH_GRID)
        self.process = subprocess.Popen(
            [*before, sys.executable, str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        self._hear("ready")

    @property
    def pid(self) -> int:
        return self.process.pid

    def do(self, line: str) -> None:
        """Have it run a line of Python."""
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        self._hear("done")

    def _hear(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == word

    def end(self) -> None:
        """Have it close its grid, and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(LONG) == 0


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.process.kill()
    watched.process.wait()


def top(*arguments: object, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    words = [*before, PROGRAM, "top", *map(str, arguments)]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=LONG, stdin=subprocess.DEVNULL
    )


def describe(*arguments: object) -> dict[str, Any]:
    ran = top(*arguments, "--once", "--json")
    assert ran.returncode == 0, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_a_grid_tells_other_processes_what_it_tells_its_own(
    watched: Watched, tmp_path: Path
) -> None:
    watched.do("import json, dataclasses; told = dataclasses.asdict(grid.stats())")
    watched.do("print(json.dumps(told), file=open(__file__ + '.json', 'w'), flush=True)")
    file = tmp_path / "script.py.json"
    inside, outside = json.loads(file.read_text()), describe(watched.pid)
    assert outside.pop("uptime") >= inside.pop("uptime") > 0
    assert outside == inside
    assert outside["calls"]["submitted"] == 41
    counts = {one["name"]: (one["returned"], one["raised"]) for one in outside["functions"]}
    assert counts == {"square": (40, 0), "fail": (0, 1)}


def test_once_it_prints_a_table_that_fits_80_columns(watched: Watched) -> None:
    ran = top(watched.pid, "--once")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in ran.stdout
    assert f"process {watched.pid} on " in ran.stdout
    assert re.search(r"^workers  0 busy, 2 of 2 ready, 0 lost$", ran.stdout, re.MULTILINE)
    assert "41 have ended, 1 of them with an error" in ran.stdout
    assert re.search(r"^square +40 ", ran.stdout, re.MULTILINE)
    assert re.search(r"^fail +1 .* 1$", ran.stdout, re.MULTILINE)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_in_a_pipe_it_prints_lines_until_it_is_interrupted(
    watched: Watched, options: tuple[str, ...]
) -> None:
    words = [PROGRAM, "top", str(watched.pid), *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        first = ran.stdout.readline()
        watched.do("[call.result() for call in [grid.submit(square, x) for x in range(59)]]")
        second = ran.stdout.readline()
        ran.send_signal(signal.SIGINT)
        assert ran.wait(LONG) == 0
        assert ran.stderr.read() == ""
    if options:
        counts = [json.loads(line)["calls"]["submitted"] for line in (first, second)]
        assert counts == [41, 100]
    else:
        assert [re.findall(r"calls (\d+)", line) for line in (first, second)] == [["41"], ["100"]]
        assert "workers 0/2 busy" in first


def test_it_ends_with_the_grid(watched: Watched) -> None:
    words = [PROGRAM, "top", str(watched.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        assert ran.stdout.readline()
        watched.end()
        assert ran.wait(LONG) == 0
        assert f"the grid of process {watched.pid} has ended" in ran.stderr.read()


def test_it_ends_when_nobody_reads_what_it_prints(watched: Watched) -> None:
    words = [PROGRAM, "top", str(watched.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        assert ran.stdout.readline()
        ran.stdout.close()
        assert ran.wait(LONG) == 0
        assert ran.stderr.read() == ""


class Terminal:
    """A terminal in which `gridrpc top` runs."""

    def __init__(self, *arguments: object) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(PROGRAM, [str(PROGRAM), "top", *map(str, arguments)])
        self.text = ""

    def shows(self, text: str) -> bool:
        """Whether this comes, sooner or later."""
        return until(lambda: (self._read() and text in self.text) or text in self.text)

    def _read(self) -> bool:
        if not select.select([self.descriptor], [], [], 0)[0]:
            return False
        try:
            self.text += os.read(self.descriptor, 65536).decode()
        except OSError:  # it has ended
            return False
        return True

    def type(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def end(self) -> int:
        """Wait for its end, and return its exit status."""
        status: list[int] = []

        def ended() -> bool:
            while self._read():
                pass
            if not status:
                pid, code = os.waitpid(self.pid, os.WNOHANG)
                status.extend([code] if pid else [])
            return bool(status)

        assert until(ended)
        while self._read():
            pass
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status[0])


@pytest.mark.parametrize("keys", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_in_a_terminal_it_has_a_screen_of_its_own_and_leaves_none(
    watched: Watched, keys: bytes
) -> None:
    terminal = Terminal(watched.pid)
    assert terminal.shows("q or Ctrl-C ends this")
    watched.do("[call.result() for call in [grid.submit(square, x) for x in range(59)]]")
    assert terminal.shows("100 have ended")
    terminal.type(keys)
    assert terminal.end() == 0
    assert terminal.text.startswith("\x1b[?1049h\x1b[?25l")
    assert terminal.text.endswith("\x1b[?25h\x1b[?1049l")
    assert "quit" not in terminal.text


def test_in_a_terminal_the_last_table_stays_when_the_grid_ends(watched: Watched) -> None:
    terminal = Terminal(watched.pid)
    assert terminal.shows("q or Ctrl-C ends this")
    watched.end()
    assert terminal.end() == 0
    left = terminal.text.partition("\x1b[?1049l")[2]
    assert "41 have ended" in left
    assert f"the grid of process {watched.pid} has ended" in left


@contextmanager
def stopped(watched: Watched, looks: subprocess.Popen[str]) -> Iterator[None]:
    """The program is stopped once another has seen it, which ends in any case."""
    try:
        assert looks.stdout is not None
        assert looks.stdout.readline()
        watched.process.send_signal(signal.SIGSTOP)
        # A thread that is about to answer does so before it stops.
        assert until(lambda: psutil.Process(watched.pid).status() == psutil.STATUS_STOPPED)
        yield
    finally:
        watched.process.send_signal(signal.SIGCONT)
        looks.kill()


def test_a_program_that_is_stopped_is_waited_for(watched: Watched) -> None:
    words = [PROGRAM, "top", str(watched.pid), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ran, stopped(watched, ran):
        assert ran.stdout is not None
        # Meanwhile the other one has waited as long.
        looked = top(watched.pid, "--once")
        assert looked.returncode == 1
        assert "it has not answered within 3 s" in looked.stderr
        watched.process.send_signal(signal.SIGCONT)
        watched.do("[call.result() for call in [grid.submit(square, x) for x in range(59)]]")
        assert until(lambda: json.loads(ran.stdout.readline())["calls"]["submitted"] == 100)
        ran.send_signal(signal.SIGTERM)
        assert ran.wait(LONG) == 0


def test_looking_at_a_program_that_is_stopped_can_be_ended(watched: Watched) -> None:
    words = [PROGRAM, "top", str(watched.pid), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ran, stopped(watched, ran):
        assert ran.stdout is not None
        # All that it got before the program stopped.
        looked = top(watched.pid, "--once")
        assert "it has not answered within 3 s" in looked.stderr
        ran.send_signal(signal.SIGTERM)
        assert ran.wait(LONG) == 0


# ---- Which grid


def test_processes_without_a_grid_are_refused() -> None:
    ran = top(os.getppid())
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"gridrpc: process {os.getppid()} has no grid\n"
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert "there is no such process" in top(gone.pid).stderr
    assert "such as 4711 or 4711.2" in top("mine").stderr


def test_of_several_grids_of_a_process_one_has_to_be_named() -> None:
    with gridrpc.Grid(workers=1) as first, gridrpc.Grid(workers=1) as second:
        numbers = [grid.stats().grid for grid in (first, second)]
        ran = top(os.getpid())
        assert ran.returncode == 1
        for number in numbers:
            name = f"{os.getpid()}.{number}" if number > 1 else f"{os.getpid()}"
            assert re.search(
                rf"^ +{re.escape(name)}  \d of 1 workers busy", ran.stderr, re.MULTILINE
            )
            assert describe(f"{os.getpid()}.{number}")["grid"] == number
        second.close()
        assert describe(os.getpid())["grid"] == numbers[0]


#: What is listed there belongs to nobody else: abstract sockets are those of a network namespace.
ALONE = ("unshare", "--map-root-user", "--net")


def can_be_alone() -> bool:
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_be_alone(), reason="no namespaces here")
def test_without_a_process_the_only_grid_is_meant(tmp_path: Path) -> None:
    ran = top(before=ALONE)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "none of your programs has a grid open on this machine" in ran.stderr
    script = write_script(
        tmp_path,
        f"""
        import subprocess, gridrpc

        with gridrpc.Grid(workers=1) as grid:
            looked = subprocess.run(["{PROGRAM}", "top", "--once", "--json"], check=True)
            with gridrpc.Grid(workers=1):
                looked = subprocess.run(["{PROGRAM}", "top", "--once"])
                assert looked.returncode == 1
        """,
    )
    alone = subprocess.run(
        [*ALONE, sys.executable, str(script)],
        capture_output=True, text=True, timeout=LONG, env=environment(), check=False,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout)["workers"] == 1
    assert "2 grids run: name one by its process" in alone.stderr


def test_a_killed_program_leaves_nothing_to_look_at(watched: Watched) -> None:
    assert f"-{watched.pid}-1" in Path("/proc/net/unix").read_text()
    watched.process.kill()
    watched.process.wait()
    # Its workers end by themselves, and have nothing of it.
    assert f"-{watched.pid}-1" not in Path("/proc/net/unix").read_text()
    assert top(watched.pid).returncode == 1


def test_a_child_of_fork_does_not_keep_the_place(watched: Watched) -> None:
    watched.do("import os; child = os.fork() or (os.read(0, 0), os.kill(os.getpid(), 19))")
    watched.do("grid.close()")
    try:
        assert f"-{watched.pid}-1" not in Path("/proc/net/unix").read_text()
    finally:
        watched.do("os.kill(child, 9); os.waitpid(child, 0)")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_other_users_cannot_look(watched: Watched) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = shutil.copy(PROGRAM, folder)
        ran = subprocess.run(
            [program, "top", str(watched.pid), "--once"],
            capture_output=True, text=True, check=False, timeout=LONG,
            user="nobody", group="nogroup",
        )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"the grid of process {watched.pid} is root's" in ran.stderr
    # Nor can they without the program.
    code = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534);"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1].replace('@', chr(0)));"
        "print(s.recv(100))"
    )
    place = f"@gridrpc-0-{watched.pid}-1"
    ran = subprocess.run(
        [sys.executable, "-c", code, place], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "b''\n", ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_root_does_not_believe_others_who_take_a_name(watched: Watched) -> None:
    code = f"""
import os, socket, sys
os.setgid(65534); os.setuid(65534)
listeners = []
names = "0-%d-1" % os.getpid(), "65534-{watched.pid}-1", "0-{watched.pid}-2"
for name in names:
    listeners.append(socket.socket(socket.AF_UNIX))
    listeners[-1].bind(chr(0) + "gridrpc-" + name)
    listeners[-1].listen()
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        ran = top(other.pid, "--once")
        assert (ran.returncode, ran.stdout) == (1, "")
        assert f"process {other.pid} has no grid" in ran.stderr
        assert describe(watched.pid)["calls"]["submitted"] == 41
        other.communicate("")


def test_one_that_answers_for_ever_is_not_waited_for() -> None:
    name = f"gridrpc-{os.geteuid()}-{os.getpid()}-999"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        ends = threading.Event()

        def answer() -> None:
            with suppress(OSError):
                while not ends.is_set():
                    accepted, _ = listener.accept()
                    with accepted, suppress(OSError):
                        while not ends.wait(0.2):
                            accepted.send(b" ")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            ran = top(f"{os.getpid()}.999", "--once")
        finally:
            ends.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert ran.returncode == 1
    assert "has not answered within 3 s" in ran.stderr


# ---- The page


class Page:
    """A page that is served, and its token."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"(http://127\.0\.0\.1:(\d+)/)(?:\?token=([0-9a-z]+))?", address)
        assert found, address
        self.address = address
        self.top, self.port, self.token = found.groups()

    def fetched(self, path: str, **headers: str) -> str:
        """What is there for those who have the token."""
        return fetched(f"{self.top}{path}?token={self.token}", **headers)


@contextmanager
def served(*arguments: object) -> Iterator[Page]:
    """A page."""
    words = [PROGRAM, "top", *map(str, arguments), "--web"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        address = ran.stdout.readline().strip()
        try:
            yield Page(address)
        finally:
            ran.send_signal(signal.SIGINT)
            assert ran.wait(LONG) == 0
            assert ran.stderr.read() == ""


def fetched(address: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
        text: str = answer.read().decode()
        return text


def refusal(address: str, **headers: str) -> str:
    """Why an address is forbidden."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetched(address, **headers)
    with refused.value as answer:
        assert answer.code == 403
        return answer.read().decode()


@pytest.mark.parametrize(
    "path", ["", "page.css", "formats.js", "page.js", "stats", "metrics", "elsewhere"]
)
def test_nothing_is_served_without_the_token(watched: Watched, path: str) -> None:
    with served(watched.pid) as page:
        assert page.token
        for wrong in (page.token[:-1], page.token + "0", "0" * len(page.token), ""):
            assert "that `gridrpc top --web` has printed" in refusal(
                f"{page.top}{path}?token={wrong}"
            )
            refusal(f"{page.top}{path}", Authorization=f"Bearer {wrong}")
        refusal(page.top + path)
        assert page.token not in refusal(page.top + path)


def test_the_token_is_another_one_each_time_and_may_stand_in_the_head(watched: Watched) -> None:
    with served(watched.pid) as page, served(watched.pid) as other:
        assert page.token != other.token
        bearer = {"Authorization": f"Bearer {page.token}"}
        assert "gridrpc_grid_info" in fetched(f"{page.top}metrics", **bearer)
        refusal(f"{other.top}metrics", **bearer)


def test_a_token_is_kept_in_a_file_that_only_its_owner_reads(
    watched: Watched, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    with served(watched.pid, "--token-file", file) as page:
        assert file.read_text() == f"{page.token}\n"
        assert file.stat().st_mode & 0o777 == 0o600
    with served(watched.pid, "--token-file", file) as again:
        assert again.token == page.token
        assert json.loads(again.fetched("stats"))["grids"]
    file.write_text("guess me\n")
    ran = top(watched.pid, "--token-file", file, "--web")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"in `{file}`: a token is one line of 16 letters" in ran.stderr
    ran = top(watched.pid, "--token-file", tmp_path / "no" / "token", "--web")
    assert "No such file or directory" in ran.stderr


def test_a_token_can_be_done_without_but_only_for_a_page(watched: Watched) -> None:
    with served(watched.pid, "--no-token") as page:
        assert page.token is None
        assert json.loads(fetched(f"{page.top}stats"))["grids"]
    for options in (["--no-token"], ["--token-file", "x"]):
        for instead in ([], ["--once"], ["--json"], ["--web", "--no-token", "--token-file", "x"]):
            ran = top(watched.pid, *options, *instead)
            assert (ran.returncode, ran.stdout) == (2, "")


def test_prometheus_reads_what_is_served(watched: Watched) -> None:
    with served(watched.pid) as page:
        families = list(text_string_to_metric_families(page.fetched("metrics")))
        samples = {
            (sample.name, sample.labels.get("function"), sample.labels.get("outcome")): sample
            for family in families
            for sample in family.samples
        }
        kinds = {family.name: family.type for family in families}
        assert samples["gridrpc_calls_total", "square", "returned"].value == 40
        assert samples["gridrpc_calls_total", "fail", "raised"].value == 1
        assert samples["gridrpc_workers_ready", None, None].value == 2
        assert samples["gridrpc_grid_info", None, None].labels["version"] == gridrpc.__version__
        assert all(sample.labels["pid"] == str(watched.pid) for sample in samples.values())
        assert all(family.documentation for family in families)
        assert (kinds["gridrpc_calls"], kinds["gridrpc_workers_ready"]) == ("counter", "gauge")
        watched.end()
        assert json.loads(page.fetched("stats")) == {"grids": []}
        families = list(text_string_to_metric_families(page.fetched("metrics")))
        assert [sample for family in families for sample in family.samples] == []


def test_pages_of_other_sites_are_refused(watched: Watched) -> None:
    with served(watched.pid) as page:
        with pytest.raises(urllib.error.HTTPError, match="421"):
            page.fetched("stats", Host="evil.example")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            page.fetched("etc/passwd")
        assert json.loads(page.fetched("stats", Host="localhost:99"))["grids"]


def test_silent_connections_do_not_keep_others_out(watched: Watched) -> None:
    with served(watched.pid) as page, ExitStack() as connections:
        for _ in range(300):
            connections.enter_context(socket.create_connection(("127.0.0.1", int(page.port))))
        for _ in range(3):
            assert json.loads(page.fetched("stats"))["grids"]


def test_a_port_that_is_taken_is_reported(watched: Watched) -> None:
    with served(watched.pid) as page:
        ran = top(watched.pid, "--web", page.port)
        assert ran.returncode == 1
        assert f"cannot be served at port {page.port} of 127.0.0.1" in ran.stderr


def test_the_page_shows_what_the_grid_does(watched: Watched) -> None:
    from browser import browser
    from selenium.webdriver.support.ui import WebDriverWait

    from gridbench.errors import InputError

    def text(driver: Any, selector: str) -> str:
        found: str = driver.execute_script(
            "return document.querySelector(arguments[0]).innerText", selector
        )
        return found

    with served(watched.pid) as page:
        try:
            with browser(local=True) as driver:
                wait = WebDriverWait(driver, LONG)
                driver.get(page.address)
                wait.until(lambda driver: "square" in text(driver, "#functions"))
                assert f"process {watched.pid} on " in text(driver, "#about")
                assert "2 of 2 ready" in text(driver, "#figures")
                hostile = "<img src=x onerror=document.title='hurt'>"
                watched.do("named = lambda: 1")
                watched.do(f"named.__qualname__ = {hostile!r}; grid.submit(named).result()")
                wait.until(lambda driver: hostile in text(driver, "#functions"))
                assert driver.title.endswith("calls/s - gridrpc top")
                assert "42 have ended" in text(driver, "#figures")
                points = driver.execute_script(
                    "return document.querySelector('#calls polyline').getAttribute('points')"
                )
                assert len(points.split()) >= 2
                for scheme in ("light", "dark"):
                    media = [{"name": "prefers-color-scheme", "value": scheme}]
                    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
                    colours = driver.execute_script(
                        "const style = getComputedStyle(document.documentElement);"
                        "return [style.color, style.backgroundColor]"
                    )
                    text_is_darker = _brightness(colours[0]) < _brightness(colours[1])
                    assert text_is_darker == (scheme == "light")
                driver.set_window_size(420, 800)
                width = driver.execute_script("return document.documentElement.scrollWidth")
                assert width <= driver.execute_script("return window.innerWidth")
                # All that it loads comes from the program.
                loaded = driver.execute_script(
                    "return performance.getEntriesByType('resource').map(entry => entry.name)"
                )
                assert {one for one in loaded if not one.startswith(page.top)} <= {"data:,"}
                assert driver.get_log("browser") == []
                watched.end()
                wait.until(lambda driver: "No grid runs" in text(driver, "#state"))
        except InputError as error:
            pytest.fail(str(error))


def _brightness(colour: str) -> int:
    return sum(map(int, re.findall(r"\d+", colour)[:3]))
