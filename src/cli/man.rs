//! `man`: the manual pages, from the same source as the command line itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::cli::args::Arguments;
use crate::cli::exit::{Exit, Refused};
use crate::cli::terminal;

/// What stands at the foot of every page.
const SOURCE: &str = concat!("sierra-sync ", env!("CARGO_PKG_VERSION"));

/// What `man` takes.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The command whose page is printed [default: the page of sierra-sync itself]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,
    /// Writes every page into this directory instead, as sierra-sync.1, sierra-sync-sync.1 and so on
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Runs the command: one page goes to stdout, or all of them into a directory.
///
/// # Errors
/// When there is no such command, or a page cannot be written.
pub fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let pages = pages();
    if let Some(directory) = &args.output {
        write_all(directory, &pages)?;
        return Ok(Exit::Ok);
    }
    let name = args.command.as_ref().map_or_else(|| "sierra-sync".to_owned(), |name| format!("sierra-sync-{name}"));
    let Some(page) = pages.into_iter().find(|page| self::name(page) == name) else {
        return Err(Refused(format!("there is no page for {name}; `sierra-sync --help` lists the commands")).into());
    };
    terminal::data(render(page)?.trim_end())?;
    Ok(Exit::Ok)
}

/// Every command, the program itself first. Building gives each its full name: `sierra-sync-breaker-open`.
fn pages() -> Vec<clap::Command> {
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    let mut left = vec![program];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|inner| !inner.is_hide_set()).cloned());
        pages.push(command);
    }
    pages
}

fn name(page: &clap::Command) -> &str {
    page.get_display_name().unwrap_or_else(|| page.get_name())
}

fn write_all(directory: &Path, pages: &[clap::Command]) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("failed to make the directory {}", directory.display()))?;
    for page in pages {
        let path = directory.join(format!("{}.1", name(page)));
        let text = render(page.clone())?;
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

fn render(page: clap::Command) -> anyhow::Result<String> {
    let mut text = Vec::new();
    // Every page belongs to the one program, whatever its command is called.
    Man::new(page).source(SOURCE).render(&mut text)?;
    Ok(String::from_utf8(text)?)
}
