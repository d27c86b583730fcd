//! The hash that tells when a stream must be loaded again.

use sierra_sync::record::Stream;

use super::support::{Load, minimal_with};

/// Which streams' hashes differ from those of the plain configuration, when `bibs` and `more` are added.
fn changed_by(bibs: &str, more: &str) -> Vec<&'static str> {
    let text = |bibs: &str, more: &str| {
        let bibs = format!("[streams.items]\n[streams.patrons]\n[streams.bibs]\n{bibs}");
        minimal_with("streams = [\"bibs\", \"items\", \"patrons\"]\n").replace("[streams.bibs]", &bibs) + more
    };
    let plain = Load::text(&text("", "")).config();
    let other = Load::text(&text(bibs, more)).config();
    let changed = Stream::ALL.into_iter().filter(|stream| plain.settings_hash(*stream) != other.settings_hash(*stream));
    changed.map(Stream::name).collect()
}

#[test]
fn what_shapes_a_streams_events_changes_its_hash_and_no_others() {
    assert_eq!(changed_by("fields = [\"default\"]\n", ""), ["bibs"]);
    assert_eq!(changed_by("locations = [\"main*\"]\n", ""), ["bibs"]);
    assert_eq!(changed_by("hash_ignore = []\n", ""), ["bibs"]);
    assert_eq!(changed_by("", "[marc]\ncontrol_number = \"sierra\"\n"), ["bibs"]);
    assert_eq!(changed_by("", "[privacy]\nmarc_drop = [\"909\"]\n"), ["bibs"]);
    assert_eq!(changed_by("", "[privacy]\nitem_var_keep = []\n"), ["items"]);
    assert_eq!(changed_by("", "[privacy]\nitem_fixed_drop = []\n"), ["items"]);
    assert_eq!(changed_by("", "[privacy.patrons.fields]\npatronType = \"drop\"\n"), ["patrons"]);
}

#[test]
fn what_shapes_no_event_changes_no_hash() {
    assert!(changed_by("interval = \"1m\"\nconcurrency = 4\npage_size = 100\n", "").is_empty());
    assert!(
        changed_by("hash_ignore = [\"98\", \"85\", \"84\", \"84\"]\n", "").is_empty(),
        "order and repeats are no change"
    );
    assert!(changed_by("", "[privacy]\nkey_file = \"./other\"\nretention = \"10d\"\n").is_empty());
    assert!(changed_by("", "[privacy.patrons.fields]\nnames = \"drop\"\n").is_empty(), "it was dropped before");
}

/// The hash is stored: if it came out differently in a later version, every stream would be loaded again.
#[test]
fn the_hash_of_the_defaults_stays_the_same_between_versions() {
    let config = Load::text(&minimal_with("")).config();
    let hex = |bytes: [u8; 16]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(config.settings_hash(Stream::Bibs).bytes()), "fce8621752ab18456e8e75363226bf30");
    assert_eq!(hex(config.privacy_hash(Stream::Patrons).bytes()), "35d9e129980bc2e761c7dff2bc5b1310");
}
