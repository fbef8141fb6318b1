"""The model of examples/ensemble: transforms, physics, convergence, and wrong arguments."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from test_examples import SECONDS, copy_of, make

import gridrpc

RADIUS, ROTATION = 6.371e6, 7.292e-5
DAY = 86400
FRAMES_PER_DAY = 4
STRICT = "-O2 -Wall -Wextra -Werror"
OFF = {"drag": 0, "diffusion": 0, "mountains": 0, "jet": 0, "growth": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = copy_of("ensemble", tmp_path_factory.mktemp("model"))
    make(built, "ensemble.so", FFLAGS=STRICT)
    return built


class Model:
    """The model through a grid, with settings as keywords."""

    def __init__(self, grid: gridrpc.Grid, folder: Path) -> None:
        self._forecast = grid.function("ensemble/forecast")
        self._initial = grid.function("ensemble/initial_state")
        self._file = folder / "settings.nml"

    def initial(self, member: int = 0, perturbation: float = 1.0, truncation: int = 20):
        return self._initial(truncation, member, perturbation)

    def tried(self, initial, frames: int, text: str):
        """Status, message and states, with a file of settings that may be wrong."""
        self._file.write_text(text)
        truncation = round(len(initial) ** 0.5) - 1
        result = self._forecast(truncation, frames, self._file, initial)
        return result.status[0], bytes(result.message).decode().strip(), result.states

    def states(self, initial, days: float, **settings: float) -> np.ndarray:
        """States by frame."""
        text = "".join(f"  {name} = {value}\n" for name, value in settings.items())
        frames = round(days * FRAMES_PER_DAY)
        status, message, states = self.tried(initial, frames, f"&model\n{text}/\n")
        assert status == 0, message
        return states.T


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with gridrpc.Grid(1, worker="native", modules=[folder]) as grid:
        yield Model(grid, tmp_path_factory.mktemp("settings"))


def numbers_of(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """n and m of each number of a state."""
    truncation = round(len(state) ** 0.5) - 1
    pairs = [(n, 0) for n in range(truncation + 1)]
    for m in range(1, truncation + 1):
        for n in range(m, truncation + 1):
            pairs += [(n, m)] * 2
    n, m = np.array(pairs).T
    return n, m


def place(truncation: int, n: int, m: int) -> int:
    """Where the real part of a coefficient is in a state."""
    found = numbers_of(np.zeros((truncation + 1) ** 2))
    return int(np.flatnonzero((found[0] == n) & (found[1] == m))[0])


def enstrophy(state: np.ndarray) -> float:
    """Mean square of the vorticity, 1/s2."""
    _, m = numbers_of(state)
    return float(np.sum(state**2 * np.where(m > 0, 2, 1)))


def energy(state: np.ndarray) -> float:
    """Mean square of the wind, m2/s2."""
    n, m = numbers_of(state)
    return float(np.sum(state**2 * np.where(m > 0, 2, 1) / np.maximum(n * (n + 1), 1)) * RADIUS**2)


def drift(
    quantity: Callable[[np.ndarray], float], initial: np.ndarray, states: np.ndarray
) -> float:
    """How much a quantity changes at most, as a share of what it was."""
    return max(abs(quantity(state) / quantity(initial) - 1) for state in states)


def test_transforms_are_exact_to_rounding(folder: Path) -> None:
    compiled = subprocess.run(
        ["gfortran", *STRICT.split(), "-std=f2008", "-o", "check_harmonics",
         "spherical_harmonics.o", Path(__file__).with_name("check_harmonics.f90").resolve()],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    assert compiled.stderr == ""
    printed = subprocess.run(
        ["./check_harmonics"], cwd=folder, capture_output=True, text=True, timeout=SECONDS,
        check=True,
    ).stdout  # fmt: skip
    errors = dict(line.split(": ") for line in printed.splitlines())
    assert len(errors) == 4 * 8
    assert {what: error for what, error in errors.items() if not float(error) < 1e-13} == {}


@pytest.mark.parametrize(("truncation", "mountains"), [(20, 0), (20, 1), (31, 1)])
def test_energy_is_conserved(model: Model, truncation: int, mountains: int) -> None:
    # The grid of truncation 31 would be a smaller one if products had aliases.
    initial = model.initial(truncation=truncation)
    states = model.states(initial, 10, **{**OFF, "mountains": mountains, "time_step": 900})
    assert energy(initial) > 100
    assert drift(energy, initial, states) < 1e-8
    # What conserves it is not that nothing happens.
    assert np.abs(states[-1] - initial).max() > 0.3 * np.abs(initial).max()


def test_enstrophy_and_angular_momentum_are_conserved(model: Model) -> None:
    initial = model.initial()
    states = model.states(initial, 10, **OFF, time_step=900)
    assert drift(enstrophy, initial, states) < 1e-7
    # Angular momentum is the coefficient of n = 1, m = 0.
    assert drift(lambda state: state[1], initial, states) < 1e-10
    # Mountains exchange angular momentum with the atmosphere.
    pushed = model.states(initial, 10, **{**OFF, "mountains": 1})
    assert drift(lambda state: state[1], initial, pushed) > 1e-3


def rossby_haurwitz(truncation: int, n: int, m: int, rotation: float, wave: float) -> np.ndarray:
    """The vorticity of a rotation of the whole atmosphere and one wave, 1/s."""
    state = np.zeros((truncation + 1) ** 2)
    state[1] = 2 * rotation / 3**0.5
    state[place(truncation, n, m)] = wave
    return state


@pytest.mark.parametrize(("n", "m"), [(5, 4), (6, 5), (9, 2), (2, 1)])
def test_rossby_haurwitz_waves_have_their_phase_speed(model: Model, n: int, m: int) -> None:
    rotation, wave = 7.848e-6, 2e-5
    initial = rossby_haurwitz(20, n, m, rotation, wave)
    states = model.states(initial, 10, **OFF, time_step=900)
    speed = rotation - 2 * (ROTATION + rotation) / (n * (n + 1))
    at = place(20, n, m)
    coefficients = states[:, at] + 1j * states[:, at + 1]
    time = np.arange(1, len(states) + 1) / FRAMES_PER_DAY * DAY
    assert coefficients / wave == pytest.approx(np.exp(-1j * m * speed * time), abs=1e-6)
    # All else stays as it was.
    states[:, at : at + 2] = initial[at : at + 2]
    assert np.abs(states - initial).max() < 1e-10 * wave


def test_time_steps_converge_with_order_four(model: Model) -> None:
    initial = model.initial()
    steps = (3600, 1800, 900, 225)
    found = [model.states(initial, 3, time_step=step)[-1] for step in steps]
    errors = [np.linalg.norm(one - found[-1]) for one in found[:-1]]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx(4, abs=0.3)
    assert errors[0] < 1e-3 * np.linalg.norm(found[-1])


def test_resolution_converges_faster_than_any_order(model: Model) -> None:
    fine = 63
    waves = {(5, 4): 6e-6, (3, 2): 3e-6, (4, 1): -3e-6}

    def last(truncation: int) -> np.ndarray:
        initial = rossby_haurwitz(truncation, 6, 3, 7.848e-6, 3e-6)
        for (n, m), wave in waves.items():
            initial[place(truncation, n, m)] = wave
        return model.states(initial, 0.5, **OFF, time_step=1800)[-1]

    reference = last(fine)
    errors = []
    for truncation in (10, 20, 40):
        state = last(truncation)
        stored = numbers_of(reference)[0] <= truncation
        errors.append(np.linalg.norm(state - reference[stored]) / np.linalg.norm(reference))
    assert errors[0] > 1e-4
    assert errors[1] < errors[0] / 30
    assert errors[2] < errors[1] / 500


def test_drag_and_diffusion_slow_by_e(model: Model) -> None:
    rotation = rossby_haurwitz(20, 2, 1, 1e-6, 0)
    slowed = model.states(rotation, 5, **{**OFF, "drag": 2.5})
    assert slowed[-1] == pytest.approx(rotation * np.exp(-2), abs=1e-18)
    smallest = rossby_haurwitz(20, 20, 7, 0, 1e-9)
    at = place(20, 20, 7)
    diffused = model.states(smallest, 1, **{**OFF, "diffusion": 12})
    assert np.hypot(*diffused[-1][at : at + 2]) / 1e-9 == pytest.approx(np.exp(-2), rel=1e-6)
    # Diffusion is biharmonic.
    larger = rossby_haurwitz(20, 10, 7, 0, 1e-9)
    at = place(20, 10, 7)
    diffused = model.states(larger, 1, **{**OFF, "diffusion": 12})
    rate = 2 * (10 * 11 / (20 * 21)) ** 2
    assert np.hypot(*diffused[-1][at : at + 2]) / 1e-9 == pytest.approx(np.exp(-rate), rel=1e-6)


def test_a_jet_in_balance_stays(model: Model) -> None:
    jet = model.states(np.zeros(441), 40, **{**OFF, "drag": 1, "jet": 40})[-1]
    assert energy(jet) > 100
    after = model.states(jet, 10, **{**OFF, "drag": 1, "jet": 40})[-1]
    assert after == pytest.approx(jet, abs=1e-12)


def test_weak_waves_grow_and_strong_ones_do_not(model: Model) -> None:
    weak = rossby_haurwitz(20, 7, 6, 0, 1e-9)
    at = place(20, 7, 6)
    grown = model.states(weak, 3, **{**OFF, "growth": 1.5})
    assert np.hypot(*grown[-1][at : at + 2]) / 1e-9 == pytest.approx(np.exp(2), rel=1e-4)
    long = model.states(weak, 100, **{**OFF, "growth": 1.5})
    assert energy(long[-1]) ** 0.5 == pytest.approx(18, rel=0.01)


def test_results_have_the_published_sizes(model: Model) -> None:
    # Input 3.4 KB; results 138 KB, 408 KB and 1.35 MB. A month of 30 days is 1 % more here.
    initial = model.initial()
    assert initial.nbytes / 1024 == pytest.approx(3.4, abs=0.05)
    sizes = [model.states(initial, days).nbytes / 1024 for days in (10, 30, 100)]
    assert sizes == pytest.approx([138, 408, 1.35 * 1024], rel=0.014)


def test_a_model_that_diverges_says_when(model: Model) -> None:
    initial = 2 * model.initial()
    status, message, states = model.tried(initial, 40, "&model\ntime_step = 21600\n/\n")
    assert status == 1
    assert message.startswith("the model diverged before hour ")
    frame = int(message.split("hour ")[1].split(":")[0]) // 6
    assert "its time step is 21600 s: try a shorter one" in message
    # The states until then are there, and no others.
    assert np.isfinite(states[:, : frame - 1]).all()
    assert np.isnan(states[:, frame - 1 :]).all()
    # With shorter steps it does not.
    assert model.tried(initial, 40, "&model\n/\n")[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("&model\ntime_step = 0\n/\n", "`time_step` is 0: it has to be from 60 to 21600 s"),
        ("&model\ntime_step = NaN\n/\n", "`time_step` is NaN: it has to be from 60 to 21600 s"),
        ("&model\ndrag = -2.5\n/\n", "`drag` is -2.500: it has to be from 0 to 1000 days"),
        ("&model\ndiffusion = 1e999\n/\n", "`diffusion` is Inf: it has to be from 0 to 1000 h"),
        ("&model\nmountains = 6\n/\n", "`mountains` is 6: it has to be from 0 to 5 times"),
        ("&model\njet = 151\n/\n", "`jet` is 151: it has to be from -150 to 150 m/s"),
        ("&model\ngrowth = 1e6\n/\n", "`growth` is 1000000: it has to be from 0 to 1000 days"),
        ("&model\ndrog = 5\n/\n", "drog; the variables are the numbers time_step, drag,"),
        ("&model\ndrag = fast\n/\n", "or a value in it is not a number"),
        ("&other\ndrag = 5\n/\n", "no namelist &model that ends with a line /"),
        ("&model\ndrag = 5\n", "no namelist &model that ends with a line /"),
        ("", "no namelist &model that ends with a line /"),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(model: Model, text: str, said: str) -> None:
    status, message, states = model.tried(model.initial(), 4, text)
    assert status == 2
    assert message.startswith("settings: ")
    assert said in message
    assert np.isnan(states).all()


def test_wrong_states_and_truncations_are_named(model: Model) -> None:
    settings = "&model\n/\n"
    initial = model.initial()
    initial[7] = np.nan
    status, message, _ = model.tried(initial, 4, settings)
    assert (status, message.split(" m/s")[0]) == (2, "initial: the fastest wind is NaN")
    status, message, _ = model.tried(100 * model.initial(), 4, settings)
    assert status == 2
    assert "it has to be below 340 m/s" in message
    status, message, _ = model.tried(np.zeros(16), 4, settings)
    assert (status, message) == (2, "the truncation is 3: it has to be from 5 to 170")
    assert model.tried(model.initial(), 0, settings)[0] == 0
