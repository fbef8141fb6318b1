"""What shells complete is there once an environment is active."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_an_active_environment_completes_both_programs(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment)
    for program in ("gridrpc", "gridbench"):
        (environment / "bin" / program).symlink_to(Path(sys.executable).with_name(program))
    for _ in range(2):
        subprocess.run([REPOSITORY / "scripts/install-completion", environment], check=True)
    found = sorted(str(path.relative_to(environment)) for path in environment.glob("share/*/*/*"))
    assert found == [
        "share/bash-completion/completions/gridbench",
        "share/bash-completion/completions/gridrpc",
        "share/fish/vendor_completions.d/gridbench.fish",
        "share/fish/vendor_completions.d/gridrpc.fish",
        "share/zsh/site-functions/_gridbench",
        "share/zsh/site-functions/_gridrpc",
    ]
    activate = environment / "bin" / "activate"
    assert activate.read_text().count("# gridrpc: completion") == 1
    ask = f". {activate}; complete -p gridrpc gridbench"
    interactive = subprocess.run(
        ["bash", "--norc", "-i", "-c", ask], capture_output=True, text=True, check=True
    )
    assert "-F _gridrpc" in interactive.stdout
    assert "-F _gridbench_completion" in interactive.stdout
    # Programs that activate it are not slowed down.
    script = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False)
    assert "-F _gridrpc" not in script.stdout
