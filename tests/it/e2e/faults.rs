//! What Sierra and what stands before it do wrong over HTTP: never taken for "nothing", told by the exit code, and made
//! up for by the first run after it is over.

use sierra_sync::simulator::{Endpoint, Fault, Kind, PlannedFault, Unauthorized};

use super::support::Site;

const BIBS: Endpoint = Endpoint::Bibs;

/// A loaded site whose library has changed since.
fn changed() -> Site {
    let site = Site::loaded();
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    site.library.edits(|world| {
        for bib in [3, 70, 71, 200] {
            world.edit_bib(bibs[bib]).unwrap();
        }
        world.delete(Kind::Bibs, bibs[9]).unwrap();
        world.edit(Kind::Items, items[5]).unwrap();
        world.create_bib();
    });
    site
}

/// A run while `fault` lasts ends with `code`; once it is over, runs end well and the outputs hold what the library holds.
#[track_caller]
fn assert_made_up_for(name: &str, fault: impl Into<PlannedFault>, code: i32) {
    println!("{name}");
    let site = changed();
    let fault = site.library.plan(fault);
    let run = site.sync(&[]).ends(code);
    assert!(site.library.with(|simulator| simulator.hits(fault)) > 0, "{name} met no call");
    let summary = run.summary();
    if code != 0 {
        let error = &summary["streams"]["bibs"]["error"];
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{name}: {error}");
    }
    // Where calls were halted, a run ends with one health check.
    let ends_well = |_| {
        site.library.recover();
        site.sync(&[]).code == Some(0)
    };
    assert!((0..10).any(ends_well), "{name} is over, and no run ends well");
    site.assert_converged();
}

/// Answers that are no page, as long as they last: nothing of the bibs could be had (69), and none of them is "nothing".
#[test]
fn what_is_no_answer_is_an_outage_and_never_nothing() {
    let raw = |status, content_type: &str, body: &str| Fault::Raw {
        status,
        content_type: content_type.into(),
        headers: vec![("location".into(), "https://elsewhere.example.edu/".into())],
        body: body.into(),
    };
    for (name, fault) in [
        ("a body that breaks off", Fault::Cut { percent: 40 }),
        ("JSON that breaks off", Fault::MalformedJson),
        ("a lone code", Fault::LoneCode),
        ("an empty 200", Fault::EmptyBody),
        ("no entries", Fault::NoEntries),
        ("an error as text", Fault::ErrorCodeText),
        ("404 without code 107", Fault::Html { status: 404 }),
        ("404 without a body", Fault::Bare { status: 404 }),
        ("a login page", Fault::Html { status: 200 }),
        ("502", Fault::Html { status: 502 }),
        ("a redirect", raw(302, "text/html", "")),
        ("a closed connection", Fault::Reset),
    ] {
        assert_made_up_for(name, fault.at(BIBS), 69);
    }
}

/// The whole of Sierra is away.
#[test]
fn an_outage_of_everything_is_made_up_for() {
    assert_made_up_for("refused connections", Fault::Refuse.always(), 69);
}

/// What goes away by itself within a run costs nothing but time.
#[test]
fn what_passes_within_a_run_is_not_even_told() {
    for (name, fault) in [
        ("429", Fault::retry_after("1")),
        ("401, bad header", Fault::Unauthorized(Unauthorized::BadHeader)),
        ("401, invalid token", Fault::Unauthorized(Unauthorized::InvalidToken)),
        ("401, invalid grant", Fault::Unauthorized(Unauthorized::InvalidGrant)),
        ("401 as a page", Fault::Unauthorized(Unauthorized::Html)),
        ("401 without a body", Fault::Unauthorized(Unauthorized::Bare)),
        ("tokens that die", Fault::RevokeTokens),
        ("a cut body", Fault::Cut { percent: 10 }),
        ("a lone code", Fault::LoneCode),
        ("an empty 200", Fault::EmptyBody),
        ("a stale connection", Fault::StaleConnection),
        ("503", Fault::Bare { status: 503 }),
    ] {
        let site = changed();
        site.library.plan(fault.first(1).at(BIBS));
        println!("{name}");
        site.sync_well();
        site.assert_converged();
    }
}

/// A call that never ends is given up after `request_timeout` and tried again.
#[test]
fn a_call_that_hangs_is_tried_again() {
    let site = changed();
    site.configure(|text| text.replace("request_timeout = \"20s\"", "request_timeout = \"1s\""));
    site.library.plan(Fault::Hang.first(1).at(BIBS));
    let summary = site.sync_well();
    assert_eq!(summary["streams"]["bibs"]["retries"], 1, "{summary}");
    site.assert_converged();
}

/// Sierra's own "nothing" is believed, and ends well; what it held back by mistake comes by the overlap.
#[test]
fn code_107_is_nothing() {
    let site = changed();
    site.library.plan(Fault::error(107).at(BIBS));
    let summary = site.sync_well();
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&bibs["state"], &bibs["fetched"], &bibs["error"]), (&"caught_up".into(), &0.into(), &().into()));
    site.library.recover();
    site.sync_well();
    site.assert_converged();
}

/// One kind of question fails and the other does not: a gap, which is told (3), owed, and made up for.
#[test]
fn a_window_that_fails_alone_is_a_gap() {
    let site = changed();
    site.library.plan(Fault::Bare { status: 404 }.at(BIBS).asking("updatedDate", ""));
    let summary = site.sync(&[]).ends(3).summary();
    let bibs = &summary["streams"]["bibs"];
    assert_eq!((&bibs["state"], bibs["gaps"].as_array().unwrap().len()), (&"partial".into(), 1), "{bibs}");
    assert_eq!((&bibs["deleted"], &summary["streams"]["items"]["state"]), (&1.into(), &"caught_up".into()));
    site.library.recover();
    let summary = site.sync_well();
    assert_eq!(summary["streams"]["bibs"]["gaps"], serde_json::json!([]));
    site.assert_converged();
}
