//! `init`: a commented configuration to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};
use crate::cli::terminal;
use crate::config::SAMPLE;

/// What `init` takes: the file is named by `--config`.
#[derive(Debug, Args)]
pub struct InitArgs {}

/// Runs the command. A file that exists is never overwritten.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn run(_args: &InitArgs, global: &Global) -> anyhow::Result<Exit> {
    let path = global.config.clone().unwrap_or_else(|| PathBuf::from("sierra-sync.toml"));
    let shown = path.display();
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let sentence = format!("{shown} exists and is never overwritten; name another file with --config");
            return Err(Refused(sentence).into());
        }
        Err(error) => return Err(error).with_context(|| format!("failed to create {shown}")),
    };
    file.write_all(SAMPLE.as_bytes()).with_context(|| format!("failed to write {shown}"))?;
    let option = if global.config.is_some() { format!(" --config {shown}") } else { String::new() };
    if !global.quiet {
        terminal::talk(&format!(
            "Wrote {shown}. Next:
  1. Set base_url and client_key in it.
  2. Put the client secret into a file, run chmod 600 on it, and name it in client_secret_file.
  3. sierra-sync check{option}
  4. sierra-sync run{option}   follows Sierra for good; from cron: sierra-sync sync{option}, one pass"
        ));
    }
    Ok(Exit::Ok)
}
