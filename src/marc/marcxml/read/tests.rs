use super::*;
use crate::marc::NAMESPACE;

/// Records as lines joined by ` / `, errors and losses in between.
fn read(xml: &str) -> Vec<String> {
    let mut reader = Reader::new(xml.as_bytes(), OnIllegal::Drop);
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

const LEADER: &str = "<leader>00000nam a2200000 a 4500</leader>";

fn collection(records: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><collection xmlns=\"{NAMESPACE}\">{records}</collection>")
}

#[test]
fn prefixes_envelopes_and_missing_namespaces_are_all_understood() {
    let body = |p: &str| {
        format!(
            "<{p}record>{}<{p}controlfield tag='001'>x</{p}controlfield><{p}datafield tag=\"245\" ind1='1' ind2='0'>\
             <{p}subfield code='a'>T</{p}subfield></{p}datafield></{p}record>",
            LEADER
                .replace("leader>", "l>")
                .replace("<l>", &format!("<{p}leader>"))
                .replace("</l>", &format!("</{p}leader>"))
        )
    };
    let expected = "001 x / 245 10 $aT";
    for xml in [
        collection(&body("")),
        format!("<marcxml:collection xmlns:marcxml=\"{NAMESPACE}\">\n{}\n</marcxml:collection>", body("marcxml:")),
        format!("<collection>{}</collection>", body("")),
        body(""),
        body("marc:"),
        format!("\u{feff}{}", body("")),
        format!(
            "<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRecords><record><metadata>\
             <m:record xmlns:m='{NAMESPACE}'>{}</m:record></metadata></record></ListRecords></OAI-PMH>",
            body("m:").replace("<m:record>", "").replace("</m:record>", "")
        ),
    ] {
        assert_eq!(read(&xml), [expected], "{xml}");
    }
    assert_eq!(read(&format!("{}\n{}", body(""), body(""))), [expected, expected], "one document after another");
    assert_eq!(read(&collection("")), Vec::<String>::new());
}

#[test]
fn text_keeps_its_blanks_and_references_and_line_ends_mean_what_xml_says() {
    let xml = collection(&format!(
        "<record>{LEADER}<controlfield tag='008'>  a  b  </controlfield><datafield tag='245' ind1=' ' ind2='&quot;'>\
         <subfield code='&lt;'>&lt;a&gt; &amp; &#x41;&#66;<![CDATA[<c>]]><!-- no -->d\r\ne&#13;</subfield></datafield></record>"
    ));
    assert_eq!(read(&xml), ["008   a  b   / 245  \" $<<a> & AB<c>d\ne\r"]);
}

#[test]
fn a_record_that_makes_no_sense_costs_only_itself() {
    let good = format!("<record>{LEADER}<controlfield tag='001'>x</controlfield></record>");
    for (bad, message) in [
        ("<datafield tag='001' ind1=' ' ind2=' '/>", "a datafield with the tag of a control field"),
        ("<controlfield tag='245'>x</controlfield>", "a controlfield with the tag of a data field"),
        ("<controlfield tag='001'>&nbsp;</controlfield>", "refers to an entity"),
        ("<datafield tag='245' ind1='&x;' ind2=' '/>", "refers to an entity"),
        ("<record><leader/></record>", "has no place in a record"),
        ("<subfield code='a'>x</subfield>", "has no place in a record"),
        ("<controlfield tag='001'>x<b/></controlfield>", "an element where only text may be"),
        ("stray", "text between fields"),
        ("<controlfield tag='245'/><record><leader/></record>", "a controlfield with the tag of a data field"),
        ("<datafield tag='245' ind1=' ' ind2=' '>stray</datafield>", "text between fields"),
        ("<datafield tag='245' ind1=' ' ind2=' '><leader/></datafield>", "has no place in a data field"),
    ] {
        let xml = collection(&format!("{good}<record>{LEADER}{bad}</record>{good}"));
        let read = read(&xml);
        assert_eq!((read.len(), read[0].as_str(), read[2].as_str()), (3, "001 x", "001 x"), "{bad}: {read:?}");
        assert!(read[1].starts_with("record 2 at byte ") && read[1].contains(message), "{bad}: {read:?}");
    }
}

#[test]
fn odd_fields_are_repaired_or_left_out_with_a_loss() {
    let xml = collection(
        "<record><controlfield tag='5'>x</controlfield><controlfield>none</controlfield><datafield tag='24é'>\
         <subfield code='a'>y</subfield></datafield><datafield tag='245'><subfield>no code</subfield>\
         <subfield code='a'>z&#1;&#xD800;&#0;</subfield></datafield><datafield tag='500' ind1='12'/>\
         <x:note xmlns:x='urn:x'>not <b>MARC</b></x:note></record>",
    );
    assert_eq!(
        read(&xml),
        [
            "005 x / 245    $az",
            "tag-repaired 005",
            "tag-invalid ",
            "tag-invalid ",
            "subfield-code-invalid 245",
            "characters-dropped 245$a",
            "indicator-replaced 500",
            "field-empty 500",
            "element-ignored ",
            "leader-missing leader",
        ]
    );
}

#[test]
fn what_is_no_part_of_a_record_is_mentioned_and_a_second_leader_is_not_taken() {
    let other = "xmlns:m='http://www.loc.gov/MARC21/slim/'";
    let xml = collection(&format!(
        "<record {other}>{LEADER}<controlfield tag='001'>x</controlfield><m:datafield tag='245' ind1=' ' ind2=' '>\
         <m:subfield code='a'>y</m:subfield></m:datafield><leader>00000cas a2200000 a 4500</leader>\
         <datafield tag='500' ind1=' ' ind2=' '><subField code='a'>y</subField><subfield code='b'>z</subfield>\
         </datafield></record><record>{LEADER}</record>"
    ));
    assert_eq!(
        read(&xml),
        ["001 x / 500    $bz", "element-ignored ", "leader-extra leader", "element-ignored 500", "", "no-marc-fields "]
    );
    let misspelt = "<collection><record><controlField tag='001'>1</controlField><datafield tag='245'>\
        <subfield code='a'>T</subfield></datafield></record></collection>";
    assert_eq!(read(misspelt), ["245    $aT", "element-ignored ", "leader-missing leader"]);
}

/// OAI-PMH and SRU call their own parts records too, and many a harvester takes all namespaces away.
#[test]
fn records_in_envelopes_without_namespaces_are_found() {
    let record = |number: u8| format!("<record>{LEADER}<controlfield tag='001'>{number}</controlfield></record>");
    let oai = |content: &str| format!("<OAI-PMH><ListRecords>{content}</ListRecords></OAI-PMH>");
    let entry = |content: &str| {
        format!("<record><header><identifier>x</identifier></header><metadata>{content}</metadata></record>")
    };
    assert_eq!(read(&oai(&[entry(&record(1)), entry(&record(2))].concat())), ["001 1", "001 2"]);
    let sru = format!(
        "<searchRetrieveResponse><records><record>\n<recordSchema>marcxml</recordSchema><recordData>{}</recordData>\
         </record></records></searchRetrieveResponse>",
        record(1)
    );
    assert_eq!(read(&sru), ["001 1"]);
    let without = read(&oai(&[entry("<dc>T</dc>"), entry(&record(2))].concat()));
    assert_eq!((without.len(), &*without[1]), (2, "001 2"), "{without:?}");
    assert!(without[0].starts_with("record 1 at byte ") && without[0].contains("neither fields nor a record"));
}

/// Nothing that looks like a record is passed over as if it were not there.
#[test]
fn records_of_another_namespace_and_parts_of_none_are_refused_and_counted() {
    let good = format!("<record>{LEADER}<controlfield tag='001'>x</controlfield></record>");
    let foreign = good.replace("<record>", "<record xmlns='info:lc/xmlns/marcxchange-v2'>");
    let prefixed = "<d:record xmlns:d='http://www.loc.gov/MARC21/Slim'><d:leader>x</d:leader></d:record>";
    for (bad, message) in [
        (foreign.as_str(), "not of MARCXML's namespace"),
        (prefixed, "not of MARCXML's namespace"),
        ("<Record><leader>x</leader><controlfield tag='001'>y</controlfield></Record>", "outside of a record"),
        ("<datafield tag='245'><subfield code='a'>x</subfield></datafield>", "outside of a record"),
        ("stray", "text between records"),
        ("<![CDATA[stray]]>", "text between records"),
        ("&stray;", "text between records"),
    ] {
        let read = read(&collection(&format!("{good}{bad}{good}")));
        assert_eq!((read.len(), &*read[0], &*read[2]), (3, "001 x", "001 x"), "{bad}: {read:?}");
        assert!(read[1].starts_with("record 2 at byte ") && read[1].contains(message), "{bad}: {read:?}");
    }
    let none = read(&collection(&foreign.repeat(2)));
    assert!(none.len() == 2 && none.iter().all(|error| error.contains("not of MARCXML's namespace")), "{none:?}");
    let other = read(&collection("<mods xmlns='http://www.loc.gov/mods/v3'/>"));
    assert!(other.len() == 1 && other[0].contains("there is no MARCXML record"), "{other:?}");
}

#[test]
fn xml_that_is_not_well_formed_ends_the_reading_after_what_came_before() {
    let good = format!("<record>{LEADER}<controlfield tag='001'>x</controlfield></record>");
    for (bad, message) in [
        ("<1a/>", "a name that cannot be one"),
        ("<a b='1'c='2'/>", "no blank stands between two attributes"),
        ("<a b='<'/>", "a < stands inside a tag"),
        ("<a b='\u{1}'/>", "a character that XML forbids"),
        ("<!-- \u{1} -->", "a character that XML forbids"),
        ("\u{1}", "a character that XML forbids"),
        ("<a>]]></a>", "]]> stands in text"),
        ("<?xml version='1.0'?>", "a declaration stands in the middle"),
        ("<!DOCTYPE x>", "a document type stands in the middle"),
        ("<a></b>", "tags do not match"),
        ("</collection>text", "text stands outside of the root element"),
        ("</collection><![CDATA[x]]>", "text stands outside of the root element"),
        ("</collection>&amp;", "text stands outside of the root element"),
        ("</collection><?xml version='1.0'?><?xml version='1.0'?>", "a declaration stands in the middle"),
        ("</collection><!DOCTYPE a><!DOCTYPE b>", "a document type stands in the middle"),
    ] {
        let read = read(&collection(&format!("{good}{bad}{good}")));
        assert_eq!((read.len(), &*read[0]), (2, "001 x"), "{bad}: {read:?}");
        assert!(read[1].starts_with("cannot read on at byte ") && read[1].contains(message), "{bad}: {read:?}");
    }
    let two = format!("{}\n\u{feff}<!DOCTYPE x>\n{}", collection(&good), collection(&good).replace("<?xml", "<?xnl"));
    assert_eq!(read(&two), ["001 x", "001 x"], "one document after another");
}

#[test]
fn a_start_that_comes_in_pieces_is_judged_as_a_whole() {
    let xml = format!("\u{feff}\n \n{}", collection(&format!("<record>{LEADER}</record>")));
    let pieces = std::io::BufReader::with_capacity(1, xml.as_bytes());
    let read: Vec<_> = Reader::new(pieces, OnIllegal::Drop).records().collect();
    assert!(matches!(read.as_slice(), [Ok(_)]), "{read:?}");
}

/// Nothing expands, nothing grows without bound, and what is no MARCXML says so.
#[test]
fn hostile_and_wrong_documents_are_refused() {
    let record = format!("<record>{LEADER}<controlfield tag='001'>&a;</controlfield></record>");
    let laughs = format!(
        "<!DOCTYPE c [<!ENTITY a \"&b;&b;\"><!ENTITY b \"ha\">]>{}",
        collection(&record).replace("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "")
    );
    assert!(read(&laughs)[0].contains("entities are not expanded"), "{:?}", read(&laughs));
    let outside = laughs.replace("\"ha\"", "SYSTEM \"file:///etc/passwd\"");
    assert!(read(&outside)[0].contains("entities are not expanded"));
    let deep = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
    for (xml, message) in [
        (deep.as_str(), "elements nest deeper than 64"),
        ("", "this is empty"),
        ("{\"leader\":1}", "this is JSON, not XML"),
        ("00714cam a2200205 a 4500", "this is no XML but perhaps ISO 2709"),
        ("ErrorCode(100)", "this is not XML"),
        ("<html><body/></html>", "there is no MARCXML record in this document"),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><collection/>", "declares an encoding other than UTF-8"),
        ("<collection><record>", "the input ends inside an element"),
        ("<collection></record>", "tags do not match"),
        ("<collection><record a=1/></collection>", "a malformed attribute"),
        ("<collection><!-- ", "comment not closed"),
    ] {
        let read = read(xml);
        assert_eq!(read.len(), 1, "{xml}: {read:?}");
        assert!(read[0].contains(message), "{xml}: {read:?}");
    }
    let mut reader = Reader::new(&b"<collection>\xff</collection>"[..], OnIllegal::Drop);
    assert!(reader.read_into(&mut Record::default()).is_err());
    assert!(matches!(reader.read_into(&mut Record::default()), Ok(false)), "after that it is at its end");
}

#[test]
fn a_single_part_without_end_does_not_fill_the_memory() {
    struct Endless;
    impl std::io::Read for Endless {
        fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
            target.fill(b'x');
            Ok(target.len())
        }
    }
    let start = std::io::Read::chain(&b"<collection><record><leader>"[..], Endless);
    let input = std::io::BufReader::with_capacity(1 << 20, start);
    let error = Reader::new(input, OnIllegal::Drop).read_into(&mut Record::default()).expect_err("endless");
    assert!(error.to_string().contains("a single record is larger than 134217728 bytes"), "{error}");
}

/// BR-083: policy decides here as well.
#[test]
fn quarantine_refuses_a_record_with_forbidden_characters_and_goes_on() {
    let record = |text: &str| format!("<record>{LEADER}<controlfield tag='001'>{text}</controlfield></record>");
    let xml = collection(&format!("{}{}", record("a\u{1}"), record("b")));
    let read: Vec<_> = Reader::new(xml.as_bytes(), OnIllegal::Quarantine).records().collect();
    assert!(matches!(&read[0], Err(error) if error.is_one_record()));
    assert!(read[1].is_ok() && read.len() == 2);
}
