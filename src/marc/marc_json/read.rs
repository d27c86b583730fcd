//! Reading MARC-in-JSON.

use std::io::BufRead;

use super::shape;
use crate::marc::builder::Builder;
use crate::marc::json::text::parse_lenient;
use crate::marc::json::values::{Kind, Values};
use crate::marc::leader::Leader;
use crate::marc::loss::{Loss, Losses};
use crate::marc::model::Record;
use crate::marc::read::{Damage, ReadError, ReadRecord};
use crate::marc::settings::OnIllegal;

/// Reads MARC-in-JSON records: one, an array of them, or one after the other (NDJSON). The shape is code4lib's, or
/// that of III's `marc-json` (sierra-api.md §4.2).
#[derive(Debug)]
pub struct Reader<R> {
    values: Values<R>,
    policy: OnIllegal,
    losses: Vec<Loss>,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub fn new(input: R, policy: OnIllegal) -> Self {
        let kind = Kind { page_key: None, is_record: shape::is_record };
        Self { values: Values::new(input, kind), policy, losses: Vec::new() }
    }
}

impl<R: BufRead> ReadRecord for Reader<R> {
    fn read_into(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        if !self.values.next()? {
            return Ok(false);
        }
        let parsed = parse(self.values.value(), record, self.policy);
        match parsed {
            Ok(losses) => {
                self.losses = losses;
                Ok(true)
            }
            Err(damage) => Err(self.values.damaged(damage)),
        }
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }
}

/// Parses one record in either shape into `record`.
pub(in crate::marc) fn parse(bytes: &[u8], record: &mut Record, policy: OnIllegal) -> Result<Vec<Loss>, Damage> {
    let mut refusal = None;
    let parsed = parse_lenient(bytes, |json| {
        record.clear(Leader::default());
        refusal = None;
        let mut losses = Losses::default();
        let builder = Builder { record, losses: &mut losses, policy };
        shape::read(json, builder, &mut refusal)?;
        Ok(losses.into_vec())
    });
    parsed.map_err(|damage| refusal.unwrap_or(damage))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as lines joined by ` / `, errors and losses in between.
    fn read(json: &str) -> Vec<String> {
        let mut reader = Reader::new(json.as_bytes(), OnIllegal::Drop);
        let mut found = Vec::new();
        loop {
            let mut record = Record::default();
            match reader.read_into(&mut record) {
                Ok(false) => return found,
                Ok(true) => {
                    let fields: Vec<String> = record.fields().map(|field| format!("{field:?}")).collect();
                    found.push(fields.join(" / "));
                    found.extend(reader.take_losses().iter().map(|loss| format!("{} {}", loss.kind, loss.field)));
                }
                Err(error) => found.push(error.to_string()),
            }
        }
    }

    const CODE4LIB: &str = r#"{"leader":"00000nam a2200000 a 4500","fields":[{"001":"x"},
        {"245":{"subfields":[{"a":"T\u00e9 \\"},{"b":"s"}],"ind1":"1","ind2":"0"}}]}"#;
    const III: &str = r#"{"leader":"00000nam a2200000 a 4500","controlfield":[{"tag":"001","data":"x"}],
        "datafield":[{"tag":"245","ind":"10","subfield":[{"code":"a","data":"Té \\"},{"code":"b","data":"s"}]}]}"#;
    const EXPECTED: &str = "001 x / 245 10 $aTé \\$bs";

    #[test]
    fn both_shapes_are_read_alone_in_arrays_and_one_after_the_other() {
        for shape in [CODE4LIB, III] {
            let line = shape.replace('\n', " ");
            for json in [shape.to_owned(), format!("[{shape}]"), format!(" [ {shape} ] "), format!("\u{feff}{line}\n")]
            {
                assert_eq!(read(&json), [EXPECTED], "{json}");
            }
            for json in [
                format!("[{shape},\n{shape}]"),
                format!("{line}\n{line}\n"),
                format!("{line}{line}"),
                format!("[{line}]\n{line}"),
            ] {
                assert_eq!(read(&json), [EXPECTED, EXPECTED], "{json}");
            }
        }
        assert_eq!(read("[]"), Vec::<String>::new());
    }

    #[test]
    fn odd_fields_are_repaired_or_left_out_with_a_loss() {
        let json = r#"{"fields":[{"1":"x"},{"245":"content"},{"008":{"subfields":[{"a":"y"}]}},{"24":{"subfields":[]}},
            {"bad!":{"x":[1,{}]}},{"500":{"ind1":null,"subfields":[{"a":"one","b":"two"},{"":"z"},{"c":"\u0001\ud83d"}]}}],
            "extra":[{"fields":1}]}"#;
        assert_eq!(
            read(json),
            [
                "001 x / 245    $acontent / 500    $aone$btwo$c\u{fffd}",
                "tag-repaired 001",
                "content-as-subfield 245",
                "control-subfields 008",
                "tag-repaired 024",
                "field-empty 024",
                "tag-invalid ",
                "subfield-code-invalid 500",
                "text-damaged 500$c",
                "characters-dropped 500$c",
                "leader-missing leader",
            ]
        );
        let iii = r#"{"leader":"x","datafield":[{"tag":"245","subfield":[]},{"tag":"500","ind":"1","subfield":[{"code":"a","data":"x"}]},
            {"tag":"501","ind":"123","subfield":[{"code":"a","data":"x"}]}]}"#;
        assert_eq!(
            read(iii),
            ["500 1  $ax / 501 1  $ax", "field-empty 245", "indicator-replaced 501", "leader-repaired leader"]
        );
    }

    #[test]
    fn a_damaged_record_costs_none_of_its_neighbours() {
        let good = CODE4LIB.replace('\n', " ");
        for (bad, message) in [
            (r#"{"leader":"cut"#, "a text is cut off by the end of its line"),
            (r#"{"leader":"x","fields":[{"001":"x"}"#, "not where they belong"),
            (r#"{"leader":7}"#, "a value of another type than expected"),
            (r#"{"leader":"x","fields":[{"001":"\x"}]}"#, "malformed"),
            (r#"{"leader":"x","fields":[{"001":nope}]}"#, "malformed"),
            (r#"{"id":"7"}"#, "neither leader nor fields"),
            (r#"{}"#, "neither leader nor fields"),
            (r#"{"x":1 {"leader":"x","fields":[]}"#, "not where they belong"),
            ("17", "something that is not an object"),
            ("nope", "something that is not an object"),
        ] {
            let json = format!("{good}\n{bad}\n{good}\n");
            let read = read(&json);
            assert_eq!((read.len(), read[0].as_str(), read[2].as_str()), (3, EXPECTED, EXPECTED), "{bad}: {read:?}");
            assert!(read[1].starts_with("record 2 at byte ") && read[1].contains(message), "{bad}: {read:?}");
        }
        let array = read(&format!("[\n{good},\n{{\"leader\":\"cut,\n{good}\n]"));
        assert_eq!((array.len(), array[0].as_str(), array[2].as_str()), (3, EXPECTED, EXPECTED), "{array:?}");
    }

    /// Records in one line, as most programs write them: the end of a scalar and of a deep value is known, and after
    /// broken JSON the next object that is a whole record is where reading goes on.
    #[test]
    fn a_damaged_element_of_a_compact_array_costs_none_of_its_neighbours() {
        let good = CODE4LIB.replace('\n', " ");
        let deep = format!(r#"{{"leader":"x","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (bad, message) in [
            ("null", "something that is not an object"),
            ("-1.5e3", "something that is not an object"),
            (r#""a text, with { and [""#, "something that is not an object"),
            (r#"[{"leader":"x"},7]"#, "something that is not an object"),
            (deep.as_str(), "it nests too deeply"),
            (r#"{"leader":"x"]"#, "not where they belong"),
            (r#"{"leader":"x" "y","fields":[{"001":"x"},{"245":{"subfields":[{"a":"b"},{"c":"d"}]}}]}"#, "not where"),
            (r#"{"leader":"x"","fields":[{"001":"x"}]}"#, "not where they belong"),
            (r#"{"leader":x","fields":[{"001":"x"}]}"#, "not where they belong"),
            ("}", "something that is not an object"),
            (r#"x"leader":"x","fields":[]}"#, "something that is not an object"),
        ] {
            for json in [format!("[{good},{bad},{good},{good}]"), format!("[{good}, {bad}, {good}\t,{good}]\n")] {
                let read = read(&json);
                assert_eq!(read.len(), 4, "{bad}: {read:?}");
                assert_eq!([&*read[0], &*read[2], &*read[3]], [EXPECTED; 3], "{bad}: {read:?}");
                assert!(read[1].starts_with("record 2 at byte ") && read[1].contains(message), "{bad}: {read:?}");
            }
        }
    }

    #[test]
    fn a_damaged_element_of_an_indented_array_costs_none_of_its_neighbours() {
        let good: serde_json::Value = serde_json::from_str(CODE4LIB).expect("JSON");
        let three = serde_json::to_string_pretty(&[&good, &good, &good]).expect("JSON");
        let second = three.match_indices("\n  {").nth(1).expect("there").0;
        for (from, to) in [
            ("  {", "  x"),
            ("\"leader\": \"", "\"leader\": "),
            ("\"leader\": \"", "\"leader\"  \""),
            ("[", "{"),
            ("{\n              \"a\"", "[\n              \"a\""),
            ("}", "]"),
        ] {
            let json = format!("{}{}", &three[..second], three[second..].replacen(from, to, 1));
            let read = read(&json);
            assert_eq!((read.len(), &*read[0], &*read[2]), (3, EXPECTED, EXPECTED), "{from:?} {to:?}: {read:?}");
            assert!(read[1].starts_with("record 2 at byte "), "{read:?}");
        }
    }

    #[test]
    fn when_nothing_is_found_after_damage_that_is_said() {
        let good = CODE4LIB.replace('\n', " ");
        for (rest, is_lost) in [
            (format!("[{good},{{\"leader\":\"x\" x}},{{\"x\":1}},7]"), true),
            (format!("[{good},\n{{\"leader\":\"x\" x,\n nothing more"), true),
            (format!("{good}\n{{\"leader\":\"x\" x\n nothing more"), true),
            (format!("{good}\n{{\"leader\":\"x\" x}}\n\n"), false),
            (format!("{good}\ngarbage\n"), false),
        ] {
            let read = read(&rest);
            assert_eq!((read.len(), &*read[0]), (2 + usize::from(is_lost), EXPECTED), "{rest}: {read:?}");
            assert!(!is_lost || read[2].contains("no record was found after the damage there"), "{read:?}");
        }
        let cut = read(&format!("[{good},{{\"leader\":"));
        assert!(cut.len() == 3 && cut[2].contains("the input ends inside an array"), "{cut:?}");
    }

    /// BR-023.
    #[test]
    fn nulls_and_numbers_where_a_value_was_expected_cost_no_record() {
        let json = r#"{"leader":null,"fields":[null,{"001":null},{"005":12},{"008":1.5},{"245":null},
            {"246":{"ind1":1,"ind2":null,"subfields":[null,{"a":null},{"b":1984},{"c":true}]}},{"500":{"subfields":null}}]}"#;
        assert_eq!(
            read(json),
            [
                "005 12 / 008 1.5 / 246 1  $a$b1984$ctrue",
                "field-empty ",
                "field-empty 001",
                "field-empty 245",
                "subfield-code-invalid 246",
                "field-empty 500",
                "leader-missing leader",
            ]
        );
        let iii = r#"{"leader":"00000nam a2200000 a 4500","controlfield":[null,{"tag":"001","data":null},{"tag":5,"data":7}],
            "datafield":[null,{"tag":245,"ind":10,"subfield":[null,{"code":"a","data":null},{"code":"b","data":8}]},
            {"tag":"246","subfield":null}]}"#;
        assert_eq!(
            read(iii),
            [
                "005 7 / 245 10 $a$b8",
                "field-empty ",
                "field-empty 001",
                "tag-repaired 005",
                "field-empty ",
                "subfield-code-invalid 245",
                "field-empty 246",
            ]
        );
        assert_eq!(read(r#"{"leader":null,"fields":null}"#), ["", "leader-missing leader", "no-marc-fields "]);
    }

    #[test]
    fn a_start_that_comes_in_pieces_is_judged_as_a_whole() {
        let json = format!("\u{feff}\n \n{CODE4LIB}");
        let pieces = std::io::BufReader::with_capacity(1, json.as_bytes());
        let read: Vec<_> = Reader::new(pieces, OnIllegal::Drop).records().collect();
        assert!(matches!(read.as_slice(), [Ok(_)]), "{read:?}");
    }

    #[test]
    fn errors_never_quote_what_they_could_not_read() {
        let read = read(r#"{"leader":"x","fields":[{"001":{"ind1":{"secret":"Pat"}}}]}"#);
        assert!(read.len() == 1 && !read[0].contains("Pat") && !read[0].contains("secret"), "{read:?}");
    }

    #[test]
    fn inputs_that_end_early_and_other_forms_are_errors() {
        for (json, message) in [
            ("", "the input is empty"),
            ("<collection/>", "this is XML or HTML, not JSON"),
            ("00714cam a22", "this is no JSON but perhaps ISO 2709"),
            ("ErrorCode(100)", "this is an error answer of Sierra, not JSON"),
            ("nothing", "this is not JSON"),
            ("[", "the input ends inside an array"),
            ("{\"leader\"", "the input ends inside this record"),
        ] {
            let read = read(json);
            assert_eq!(read.len(), 1, "{json}: {read:?}");
            assert!(read[0].contains(message), "{json}: {read:?}");
        }
        let mut reader = Reader::new(&b"{\"leader\":\"\xff\"}"[..], OnIllegal::Drop);
        let error = reader.read_into(&mut Record::default()).expect_err("not UTF-8");
        assert!(error.to_string().contains("it is not UTF-8"));
    }
}
