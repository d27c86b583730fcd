//! Bibs that were set aside and are mended in Sierra: the outputs end with what Sierra holds, and not with the version
//! before.

use sierra_sync::simulator::{Fault, Garble, Kind};

use super::support::Site;

/// A loaded site that never reads a window twice.
fn without_overlap() -> Site {
    let site = Site::loaded();
    site.configure(|text| text.replace("settle = \"0s\"", "settle = \"0s\"\noverlap = \"0s\""));
    site
}

/// Each way of being unreadable; mended at once, without an edit: no window shows the record again.
#[test]
fn a_bib_that_is_mended_without_an_edit_arrives() {
    for how in ["garbled", "without MARC", "poison"] {
        println!("{how}");
        let site = without_overlap();
        let id = site.library.ids(Kind::Bibs)[70];
        site.library.edits(|world| world.edit_bib(id)).unwrap();
        site.library.plan(match how {
            "garbled" => Fault::Garbled { kind: Kind::Bibs, id, how: Garble::WrongTypes },
            "without MARC" => Fault::Garbled { kind: Kind::Bibs, id, how: Garble::OnlyId },
            _ => Fault::Poison { kind: Kind::Bibs, id, code: 135, even_ids: false },
        });
        let bibs = site.sync(&[]).ends(3).summary()["streams"]["bibs"].clone();
        assert_eq!((&bibs["quarantined"], &bibs["changed"]), (&1.into(), &0.into()), "{bibs}");
        site.library.with(|simulator| simulator.cancel_all_faults());
        let bibs = site.sync_well()["streams"]["bibs"].clone();
        assert_eq!((&bibs["quarantined"], &bibs["changed"]), (&0.into(), &1.into()), "{bibs}");
        site.assert_converged();
        let event = site.outputs().newest("bibs")[id.to_string().as_str()].clone();
        assert_eq!(event["source"], "replay");
        let status = site.bench.run(&["status", "--json"]).ends(0).json_lines().remove(0);
        assert_eq!(status["quarantine"]["bibs"], 0, "{status}");
    }
}

/// Spoilt and mended by edits in quick succession; what is not mended by an edit is mended by itself.
#[test]
fn a_bib_that_is_mended_by_an_edit_shows_that_edit() {
    let site = Site::loaded();
    let ids = site.library.ids(Kind::Bibs)[70..74].to_vec();
    for mended in &ids {
        site.library.edits(|world| ids.iter().for_each(|id| world.edit_bib(*id).unwrap()));
        for id in &ids {
            site.library.plan(Fault::Garbled { kind: Kind::Bibs, id: *id, how: Garble::WrongTypes });
        }
        site.library.pass_a_second();
        assert_eq!(site.sync(&[]).ends(3).summary()["streams"]["bibs"]["quarantined"], 4);
        site.library.edits(|world| world.edit_bib(*mended).unwrap());
        site.library.recover();
        site.sync_well();
        site.assert_converged();
    }
}
