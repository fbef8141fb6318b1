"""Hosts with their own sshd on this machine, connected by a network.

    client ══ switch ══ node1      each link can be shaped, cut, or made to lose everything
                 ╚═════ node2

The nodes are network namespaces of `Network`, each with its own processes, host name, home folder,
login shell, /run and mounts; other files are shared with this machine. This machine gets one
further network device, the client's end of its link. The first process of a node is its sshd: all
others end with it, also when the process of the rig is killed. For tests in other languages,
`python sshd.py NODES` serves a rig by standard input and output: see `_serve`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gridbench_testbed.links.network import ip_environment, run_ip

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from gridbench_testbed.errors import InputError
from gridbench_testbed.links.network import Network, port_of

_FASTEST = 10e9  # bits per second, more than this machine can do: for unshaped links
_PATIENCE = 20.0  # seconds, for steps that take milliseconds

_CLIENT_CONFIG = """\
Host *
    User root
    IdentityFile {folder}/key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking ask
    UpdateHostKeys no
"""
_SSHD_CONFIG = """\
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
MaxStartups 100
"""
# The script of a node's first process, in new namespaces.
_BOOT = """\
set -e
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount -t tmpfs tmpfs /dev/shm
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/shadow" /etc/shadow
hostname "$2"
exec "$3" -D -f "$1/sshd_config" -E "$1/log"
"""


def why_not() -> str:
    """Why a rig cannot start here; empty if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    path = ip_environment()["PATH"]
    for program in ("sshd", "ssh", "ssh-keygen", "setpriv", "nsenter", "unshare"):
        if shutil.which(program, path=path) is None:
            return f"`{program}` is not installed"
    try:
        with Network(1, _FASTEST):
            return ""
    except InputError as error:
        return str(error)


class Rig:
    """Nodes for `ssh -F config node1` while open; nodes are numbered from 1.

    `node2-behind-node1` is node 2 through node 1.
    """

    def __init__(self, nodes: int, rate: float = _FASTEST, delay: float = 0.0) -> None:
        """`rate`: of all links including the client's, in bits per second; `delay`: seconds that
        each packet between client and nodes takes more, one way."""
        self.folder = Path(tempfile.mkdtemp(prefix=f"gr{os.getpid()}-"))
        """All its files: NODE/home is a node's home folder, NODE/log its sshd's log."""
        self.config = self.folder / "config"
        """The configuration for ssh."""
        self._network = Network(nodes, rate, delay)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._closed = False
        atexit.register(self.close)
        try:
            self._network.__enter__()
            self._make()
        except BaseException:
            self.close()
            raise

    @property
    def nodes(self) -> range:
        """The numbers of the nodes."""
        return range(1, self._network.nodes + 1)

    @property
    def client_address(self) -> str:
        """The address of this machine for the nodes."""
        return self._network.client_address

    def address(self, node: int) -> str:
        """The address of a node."""
        return self._network.node_addresses[node - 1]

    def namespace(self, node: int) -> str:
        """The name of a node's network namespace, for `ip netns exec`."""
        return self._network.namespaces[node - 1].name

    def home(self, node: int) -> Path:
        """A node's home folder."""
        return self._of(node) / "home"

    def link(self, node: int, rate: float = _FASTEST, delay: float = 0.0) -> None:
        """Set the rate of a node's link in bits per second, and its delay in seconds, each way.

        A delay needs CONFIG_NET_SCH_NETEM: InputError without it.
        """
        burst = max(round(rate / 8 * 1e-3), 3028)
        queue = burst + max(round(rate / 8 * 20e-3), 40_000)
        shape = f"tbf rate {rate:.0f}bit burst {burst} limit {queue}"
        if delay:
            shape = f"netem delay {delay * 1e3:.3f}ms rate {rate:.0f}bit limit 100000"
        needs = "CONFIG_NET_SCH_NETEM" if delay else "CONFIG_NET_SCH_TBF"
        for interface, namespace in (
            (port_of(node), self._network.switch.name),
            ("link", self.namespace(node)),
        ):
            command = f"qdisc replace dev {interface} root {shape}"
            run_ip("tc", [command], namespace=namespace, needs=needs)

    def cut(self, node: int) -> None:
        """Take a node's link down, as if its cable was unplugged: the node notices."""
        self._set_port(node, "ip", "down")

    def drop(self, node: int) -> None:
        """Drop all packets of a node in the switch; neither side notices."""
        self._set_port(node, "bridge", "state", "0")

    def mend(self, node: int) -> None:
        """Undo `cut` and `drop`."""
        self._set_port(node, "ip", "up")
        # A port that comes up forwards, unless `drop` has disabled it.
        self._set_port(node, "bridge", "state", "3")

    def pids(self, node: int) -> list[int]:
        """The processes of a node, by their ids on this machine."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.namespace(node)],
            env=ip_environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        # The parent of the first process is not part of the node.
        waiting = self._processes[node].pid if node in self._processes else 0
        return [pid for pid in map(int, listed.stdout.split()) if pid != waiting]

    def kill(self, node: int) -> None:
        """Kill all processes of a node, including its sshd."""
        process = self._processes.get(node)
        if process is None:
            return
        for first in self._first(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        del self._processes[node]
        self._until(lambda: not self.pids(node), f"processes of node {node} do not end")

    def boot(self, node: int) -> None:
        """Start a node's sshd, after `kill`."""
        folder = self._of(node)
        path = ip_environment()
        sshd = shutil.which("sshd", path=path["PATH"]) or "sshd"
        command = ["setpriv", "--pdeathsig", "KILL"]
        command += ["nsenter", f"--net={self._network.namespaces[node - 1]}"]
        command += ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        command += ["--mount-proc", "sh", "-c", _BOOT, "sh", str(folder), f"node{node}", sshd]
        with (folder / "log").open("ab") as log:
            self._processes[node] = subprocess.Popen(
                command, env={"PATH": path["PATH"]}, cwd="/", stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._until(lambda: self._answers(node), f"node {node} does not answer", folder / "log")

    def run(self, node: int, script: str) -> str:
        """Run a shell script in a node; its output. Its mounts stay."""
        ran = subprocess.run(
            [*self.inside(node), "sh", "-ec", script],
            env=self.environment(node), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            raise RuntimeError(f"node {node}: `{script}` ended with {ran.returncode}: {ran.stdout}")
        return ran.stdout

    def inside(self, node: int) -> list[str]:
        """Prefix of a command to run in a node, as a child of the caller."""
        (first,) = self._first(self._processes[node])
        return ["nsenter", "--target", str(first), "--mount", "--uts", "--ipc", "--net", "--pid"]

    def environment(self, node: int) -> dict[str, str]:
        """The environment of a command in a node."""
        return {**ip_environment(), "HOME": str(self.home(node))}

    def login_shell(self, node: int, shell: str) -> None:
        """Set the login shell of a node's users."""
        home = self.home(node)
        users = Path("/etc/passwd").read_text(encoding="utf-8").splitlines(keepends=True)
        root = f"root:x:0:0:root:{home}:{shell}\n"
        others = [line for line in users if not line.startswith("root:")]
        # Overwritten in place: the file is mounted in the node.
        (self._of(node) / "passwd").write_text("".join([root, *others]), encoding="utf-8")

    def let_in(self, node: int, *, yes: bool) -> None:
        """Let a node accept the client's key, or refuse it."""
        key = (self.folder / "key.pub").read_text() if yes else ""
        (self._of(node) / "authorized_keys").write_text(key)

    def know(self, node: int, *, yes: bool) -> None:
        """Add a node's host key to the client's known hosts, or remove it."""
        file, address = self.folder / "known_hosts", self.address(node)
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        lines = [line for line in lines if not line.startswith(f"{address} ")]
        if yes:
            lines.append(f"{address} {(self._of(node) / 'host_key.pub').read_text()}")
        file.write_text("".join(lines))

    def change_host_key(self, node: int) -> None:
        """Change a node's host key, which ends all its processes."""
        self.kill(node)
        self._make_key(self._of(node) / "host_key")
        self.boot(node)

    def close(self) -> None:
        """End and remove everything; may be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            for node in list(self._processes):
                self.kill(node)
        finally:
            self._network.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _first(process: subprocess.Popen[bytes]) -> list[int]:
        """The first process of a node, with which all others end; none if it has ended."""
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return [int(pid) for pid in children.read_text().split()] if children.exists() else []

    def _of(self, node: int) -> Path:
        return self.folder / f"node{node}"

    def _make(self) -> None:
        # Users that a test adds to a node need access.
        self.folder.chmod(0o755)
        self._make_key(self.folder / "key")
        names = "".join(
            f"Host node{node} node{node}-behind-*\n    HostName {self.address(node)}\n"
            f"Host *-behind-node{node}\n    ProxyJump node{node}\n"
            for node in self.nodes
        )
        config = _CLIENT_CONFIG.format(folder=self.folder)
        self.config.write_text(names + config)
        for node in self.nodes:
            folder = self._of(node)
            self.home(node).mkdir(parents=True)
            self._make_key(folder / "host_key")
            self.let_in(node, yes=True)
            self.know(node, yes=True)
            self.login_shell(node, "/bin/sh")
            (folder / "shadow").write_text("root:*:19000:0:99999:7:::\n")
            (folder / "shadow").chmod(0o600)
            text = _SSHD_CONFIG.format(folder=folder, address=self.address(node))
            (folder / "sshd_config").write_text(text)
        for node in self.nodes:
            self.boot(node)

    @staticmethod
    def _make_key(file: Path) -> None:
        file.unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(file)]
        subprocess.run(command, check=True)

    def _set_port(self, node: int, program: str, *state: str) -> None:
        command = [program, "-n", self._network.switch.name, "link", "set", "dev", port_of(node)]
        subprocess.run([*command, *state], env=ip_environment(), check=True)

    def _answers(self, node: int) -> bool:
        if self._processes[node].poll() is not None:
            log = (self._of(node) / "log").read_text(errors="replace")
            raise RuntimeError(f"node {node} has ended: {log[-2000:]}")
        try:
            with socket.create_connection((self.address(node), 22), timeout=1):
                return True
        except OSError:
            return False

    @staticmethod
    def _until(condition: Callable[[], object], what: str, log: Path | None = None) -> None:
        end = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > end:
                more = f": {log.read_text(errors='replace')[-2000:]}" if log else ""
                raise TimeoutError(what + more)
            time.sleep(0.01)


def _serve(nodes: int) -> None:
    """Serve a rig by standard input and output until the input ends.

    A request is a line of JSON, `["run", 1, "uname -n"]`; the answer is a line with the result. If
    the rig cannot start, the output is `{"skip": WHY}`.
    """
    if why := why_not():
        print(json.dumps({"skip": why}))
        return
    with Rig(nodes) as rig:
        reported = {
            "config": str(rig.config),
            "folder": str(rig.folder),
            "client": rig.client_address,
        }
        print(json.dumps(reported), flush=True)
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            options = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
            result = getattr(rig, name)(*arguments, **options)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    # Remove everything after a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _serve(int(sys.argv[1]))
