//! Commands that are planned and not built yet: recognised, and refused with one sentence.
//!
//! When one is built its row goes; a test keeps the README's list equal to this table.

use std::ffi::OsString;

use clap::{Arg, ArgAction, value_parser};

use crate::config::unbuilt::UNBUILT;

/// A command that is not built yet.
#[derive(Debug, Clone, Copy)]
pub struct UnbuiltCommand {
    /// Its name.
    pub name: &'static str,
    /// What to do instead, as the end of a sentence.
    pub instead: &'static str,
}

/// Every row.
pub const UNBUILT_COMMANDS: &[UnbuiltCommand] = &[];

/// What is not built yet, commands and settings, as it stands in the README.
#[must_use]
pub fn list() -> String {
    let commands: Vec<String> = UNBUILT_COMMANDS.iter().map(|row| format!("`{}`", row.name)).collect();
    let mut lines = Vec::new();
    if !commands.is_empty() {
        lines.push(format!("- Commands: {}.", commands.join(", ")));
    }
    for row in UNBUILT {
        let values: Vec<String> = row.values.iter().map(|value| format!("`{value}`")).collect();
        let subject = if values.is_empty() { "any value".to_owned() } else { values.join(", ") };
        lines.push(format!("- `{}`: {subject}; {}.", row.key, row.instead));
    }
    lines.join("\n")
}

/// Adds the commands to clap's, hidden, each swallowing whatever arguments it is given.
pub(super) fn add_to(command: clap::Command) -> clap::Command {
    let rest = Arg::new("rest")
        .action(ArgAction::Append)
        .num_args(0..)
        .value_parser(value_parser!(OsString))
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .hide(true);
    let commands = UNBUILT_COMMANDS.iter().map(|row| {
        clap::Command::new(row.name).hide(true).disable_help_flag(true).disable_version_flag(true).arg(rest.clone())
    });
    command.subcommands(commands)
}

/// The sentence for `name`, if that is not built yet.
pub(super) fn sentence(name: &str) -> Option<String> {
    let row = UNBUILT_COMMANDS.iter().find(|row| row.name == name)?;
    Some(format!("`{name}` is not built yet; {}", row.instead))
}
