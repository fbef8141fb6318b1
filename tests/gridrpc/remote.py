"""Functions that the tests have workers import and run."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import time
import weakref
from pathlib import Path
from typing import Any, NoReturn

#: What a worker keeps from one call to the next.
stored: dict[str, Any] = {}


def add(a: Any, b: Any) -> Any:
    return a + b


@functools.lru_cache
def cached(x: int) -> int:
    return x + 1


def same(x: Any) -> Any:
    return x


def everything(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return (*args, kwargs)


def length(x: Any) -> int:
    return len(x)


def pid() -> int:
    return os.getpid()


def nap(seconds: float, value: Any = None) -> Any:
    time.sleep(seconds)
    return value


def nap_on_host(value: int, scale: int) -> dict[str, Any]:
    """A result, and the node of a batch system that has computed it."""
    time.sleep(0.01)
    return {"result": scale * value, "host": os.environ.get("SLURMD_NODENAME")}


def touch(file: str) -> None:
    Path(file).touch()


def nap_and_touch(seconds: float, file: str) -> None:
    time.sleep(seconds)
    touch(file)


def wait_for(file: str, value: Any = None) -> Any:
    """Runs until somebody makes the file."""
    while not os.path.exists(file):
        time.sleep(0.005)
    return value


def note(file: str, what: str) -> None:
    """Appends a line."""
    with Path(file).open("a", encoding="utf-8") as log:
        log.write(f"{what}\n")


def tell_and_wait(started: str, file: str, value: Any = None) -> Any:
    """Makes the first file, then runs until somebody makes the second."""
    Path(started).touch()
    return wait_for(file, value)


def tell_host_and_wait(started: str, files: list[str], value: Any = None) -> Any:
    """Writes its host's name into the first file, then runs until one of the others is made."""
    new = Path(f"{started}.{os.uname().nodename}.{os.getpid()}")
    new.write_text(os.uname().nodename)
    new.rename(started)
    while not any(map(os.path.exists, files)):
        time.sleep(0.005)
    return value


def count_and(file: str, what: str) -> int:
    """Log the call in a file, perform the action, and return the number of calls so far."""
    with open(file, "a", encoding="ascii") as notes:
        notes.write("x")
    count = Path(file).stat().st_size
    if what == "crash" or (what == "crash twice" and count <= 2):
        os._exit(3)
    return count


def keep(name: str, value: Any) -> None:
    stored[name] = value


def give(name: str) -> Any:
    return stored[name]


def drop(name: str) -> None:
    stored.pop(name, None)


def read_in_child(gate: str, found: str, array: Any) -> None:
    """Leave a child behind that reads the array when the gate is open, and writes what it found."""
    if os.fork() > 0:
        return
    try:
        until = time.monotonic() + 60
        while not Path(gate).exists() and time.monotonic() < until:
            time.sleep(0.01)
        Path(found + ".new").write_text(str(int(array.sum())))
        Path(found + ".new").rename(found)
    finally:
        os._exit(0)


class Refusing(Exception):
    """Takes two arguments but pickles with one."""

    def __init__(self, one: object, two: object) -> None:
        super().__init__(f"{one} and {two}")


class Unpicklable(Exception):
    def __reduce__(self) -> NoReturn:
        raise TypeError("not me")


class Mute(Exception):
    def __str__(self) -> NoReturn:
        raise ValueError("no words")


class Detailed(Exception):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message, code)
        self.code = code


ERRORS: dict[str, Any] = {
    "detailed": lambda: Detailed("failed", 42),
    "refusing": lambda: Refusing(1, 2),
    "unpicklable": lambda: Unpicklable("secret"),
    "mute": Mute,
    "surrogate": lambda: ValueError("\udcff"),
    "huge": lambda: ValueError("x" * 1_000_000),
    "keyboard": KeyboardInterrupt,
    "stop": lambda: StopIteration(5),
    "memory": lambda: MemoryError("too much"),
}


def fail(kind: str) -> NoReturn:
    raise ERRORS[kind]()


def fail_because() -> NoReturn:
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("outer") from error


def fail_at(bad: int, item: int) -> int:
    if item == bad:
        raise ValueError(f"item {item}")
    return item


def die(how: str) -> NoReturn:
    print(f"about to die by {how}", file=sys.stderr, flush=True)
    if how == "exit":
        os._exit(7)
    if how == "sys.exit":
        sys.exit(9)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    ctypes.string_at(0)
    raise AssertionError("unreachable")


class Lock:
    """Something that no pickle takes."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Lock stays where it is")


def make_lock() -> Lock:
    return Lock()


def result_that_breaks(how: str) -> Any:
    class Breaking:
        def __reduce__(self) -> NoReturn:
            if how == "recursion":
                raise RecursionError("too deep")
            raise RuntimeError("not now")

    return Breaking()


class Unloadable:
    """Pickles, but cannot be unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _refuse, ()


def _refuse() -> NoReturn:
    raise ValueError("it does not load")


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, more: Any) -> Any:
        return self.value + more

    def get(self) -> Any:
        return self.value

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @staticmethod
    def twice(x: Any) -> Any:
        return 2 * x


def fill(x: Any) -> float:
    """Changes its argument."""
    x[...] = -1
    return float(x.sum())


def describe(x: Any) -> tuple[Any, ...]:
    return type(x).__name__, x.dtype.str, x.shape, x.flags.writeable, x.flags.f_contiguous


def writeable(x: Any) -> bool:
    return bool(x.flags.writeable)


def total(*arrays: Any) -> float:
    return float(sum(a.sum() for a in arrays))


def total_nested(data: Any) -> float:
    return float(sum(a.sum() for a in data["list"]) + data["tuple"][1].sum())


def touch_and_hold(x: Any, barrier: str, value: Any = None) -> Any:
    """Reads all of its argument, then holds it until somebody makes the file."""
    x.sum()
    Path(f"{barrier}.{os.getpid()}").touch()
    return wait_for(barrier, value)


def make_array(size: int, value: int) -> Any:
    import numpy as np

    return np.full(size, value, np.uint8)


def first_half(x: Any) -> Any:
    return x[: len(x) // 2]


def plus_one(x: Any) -> Any:
    x += 1
    return x


def overlapping(x: Any) -> tuple[Any, Any, Any]:
    return x, x[:-1], x[1:]


def keep_and_give(name: str, value: Any) -> Any:
    stored[name] = value
    return value


def make_shared(size: int, value: int, name: str | None = None) -> Any:
    import gridrpc

    array = gridrpc.empty(size)
    array[:] = value
    if name is not None:
        stored[name] = array
    return array


def cwd_and_path() -> tuple[str, list[str]]:
    return os.getcwd(), sys.path


def append(given: list[Any], value: Any) -> list[Any]:
    """Changes its argument."""
    given.append(value)
    return given


def grow(value: Any) -> list[Any]:
    """Returns the same list each time, longer by one."""
    grown: list[Any] = stored.setdefault("grown", [])
    grown.append(value)
    return grown


def stop_at(bad: int, item: int) -> int:
    if item == bad:
        raise StopIteration(item)
    return item


def lock_at(bad: int, item: int) -> Any:
    """A result that cannot be pickled, for one item."""
    return Lock() if item == bad else item


def refusing_at(bad: int, item: int) -> Any:
    """A result that cannot be unpickled, for one item."""
    return Grudging() if item == bad else [item]


class Grudging:
    """Something that can be pickled, but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return fail, ("detailed",)


def crash_at(bad: int, item: int) -> int:
    if item == bad:
        os._exit(3)
    return item


def results_of_kind(kind: str, item: int) -> Any:
    """What items return, all different."""
    if kind == "numbers":
        return item if item % 2 else item / 4
    if kind == "plain":
        return [None, True, False, f"item {item} \u20ac", b"%d" % item, -item][item % 6]
    if kind == "scalars":
        import numpy as np

        return [np.float64(item), np.int8(item % 100), np.bool_(item % 2)][item % 3]
    if kind == "arrays":
        import numpy as np

        return np.full(item % 7, item)
    if kind == "mixed":
        return item if item % 50 < 30 else [item, str(item)]
    return "x" * 9_000 + str(item)


def once(notes: str, kind: str, bad: int, item: int) -> Any:
    """Notes that the item has run, and is killed at one of them."""
    note(notes, str(item))
    if item == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return results_of_kind(kind, item)


def fork_once(item: int) -> int:
    """Returns from a child as well."""
    if item == 20 and os.fork() == 0:
        time.sleep(0.2)
        return -1
    return item


def timed(seconds: float) -> tuple[int, float, float]:
    """Who ran it, from when to when."""
    begin = time.monotonic()
    time.sleep(seconds)
    return os.getpid(), begin, time.monotonic()


def add_to_kept(name: str, value: float) -> None:
    stored[name] += value
    stored["total"] = stored.get("total", 0.0) + value * len(stored[name])


def sum_and_own(name: str) -> tuple[float, float]:
    return float(stored[name].sum()), stored.get("total", 0.0)


def pid_of(item: Any) -> int:
    del item
    return os.getpid()


def put_pid(queue: Any, lock: Any) -> None:
    assert not lock.acquire(block=False), "the client has it"
    queue.put(os.getpid())
    queue.put(("ended", os.getpid()))


def item_of(data: Any, index: int) -> float:
    assert not data.flags.writeable
    stored["items"] = weakref.ref(data)
    return float(data[index])


def has_items() -> bool:
    """Whether the data that `item_of` was given last is still there."""
    return stored["items"]() is not None


def opens(files: int) -> int:
    """Opens so many files at a time."""
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(files)]
    for descriptor in descriptors:
        os.close(descriptor)
    return len(descriptors)


def filled(value: float) -> Any:
    """An array that lies in shared memory."""
    import numpy as np

    return np.full(4200, float(value))


def shorten_segments() -> tuple[int, int]:
    """Tries to shorten what this worker has lent; says how often that was refused, of how many."""
    refused = tried = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if "memfd:gridrpc" not in os.readlink(f"/proc/self/fd/{name}"):
                continue
        except FileNotFoundError:
            continue
        tried += 1
        try:
            os.ftruncate(int(name), 0)
        except PermissionError:
            refused += 1
    return refused, tried


def threads() -> dict[str, int]:
    """How many threads OpenMP and OpenBLAS would use."""
    import numpy as np

    float(np.ones((8, 8)).dot(np.ones((8, 8)))[0, 0])
    used = {"omp": ctypes.CDLL("libgomp.so.1").omp_get_max_threads()}
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    for file in sorted({line.split()[-1] for line in maps.splitlines() if "openblas" in line}):
        library = ctypes.CDLL(file)
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", ""):
                name = f"{prefix}_get_num_threads{suffix}"
                if hasattr(library, name):
                    used["blas"] = getattr(library, name)()
    return used


def end_once(file: str) -> int:
    """Ends its process the first time."""
    if not os.path.exists(file):
        touch(file)
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def chaotic(number: int, notes: str | None = None, gate: str | None = None) -> tuple[int, Any]:
    """Numbers in which each bit counts. Leaves a note that it has begun; on this machine it waits
    for the gate."""
    import numpy as np

    if notes is not None:
        cluster = os.environ.get("CLUSTER", "here")
        Path(notes, f"{cluster}.{number}.{os.getpid()}").touch()
        time.sleep(0.02)
        while cluster == "here" and gate is not None and not Path(gate).exists():
            time.sleep(0.01)
    values = np.linspace(0.1, 0.9, 1000) + number / 1e6
    for _ in range(100):
        values = 3.99 * values * (1 - values)
    return number, values
