//! The `convert` command on files.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use sierra_sync::cli::convert::{ConvertArgs, Outcome, run_with};
use tempfile::TempDir;

use super::{fixtures, strict_xml};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: ConvertArgs,
}

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("writable");
        path
    }

    /// What lies in the folder besides `inputs`.
    fn others(&self, inputs: &[&str]) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).expect("readable").map(|entry| entry.expect("readable").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| !inputs.contains(&name.as_str()));
        names.sort();
        names
    }
}

fn convert(from: &str, to: &str, more: &[&str], output: &Path, files: &[&Path]) -> Outcome {
    told(from, to, more, output, files).0
}

/// The outcome and what was said.
fn told(from: &str, to: &str, more: &[&str], output: &Path, files: &[&Path]) -> (Outcome, String) {
    let mut line: Vec<OsString> = vec![
        "convert".into(),
        "--from".into(),
        from.into(),
        "--to".into(),
        to.into(),
        "--output".into(),
        output.into(),
    ];
    line.extend(more.iter().map(Into::into));
    line.extend(files.iter().map(|file| file.as_os_str().to_owned()));
    let args = Command::try_parse_from(line).expect("a valid command line").args;
    let mut talk = Vec::new();
    let outcome = run_with(&args, &mut talk);
    (outcome, String::from_utf8(talk).expect("text"))
}

#[test]
fn files_are_converted_one_after_the_other_into_one() {
    let desk = Desk::new();
    let output = desk.path("all.xml");
    let mrc = fixtures::path("records.mrc");
    let (outcome, talk) = told("iso2709", "marcxml", &[], &output, &[&mrc, &mrc]);
    assert_eq!(talk, "convert: 8 read = 8 written + 0 refused\n");
    let Outcome::Complete(summary) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((summary.read, summary.written, summary.refused, outcome.exit_code()), (8, 8, 0, 0));
    assert_eq!(strict_xml::count_records(&fs::read(&output).expect("written")), Ok(8));
    assert_eq!(desk.others(&[]), ["all.xml"]);
}

/// BR-082: MARCXML in full, ISO 2709 refused with a reason, and the counts add up (BR-091).
#[test]
fn records_too_large_for_iso2709_are_refused_there_and_whole_in_marcxml() {
    let desk = Desk::new();
    let long = "x".repeat(12_912);
    let bib = |id: u32, content: &str| {
        format!(
            r#"{{"id":{id},"varFields":[{{"fieldTag":"n","marcTag":"520","subfields":[{{"tag":"a","content":"{content}"}}]}}]}}"#
        )
    };
    let page =
        desk.file("page.json", format!(r#"{{"entries":[{},{},{}]}}"#, bib(1, "short"), bib(2, &long), bib(3, "short")));
    let xml = desk.path("out.xml");
    assert_eq!(convert("sierra-json", "marcxml", &[], &xml, &[&page]).exit_code(), 0);
    assert!(fs::read_to_string(&xml).expect("written").contains(&long));
    let mrc = desk.path("out.mrc");
    let stopped = convert("sierra-json", "iso2709", &[], &mrc, &[&page]);
    assert!(matches!(stopped, Outcome::Refused(_)) && stopped.exit_code() == 3, "{stopped:?}");
    assert_eq!(desk.others(&["page.json"]), ["out.xml"], "a stop leaves no half file");
    let outcome = convert("sierra-json", "iso2709", &["--on-error", "skip"], &mrc, &[&page]);
    let Outcome::Incomplete(summary) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((summary.read, summary.written, summary.refused, outcome.exit_code()), (3, 2, 1, 3));
    assert_eq!(summary.reasons.iter().collect::<Vec<_>>(), [(&"does not fit", &1)]);
}

#[test]
fn whatever_is_no_live_bib_is_refused_by_name() {
    let desk = Desk::new();
    let field = r#"[{"marcTag":"245","subfields":[{"tag":"a","content":"T"}]}]"#;
    let entries = [
        format!(r#"{{"id":"1","varFields":{field}}}"#),
        format!(r#"{{"id":2,"deleted":false,"varFields":{field},"marc":null}}"#),
        r#"{"id":"3","deletedDate":"2024-03-09","deleted":true}"#.into(),
        r#"{"id":"4","deletedDate":"2024-03-09","deleted":true,"bibIds":[]}"#.into(),
        r#"{"id":"5","bibIds":["1"],"barcode":"7","varFields":[]}"#.into(),
        r#"{"id":6,"bibIds":[1],"itemIds":[5],"pieceCount":0}"#.into(),
        r#"{"id":7,"patronType":15,"names":["EXAMPLE, PAT"]}"#.into(),
        r#"{"id":8,"bibs":["https://x/bibs/1"],"orderDate":"2024-01-01"}"#.into(),
        r#"{"id":"9","title":"default fields only"}"#.into(),
        r#"{"id":"10","varFields":[{"fieldTag":"t","content":"made at the desk, not MARC"}]}"#.into(),
        r#"{"code":107,"specificCode":0,"httpStatus":404,"name":"Record not found"}"#.into(),
        format!(r#"{{"varFields":{field}}}"#),
        r#"{"id":"11","marc":{"leader":"00000nam  2200000   4500","fields":[{"001":"x"}]}}"#.into(),
        format!(
            r#"{{"id":"12","varFields":{field},"marc":{{"leader":"00000nam  2200000   4500","fields":[{{"001":"x"}}]}}}}"#
        ),
    ];
    for (name, content) in [
        ("page.json", format!(r#"{{"total":1,"start":0,"entries":[{}],"more":[{{"id":1}}]}}"#, entries.join(",\n "))),
        ("array.json", format!("[{}]", entries.join(","))),
        ("lines.json", entries.join("\n")),
        (
            "pages.json",
            format!(r#"[{{"entries":[]}},{{"entries":[{}]}}] {{"start":0,"entries":[]}}"#, entries.join(",")),
        ),
    ] {
        let input = desk.file(name, content);
        let outcome = convert("sierra-json", "marcxml", &["--on-error", "skip"], &desk.path("out.xml"), &[&input]);
        let Outcome::Incomplete(summary) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!((summary.read, summary.written, summary.refused), (14, 4, 10), "{name}: {summary}");
        let reasons: Vec<String> = summary.reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        assert_eq!(reasons, ["1 damaged", "1 error answer", "2 no MARC", "5 not a bib", "1 tombstone"], "{name}");
        let losses: Vec<String> = summary.losses.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        assert_eq!(losses, ["3 leader-missing", "1 sierra-marc-differs"], "{name}");
    }
}

/// BR-023: a text, a number or a null where another was expected is no reason to lose a record.
#[test]
fn nulls_numbers_and_half_characters_in_saved_answers_are_understood() {
    let desk = Desk::new();
    let input = desk.file("bib.json", r#"{"id":" 1000001 ","deleted":null,"marc":null,"varFields":[
        null,
        {"fieldTag":"y","marcTag":8,"ind1":null,"ind2":null,"content":20240309,"subfields":null},
        {"fieldTag":"n","marcTag":"501","ind1":true,"subfields":[null,{"tag":"a","content":1.5},{"tag":"b","content":false}]},
        {"fieldTag":null,"marcTag":245,"ind1":1,"ind2":0,"content":null,"subfields":[{"tag":"a","content":1984},{"tag":"b","content":null}]},
        {"fieldTag":"n","marcTag":null,"content":"no MARC"},
        {"fieldTag":"n","marcTag":"500","subfields":[{"tag":"a","content":"half \ud83d, whole \ud83e\udd89"}]},
        {"fieldTag":"_","marcTag":null,"content":"00000nam  2200000 a 4500"}]}"#);
    let output = desk.path("out.xml");
    let outcome = convert("sierra-json", "marcxml", &[], &output, &[&input]);
    let losses = &outcome.summary().expect("begun").losses;
    let told: Vec<String> = losses.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let expected =
        ["1 tag-repaired", "1 field-empty", "1 indicator-replaced", "1 subfield-code-invalid", "1 text-damaged"];
    assert_eq!((outcome.exit_code(), told), (0, expected.map(str::to_owned).to_vec()));
    let xml = fs::read_to_string(&output).expect("written");
    assert!(xml.contains(r#"<controlfield tag="008">20240309</controlfield>"#), "{xml}");
    assert!(xml.contains(
        r#"<datafield tag="245" ind1="1" ind2="0"><subfield code="a">1984</subfield><subfield code="b"></subfield>"#
    ));
    assert!(xml.contains("half \u{fffd}, whole 🦉"), "{xml}");
    assert!(xml.contains(r#"<subfield code="a">1.5</subfield><subfield code="b">false</subfield>"#), "{xml}");
}

/// BR-023: a text where the list of subfields, or one of them, was expected costs that subfield, and is counted.
#[test]
fn a_text_for_subfields_costs_no_record() {
    let desk = Desk::new();
    let input = desk.file(
        "bib.json",
        r#"{"id":1000001,"varFields":[{"fieldTag":"_","content":"00000nam  2200000 a 4500"},
        {"fieldTag":"t","marcTag":"245","subfields":"canary"},{"fieldTag":"n","marcTag":"500","subfields":["canary",
        {"tag":"a","content":"note"}]},{"fieldTag":"y","marcTag":"008","content":"x","subfields":"canary"}]}"#,
    );
    let output = desk.path("out.xml");
    let outcome = convert("sierra-json", "marcxml", &[], &output, &[&input]);
    let losses = &outcome.summary().expect("begun").losses;
    let told: Vec<String> = losses.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let expected = "1 field-empty, 1 subfields-ignored, 2 subfield-code-invalid";
    assert_eq!((outcome.exit_code(), told.join(", ")), (0, expected.to_owned()), "{outcome:?}");
    let xml = fs::read_to_string(&output).expect("written");
    assert!(xml.contains(r#"<subfield code="a">note</subfield>"#) && !xml.contains("canary"), "{xml}");
}

/// BR-091: the counts add up, and what follows a bad entry is read whatever the layout.
#[test]
fn a_bad_entry_of_a_saved_page_costs_none_of_its_neighbours() {
    let desk = Desk::new();
    let bib =
        |id: u32| format!(r#"{{"id":{id},"lang":{{"code":"eng"}},"varFields":[{{"marcTag":"245","content":"T"}}]}}"#);
    let good: Vec<String> = (1..=3).map(bib).collect();
    for bad in ["null", r#""text""#, "7", r#"{"id":9,"lang":{"code" "eng"},"locations":[{"code":"a"},{"code":"b"}]}"#] {
        for (comma, before, after) in [
            (",", "[", "]"),
            (",", "{\"total\":4,\"entries\":[", "]}"),
            (", ", "[{\"entries\":[", "],\"total\":4},{\"entries\":[]}]"),
            (",\n  ", "{\"entries\":[\n  ", "\n]}"),
        ] {
            let entries = [&*good[0], bad, &good[1], &good[2]].join(comma);
            let input = desk.file("in.json", format!("{before}{entries}{after}"));
            let outcome = convert("sierra-json", "marcxml", &["--on-error", "skip"], &desk.path("out.xml"), &[&input]);
            let Outcome::Incomplete(summary) = outcome else { panic!("{bad}: {outcome:?}") };
            let counts = (summary.read, summary.written, summary.refused, summary.broken_inputs);
            assert_eq!(counts, (4, 3, 1, 0), "{before}{entries}{after}: {summary}");
        }
    }
    // The page ends inside of what is passed over.
    let pages = format!(r#"[{{"entries":[{},{{"id":9 9}}]}},{{"entries":[{},{}]}}]"#, good[0], good[1], good[2]);
    let input = desk.file("in.json", pages);
    let outcome = convert("sierra-json", "marcxml", &["--on-error", "skip"], &desk.path("out.xml"), &[&input]);
    let summary = outcome.summary().expect("begun");
    assert_eq!((summary.read, summary.written, summary.refused, summary.broken_inputs), (4, 3, 1, 0), "{summary}");
}

/// Whatever no longer can be read is not passed over as if it had never been there.
#[test]
fn an_input_that_ends_in_damage_is_not_read_to_its_end() {
    let desk = Desk::new();
    let bib = r#"{"id":1,"varFields":[{"marcTag":"245","content":"T"}]}"#;
    let input = desk.file("in.json", format!("[{bib},{{\"id\":2 2}},7,{{\"x\":1}}]"));
    let outcome = convert("sierra-json", "marcxml", &["--on-error", "skip"], &desk.path("out.xml"), &[&input]);
    let summary = outcome.summary().expect("begun");
    assert_eq!((summary.read, summary.written, summary.refused, summary.broken_inputs), (2, 1, 1, 1), "{summary}");
    assert_eq!(outcome.exit_code(), 3);
}

#[test]
fn an_input_that_breaks_off_gives_nothing_by_default_and_what_there_was_on_request() {
    let desk = Desk::new();
    let whole = fs::read(fixtures::path("records.xml")).expect("the fixture is in the tree");
    let cut = desk.file("cut.xml", &whole[..whole.len() - 100]);
    let output = desk.path("out.mrc");
    let stopped = convert("marcxml", "iso2709", &[], &output, &[&cut]);
    assert!(matches!(&stopped, Outcome::Refused(summary) if summary.read == 3), "{stopped:?}");
    assert_eq!(desk.others(&["cut.xml"]), Vec::<String>::new());
    let skipped =
        convert("marcxml", "iso2709", &["--on-error", "skip"], &output, &[&cut, &fixtures::path("records.xml")]);
    let Outcome::Incomplete(summary) = skipped else { panic!("{skipped:?}") };
    assert_eq!((summary.read, summary.written, summary.refused, summary.broken_inputs), (7, 7, 0, 1));
}

/// BR-046: a saved error is never turned into an empty catalogue.
#[test]
fn something_else_instead_of_records_leaves_no_output_even_when_skipping() {
    let desk = Desk::new();
    for (form, content) in [("iso2709", "<html>502</html>"), ("marcxml", "{\"code\":\"-1\"}"), ("marc-json", "")] {
        let input = desk.file("input", content);
        for mode in ["stop", "skip"] {
            let outcome = convert(form, "marcxml", &["--on-error", mode], &desk.path("out.xml"), &[&input]);
            assert_eq!(outcome.exit_code(), 3, "{form} {mode}: {outcome:?}");
        }
        assert_eq!(desk.others(&["input"]), Vec::<String>::new(), "{form}");
    }
}

#[test]
fn a_failure_leaves_the_old_output_untouched_and_a_success_replaces_it() {
    let desk = Desk::new();
    let output = desk.file("out.xml", "the old one");
    // It can be opened, and fails to be read: half of the output is written by then.
    let unreadable = Path::new("/proc/self/mem");
    let outcome = convert("iso2709", "marcxml", &[], &output, &[&fixtures::path("records.mrc"), unreadable]);
    assert!(matches!(outcome, Outcome::Io(_)) && outcome.exit_code() == 74, "{outcome:?}");
    assert_eq!(fs::read_to_string(&output).expect("still there"), "the old one");
    assert_eq!(desk.others(&[]), ["out.xml"]);
    assert_eq!(convert("iso2709", "marcxml", &[], &output, &[&fixtures::path("records.mrc")]).exit_code(), 0);
    // Input and output may even be the same file.
    assert_eq!(convert("marcxml", "marc-json", &[], &output, &[&output]).exit_code(), 0);
    assert_eq!(fs::read(&output).expect("written"), fs::read(fixtures::path("records.json")).expect("in the tree"));
}

/// Which files there are is known to whoever wrote the command line: nothing is begun, and all of them are named.
#[test]
fn inputs_that_are_not_there_are_an_error_of_usage() {
    let desk = Desk::new();
    let output = desk.file("out.xml", "the old one");
    let (missing, below) = (desk.path("missing.mrc"), desk.path("out.xml/below.mrc"));
    let inputs = [&fixtures::path("records.mrc"), &missing, &below, desk.0.path()];
    let (outcome, talk) = told("iso2709", "marcxml", &[], &output, &inputs);
    assert!(matches!(outcome, Outcome::Usage) && outcome.exit_code() == 2, "{outcome:?}");
    for (path, why) in
        [(&*missing, "there is no such file"), (&below, "there is no such file"), (desk.0.path(), "it is a directory")]
    {
        assert!(talk.contains(&format!("convert: cannot read {}: {why}", path.display())), "{talk}");
    }
    assert_eq!(fs::read_to_string(&output).expect("still there"), "the old one");
    assert_eq!(desk.others(&[]), ["out.xml"]);
}

#[test]
fn places_that_cannot_be_written_are_told_apart() {
    let desk = Desk::new();
    let mrc = fixtures::path("records.mrc");
    assert_eq!(convert("iso2709", "marcxml", &[], desk.0.path(), &[&mrc]).exit_code(), 2, "a folder");
    assert_eq!(convert("iso2709", "marcxml", &[], &desk.path("no/folder.xml"), &[&mrc]).exit_code(), 74);
    assert_eq!(convert("iso2709", "marcxml", &[], Path::new("/dev/null"), &[&mrc]).exit_code(), 0, "a device");
    assert_eq!(convert("iso2709", "marcxml", &[], &desk.path("x"), &[Path::new("-"), Path::new("-")]).exit_code(), 2);
    assert_eq!(desk.others(&[]), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_nothing_is_said_to_be_written() {
    let (outcome, talk) = told("iso2709", "marcxml", &[], Path::new("/dev/full"), &[&fixtures::path("records.mrc")]);
    assert!(matches!(outcome, Outcome::Io(_)) && outcome.exit_code() == 74, "{outcome:?}");
    assert!(talk.starts_with("convert: stopped: the output failed: ") && talk.lines().count() == 1, "{talk}");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_permissions_stay_as_they_were() {
    use std::os::unix::fs::PermissionsExt;

    let desk = Desk::new();
    let real = desk.file("real.xml", "old");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("allowed");
    let link = desk.path("link.xml");
    std::os::unix::fs::symlink(&real, &link).expect("allowed");
    assert_eq!(convert("iso2709", "marcxml", &[], &link, &[&fixtures::path("records.mrc")]).exit_code(), 0);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(strict_xml::count_records(&fs::read(&real).expect("written")), Ok(4));
    assert_eq!(fs::metadata(&real).expect("there").permissions().mode() & 0o777, 0o640);
}

#[test]
fn refusals_are_told_with_their_place_and_a_flood_of_them_is_cut_short() {
    let desk = Desk::new();
    let tombstones = r#"{"id":"3","deletedDate":"2024-03-09","deleted":true}"#.to_owned() + "\n";
    let input = desk.file("t.json", tombstones.repeat(40));
    let (_, talk) = told("sierra-json", "marcxml", &["--on-error", "skip"], &desk.path("out.xml"), &[&input]);
    let lines: Vec<&str> = talk.lines().collect();
    assert_eq!(lines.len(), 12, "{talk}");
    assert!(lines[1].ends_with("t.json: record 2 at byte 53: it is deleted: a tombstone has no MARC"), "{talk}");
    assert_eq!(lines[10], "convert: more of these are counted but not shown");
    assert_eq!(lines[11], "convert: 40 read = 0 written + 40 refused (40 tombstone)");
    let (_, talk) = told("sierra-json", "marcxml", &[], &desk.path("out.xml"), &[&input]);
    assert!(
        talk.starts_with("convert: stopped: ") && talk.contains("(--on-error skip leaves such records out)"),
        "{talk}"
    );
}

#[test]
fn forms_that_do_not_exist_are_usage_errors() {
    for line in [["--from", "mrc", "--to", "marcxml"], ["--from", "marcxml", "--to", "sierra-json"]] {
        let error = Command::try_parse_from(["convert"].into_iter().chain(line)).err().expect("refused");
        assert!(error.to_string().contains("possible values"), "{error}");
    }
}
