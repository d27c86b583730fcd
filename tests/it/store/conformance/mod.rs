//! What every store promises: each test runs on the memory store and on sled.

mod ledger;
mod order;
mod outbox;
mod quarantine;
mod remembered;
mod sinks;
mod writers;
