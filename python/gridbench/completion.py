"""The command `gridbench completion`.

    python -m gridbench.completion SHELL

is the same before gridbench and what it needs are installed, but for click: as packages are built.
"""

from __future__ import annotations

import click
from click import shell_completion

from gridbench.command_line import CommandWithExamples


@click.command(
    cls=CommandWithExamples,
    examples=(
        "source <(gridbench completion bash)              # in ~/.bashrc",
        "source <(gridbench completion zsh)               # in ~/.zshrc",
        "gridbench completion fish | source               # in config.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what SHELL (bash, zsh or fish) needs to complete commands and options."""
    known = shell_completion.get_completion_class(shell)
    assert known is not None, "click knows these shells"
    program = context.find_root()
    # Filled in here and not by its method `source`, which starts a bash to see how old it is.
    script = known(program.command, {}, "gridbench", "_GRIDBENCH_COMPLETE")
    click.echo(script.source_template % script.source_vars())


if __name__ == "__main__":
    completion()
