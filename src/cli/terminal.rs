//! Output: data goes to stdout, talk to stderr. Nothing else in the crate prints.

use std::io::{self, IsTerminal, Write};

/// Writes one line of data to stdout.
///
/// # Errors
/// When stdout cannot be written to. A reader that has gone away (`| head`) is no error: what it did not want is not
/// missed.
pub fn data(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Says something to the person at the terminal. If stderr is gone there is nobody to tell.
pub fn talk(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Whether colour is wanted on stdout: a terminal, and no `NO_COLOR` (<https://no-color.org>).
#[must_use]
pub fn is_coloured() -> bool {
    io::stdout().is_terminal() && allows_colour()
}

/// The same for stderr.
#[must_use]
pub fn is_stderr_coloured() -> bool {
    io::stderr().is_terminal() && allows_colour()
}

fn allows_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
