"""Listeners continue after a shortage."""

from __future__ import annotations

import subprocess
import sys

#: Without descriptors for a while; and a thread that cannot be started.
SCRIPT = """
import resource, socket, threading
from gridbench_testbed import daemons

def echo(connection):
    with connection:
        connection.sendall(connection.recv(1))

listener = socket.create_server(("127.0.0.1", 0))
clients = [socket.socket() for _ in range(4)]
for client in clients:
    client.settimeout(60)
paused, sleep = threading.Event(), daemons.time.sleep

def pause(seconds):
    paused.set()
    sleep(seconds)

daemons.time.sleep = pause
threading.Thread(target=daemons.serve_each, args=(listener, echo), daemon=True).start()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
for client in clients[:2]:
    client.connect(listener.getsockname())
assert paused.wait(60)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
for client in clients[:2]:
    client.sendall(b"x")
    assert client.recv(1) == b"x"

def refuse(thread):
    raise RuntimeError("can't start new thread")

start, threading.Thread.start = threading.Thread.start, refuse
clients[2].connect(listener.getsockname())
assert clients[2].recv(1) == b""
threading.Thread.start = start
clients[3].connect(listener.getsockname())
clients[3].sendall(b"y")
assert clients[3].recv(1) == b"y"
"""


def test_a_listener_survives_a_shortage() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
