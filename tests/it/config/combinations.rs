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

/// Each sink is a handful of series in the metrics: with any number of them there would be any number.
#[test]
fn more_sinks_than_the_metrics_have_room_for_are_refused() {
    let with = |count: usize| {
        let sink = |number| format!("[sinks.archive-{number}]\ntype = \"file\"\npath = \"./out-{number}\"\n");
        minimal_with(&(1..count).map(sink).collect::<String>())
    };
    assert_eq!(Load::text(&with(32)).config().sinks.len(), 32);
    let problem = Load::text(&with(33)).problem();
    assert!(problem.contains("sinks: there are 33 sinks, and at most 32 can be served"), "{problem}");
}

#[test]
fn cron_takes_the_place_of_an_interval_and_needs_a_zone() {
    use sierra_sync::sync::settings::Cadence;
    let with = |lines: &str| minimal_with("").replace("[streams.bibs]", &format!("[streams.bibs]\n{lines}"));
    let nightly = "cron = \"0 2 * * *\"\nzone = \"America/New_York\"\n";
    let config = Load::text(&with(nightly)).config();
    let cadence = Cadence::Cron { expression: "0 2 * * *".into(), zone: "America/New_York".into() };
    assert_eq!(config.stream(Stream::Bibs).expect("it is on").cadence, cadence);
    for (lines, sentence) in [
        ("cron = \"0 2 * * *\"\n", "streams.bibs.cron: has no zone beside it"),
        ("zone = \"UTC\"\n", "streams.bibs.zone: means nothing without cron"),
        (&format!("{nightly}interval = \"5m\"\n"), "streams.bibs.interval: says the same as cron"),
        ("cron = \"0 2 * *\"\nzone = \"UTC\"\n", "streams.bibs.cron: \"0 2 * *\" is not a cron expression"),
        ("cron = \"0 0 30 2 *\"\nzone = \"UTC\"\n", "streams.bibs.cron: \"0 0 30 2 *\" never comes"),
        ("cron = \"0 2 * * *\"\nzone = \"America/New_Yrok\"\n", "did you mean \"America/New_York\"?"),
    ] {
        let problem = Load::text(&with(lines)).problem();
        assert!(problem.contains(sentence), "{problem}");
    }
}

#[test]
fn sweeps_are_on_unless_they_are_turned_off() {
    use sierra_sync::sync::settings::Repeat;
    let config = Load::text(&minimal_with("")).config();
    let bibs = config.stream(Stream::Bibs).expect("it is on");
    assert_eq!((bibs.late_sweep, bibs.reconcile), (Some(Repeat::Daily), Some(Repeat::Weekly)));
    let text = minimal_with("");
    let config =
        Load::text(&text).flag("streams.bibs.late_sweep", "off").flag("streams.bibs.reconcile", "off").config();
    let bibs = config.stream(Stream::Bibs).expect("it is on");
    assert_eq!((bibs.late_sweep, bibs.reconcile), (None, None));
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

/// What stands in the way of a directory is told before the first run meets it, and under the key that names it.
#[test]
fn a_directory_whose_place_is_taken_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").expect("written");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).expect("made");
    let (file, link) = (file.display(), link.display());
    for (more, expected) in [
        (format!("[state]\npath = \"{file}\"\n"), format!("state.path: {file} is there and is no directory")),
        (format!("path = \"{file}\"\n"), format!("sinks.archive.path: {file} is there and is no directory")),
        (
            format!("path = \"{link}\"\n"),
            format!("sinks.archive.path: {link} is a link to nowhere, which is not there"),
        ),
    ] {
        let refused = problem(&more);
        assert!(refused.contains(&expected), "{refused}");
    }
}

/// BR-015: a list of fields that cannot work is completed, and that is said.
#[test]
fn a_list_of_fields_without_those_that_hold_the_marc_is_completed() {
    for fields in ["[\"id\"]", "[]"] {
        let text = minimal_with("").replace("[streams.bibs]", &format!("[streams.bibs]\nfields = {fields}"));
        let warnings = Load::text(&text).warnings();
        assert_eq!(warnings.len(), 1, "{warnings:#?}");
        assert!(warnings[0].starts_with("streams.bibs.fields: leaves out varFields"), "{warnings:#?}");
        let asked = Load::text(&text).config().streams.remove(0).fields;
        assert_eq!(asked.last().map(String::as_str), Some("varFields"));
    }
}
