//! `completions`: what a shell needs to complete this command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::args::Arguments;
use crate::cli::exit::Exit;
use crate::cli::terminal;

/// What `completions` takes.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs the command: the script goes to stdout.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(args: CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "sierra-sync", &mut script);
    terminal::data(String::from_utf8(script)?.trim_end())?;
    Ok(Exit::Ok)
}
