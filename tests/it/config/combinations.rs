//! Settings that are right alone and wrong, or doubtful, together.

use sierra_sync::record::Stream;

use super::support::{Load, minimal_with};

fn problem(more: &str) -> String {
    Load::text(&minimal_with(more)).problem()
}

fn warnings(more: &str) -> Vec<String> {
    Load::text(&minimal_with(more)).warnings()
}

#[test]
fn defaults_raise_no_warning() {
    assert_eq!(warnings(""), Vec::<String>::new());
}

/// C7: the cap must exceed one recovery cycle of what is waited for; the check warns when it does not.
#[test]
fn a_cap_shorter_than_a_recovery_is_warned_about() {
    let warned = warnings("[retry]\ncap = \"29s\"\n");
    assert!(warned.len() == 1 && warned[0].starts_with("retry.cap: is 29s, shorter than one recovery"), "{warned:?}");
    assert_eq!(warnings("[retry]\ncap = \"30s\"\n"), Vec::<String>::new());
}

/// C8: the retry budget must end before the lease on the work does; the check refuses it.
#[test]
fn a_retry_budget_as_long_as_the_lease_is_refused() {
    let refused = problem("[retry]\ntotal_budget = \"10m\"\n");
    assert!(refused.contains("retry.total_budget: is 600s, must be shorter than the lease"), "{refused}");
    assert_eq!(warnings("[retry]\ntotal_budget = \"599s\"\n"), Vec::<String>::new());
}

/// BR-101: a limit in time shorter than the quota window makes every run fail; here it would make calls too early.
#[test]
fn a_cap_on_retry_after_below_sierras_usual_wait_is_warned_about() {
    let warned = warnings("[retry]\nretry_after_cap = \"10m\"\n");
    assert!(warned.len() == 1 && warned[0].contains("retry.retry_after_cap: is shorter than the 15m"), "{warned:?}");
}

/// BR-122: an overlap of many intervals multiplies the calls for ever.
#[test]
fn an_overlap_of_many_intervals_is_warned_about() {
    let text = minimal_with("").replace("[streams.bibs]", "[streams.bibs]\noverlap = \"2h\"");
    let warned = Load::text(&text).warnings();
    assert!(warned.len() == 1 && warned[0].contains("every change is read about 24 times"), "{warned:?}");
}

#[test]
fn a_timeout_that_eats_the_budget_is_warned_about() {
    let text = minimal_with("").replace("[sierra]", "[sierra]\nrequest_timeout = \"90s\"");
    assert!(Load::text(&text).warnings()[0].starts_with("sierra.request_timeout: is not shorter"));
}

#[test]
fn an_address_others_can_reach_needs_a_token() {
    let refused = problem("[ops]\nlisten = \"0.0.0.0:9470\"\n");
    assert!(
        refused.contains("ops.listen: other machines could reach this address, and there is no token"),
        "{refused}"
    );
    let text = minimal_with("[ops]\nlisten = \"0.0.0.0:9470\"\n");
    assert!(Load::text(&text).variable("SIERRA_SYNC__OPS__TOKEN", "token").config().ops.token.is_some());
}

#[test]
fn base_and_open_time_may_not_exceed_their_caps() {
    assert!(problem("[retry]\nbase = \"31s\"\n").contains("retry.cap: must be at least retry.base"));
    assert!(problem("[breaker]\nopen_for = \"61s\"\n").contains("breaker.open_cap: must be at least breaker.open_for"));
}

#[test]
fn marcxml_holds_bibs_only() {
    let marcxml = "format = \"marcxml\"\n";
    assert!(problem(&format!("{marcxml}streams = [\"bibs\", \"items\"]\n")).contains("holds bibs only"));
    let config = Load::text(&minimal_with(marcxml)).config();
    assert_eq!(config.sinks["archive"].route.streams, [Stream::Bibs]);
}

#[test]
fn a_sink_takes_the_streams_that_are_on() {
    let config = Load::text(&minimal_with("")).config();
    assert_eq!(config.sinks["archive"].route.streams, [Stream::Bibs], "items are off and were not asked for");
    let warned = warnings("streams = [\"bibs\", \"items\"]\n");
    assert!(warned.len() == 1 && warned[0].contains("items are not followed, so this sink gets none"), "{warned:?}");
    let warned = warnings("[streams.patrons]\n");
    assert!(warned.len() == 1 && warned[0].contains("no sink takes patrons"), "{warned:?}");
}

#[test]
fn nothing_to_follow_and_nowhere_to_put_it_are_refused() {
    let text = minimal_with("").replace("[streams.bibs]", "");
    assert!(Load::text(&text).problem().contains("no stream is on, so there is nothing to follow"));
    let text = minimal_with("").replace("[sinks.archive]\ntype = \"file\"", "");
    assert!(Load::text(&text).problem().contains("there is no sink, so changes would go nowhere"));
}

#[test]
fn letting_a_patrons_name_out_is_warned_about() {
    let warned = warnings("[privacy.patrons.fields]\nnames = \"pass\"\nlangPref = \"pass\"\n");
    assert!(warned.len() == 1 && warned[0].starts_with("privacy.patrons.fields.names: tells who"), "{warned:?}");
}

#[test]
fn a_patrons_record_number_never_passes() {
    let refused = problem("[privacy.patrons.fields]\nid = \"pass\"\n");
    let expected = r#"privacy.patrons.fields.id: "pass" is unknown; expected "hmac", "mask" or "drop""#;
    assert!(refused.ends_with(expected), "{refused}");
}

#[test]
fn privacy_accepts_whatever_was_accepted_here() {
    let text = minimal_with(
        "[privacy]\nmarc_drop = [\"9xx\", \"590$x\"]\nitem_fixed_drop = [\"066\"]\nitem_var_keep = [\"é\"]\n",
    );
    assert!(Load::text(&text).config().privacy.problems().is_empty());
}

/// Two sinks in one place would take each other's files for their own, however the place is written.
#[test]
fn sinks_in_one_another_are_refused() {
    let two = |first: &str, second: &str| {
        let more =
            format!("path = \"{first}\"\n[sinks.solr]\ntype = \"file\"\nformat = \"marcxml\"\npath = \"{second}\"\n");
        minimal_with(&more)
    };
    let same = [("./out", "out/"), ("out", "a/../out"), ("/x//out", "/x/./out/."), ("out", "out")];
    for (first, second) in same {
        let refused = Load::text(&two(first, second)).problem();
        let expected = "sinks.solr.path: is the same directory as sinks.archive.path; give it a directory of its own";
        assert!(refused.ends_with(expected), "{refused}");
    }
    let refused = Load::text(&two("out", "./out/bibs/xml")).problem();
    let expected = "sinks.solr.path: lies inside the folder that sinks.archive.path uses for bibs";
    assert!(refused.contains(expected), "{refused}");
    let refused = Load::text(&two("out/items", "out")).problem();
    assert!(refused.contains("sinks.archive.path: lies inside the folder that sinks.solr.path"), "{refused}");
    for (first, second) in [("out", "out2"), ("out", "out/xml"), ("out/bibs2", "out"), ("/out", "out")] {
        assert!(Load::text(&two(first, second)).result().is_ok(), "{first} {second}");
    }
}

#[test]
fn a_sink_that_is_reached_through_a_link_is_the_same_sink() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("real")).expect("made");
    std::os::unix::fs::symlink("real", directory.path().join("link")).expect("made");
    let [first, second] = ["real/out", "link/out"].map(|name| directory.path().join(name).display().to_string());
    let more = format!("path = \"{first}\"\n[sinks.second]\ntype = \"file\"\npath = \"{second}\"\n");
    assert!(problem(&more).contains("sinks.second.path: is the same directory as sinks.archive.path"));
}

#[test]
fn a_sink_in_the_state_directory_is_refused() {
    for (path, how) in [("state", "is the same directory as"), ("./state/out", "lies inside")] {
        let refused = problem(&format!("path = \"{path}\"\n"));
        let expected = format!("sinks.archive.path: {how} state.path, where nobody else may write");
        assert!(refused.contains(&expected), "{refused}");
    }
    assert!(Load::text(&minimal_with("path = \"state2\"\n")).result().is_ok());
}

#[test]
fn a_path_that_no_directory_can_have_is_refused() {
    let nul = problem("path = \"out\\u0000put\"\n");
    assert!(nul.contains("sinks.archive.path: holds a NUL character, which no path can hold; write the path"), "{nul}");
    let empty = problem("path = \"\"\n");
    assert!(empty.contains("sinks.archive.path: is empty; name a directory, or leave the key out"), "{empty}");
    let state = problem("[state]\npath = \"\"\n");
    assert!(state.contains("state.path: is empty; name a directory"), "{state}");
}
