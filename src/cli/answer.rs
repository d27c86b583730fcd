//! Printing the lines of an answer, whoever gave it.

use std::io;

use crate::cli::terminal;
use crate::ops::control::Line;

/// Data goes to stdout as `render` shows it, talk to stderr.
pub(super) fn printed(mut render: impl FnMut(&str) -> anyhow::Result<String>) -> impl FnMut(Line) -> io::Result<()> {
    move |line| match line {
        Line::Data(text) => terminal::data(&render(&text).map_err(io::Error::other)?),
        Line::Talk(text) => {
            terminal::talk(&text);
            Ok(())
        }
        Line::Accepted | Line::Exit(_) => Ok(()),
    }
}
