//! `gridrpc completion`: completion scripts for shells.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Command};
use clap_complete::Shell;

/// For which shell.
#[derive(Args, Clone, Copy, Debug)]
pub struct Options {
    /// The shell that is to complete them
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"])
        .try_map(|name| name.parse::<Shell>()))]
    shell: Shell,
}

/// The shell's completion script for `program`.
#[must_use]
pub fn script(options: Options, program: &Command) -> String {
    let name = program.get_name().to_owned();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let mut offered = Command::new(name.clone())
        .version(program.get_version().unwrap_or_default().to_owned())
        .disable_help_subcommand(true)
        .subcommands(commands.map(|command| match command.get_name() {
            "session" => session(command),
            _ => command.clone(),
        }));
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut offered, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The session command with its subcommands, which the Python program parses itself.
fn session(command: &Command) -> Command {
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .subcommands(["start", "list", "show", "stop"].map(Command::new))
}
