//! The `sierra-sync` binary.

fn main() {}
