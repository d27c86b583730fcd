//! Printing the lines of an answer, whoever gave it.

use std::io;

use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::terminal;
use crate::ops::control::Line;

/// Data goes to stdout as `render` shows it, talk to stderr.
pub(super) fn printed(render: impl FnMut(&str) -> anyhow::Result<String>) -> impl FnMut(Line) -> io::Result<()> {
    printed_by(render, |text| terminal::data(&text))
}

/// The same, where data goes to `print`: of an order it is told at the end only what came of it.
pub(super) fn printed_by(
    mut render: impl FnMut(&str) -> anyhow::Result<String>,
    mut print: impl FnMut(String) -> io::Result<()>,
) -> impl FnMut(Line) -> io::Result<()> {
    move |line| match line {
        Line::Data(text) => print(render(&text).map_err(io::Error::other)?),
        Line::Talk(text) => {
            terminal::talk(&text);
            Ok(())
        }
        Line::Accepted | Line::Exit(_) => Ok(()),
    }
}

/// What came of an order. As JSON it is data and always there; as text, with `--quiet`, only where something went wrong,
/// and on stderr.
///
/// # Errors
/// When stdout is gone.
pub(super) fn outcome(global: &Global, exit: Exit, text: &str) -> io::Result<()> {
    match (global.json, global.quiet, exit) {
        (false, true, Exit::Ok) => Ok(()),
        (false, true, _) => {
            terminal::talk(text);
            Ok(())
        }
        _ => terminal::data(text),
    }
}

/// A remark on what was listed or done; none with `--quiet`, and none for programs.
pub(super) fn remark(global: &Global, text: &str) {
    if !global.json && !global.quiet {
        terminal::talk(text);
    }
}
