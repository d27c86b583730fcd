//! Standard output.

use std::io::{self, Write};

use sierra_sync::failure::Disposition;
use sierra_sync::sink::LineSink;
use sierra_sync::sync::Sink;

use super::changes::bib;

/// A pipe whose reader has gone.
struct BrokenPipe;

impl Write for BrokenPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::BrokenPipe))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_reader_that_ends_is_an_error_and_not_a_panic() {
    let mut sink = LineSink::new(BrokenPipe);
    let error = sink.deliver(&[bib(1, 1, "canary")]).await.expect_err("nobody reads");
    assert_eq!(error.disposition, Disposition::Halt);
    assert!(error.message.contains("standard output") && error.hint.contains("reader"), "{error:?}");
    assert!(!format!("{error:?}").contains("canary"));
    sink.close().await.expect("nothing is left to close");
}
