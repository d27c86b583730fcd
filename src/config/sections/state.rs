//! `[state]`: where the durable state lives and how much room it may take.

use std::time::Duration;

use crate::config::kind::{DirectoryPath, SizeIn};
use crate::config::section::Section;
use crate::store::StoreSettings;

/// Reads the section; `retention` comes from `[privacy]`.
pub(in crate::config) fn read(root: &mut Section<'_>, retention: Duration) -> StoreSettings {
    let mut section = root.section("state", "Where the durable state lives.");
    let path = section.setting(
        "path",
        &DirectoryPath,
        "./state",
        "The state directory; one process at a time. Relative paths are relative to the working directory.",
    );
    let outbox_max_size = section.setting(
        "outbox_max_size",
        &SizeIn("1KiB"..="10TiB"),
        "2GiB",
        "How much may wait for sinks before when_full acts.",
    );
    let min_free =
        section.setting("min_free", &SizeIn("0B"..="10TiB"), "512MiB", "Free disk space below which capture pauses.");
    section.finish();
    StoreSettings { path, outbox_max_size, min_free, retention }
}
