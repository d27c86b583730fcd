//! Reading MARCXML: a collection, a single record, or records inside some envelope.

use std::io::BufRead;

use super::token::{Attributes, Element, Token, Tokens};
use crate::marc::builder::Builder;
use crate::marc::error::MarcError;
use crate::marc::leader::Leader;
use crate::marc::loss::{Loss, Losses};
use crate::marc::model::Record;
use crate::marc::read::{Damage, ReadError, ReadRecord};
use crate::marc::settings::OnIllegal;

/// Reads MARCXML records one after another, with any prefix or none, in a collection or an envelope such as an OAI-PMH
/// answer, or simply one after the other.
///
/// XML that is not well-formed ends the reading, as XML demands; a record whose parts make no sense costs only itself.
/// Entities are not expanded, encodings other than UTF-8 are refused, depth and size are bounded.
pub struct Reader<R> {
    tokens: Tokens<R>,
    ordinal: u64,
    /// Whether anything of MARCXML has been seen.
    is_marc: bool,
    is_done: bool,
    policy: OnIllegal,
    losses: Vec<Loss>,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub fn new(input: R, policy: OnIllegal) -> Self {
        Self { tokens: Tokens::new(input), ordinal: 0, is_marc: false, is_done: false, policy, losses: Vec::new() }
    }

    fn next_record(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        loop {
            match self.tokens.next()? {
                Token::Open(Element::Record) => break,
                Token::Open(Element::Collection) => self.is_marc = true,
                Token::Open(_) | Token::Close => {}
                Token::End if self.is_marc => {
                    self.is_done = true;
                    return Ok(false);
                }
                Token::End => return Err(self.tokens.unreadable("there is no MARCXML in this document".to_owned())),
            }
        }
        self.is_marc = true;
        self.ordinal += 1;
        let offset = self.tokens.offset();
        self.tokens.renew();
        record.clear(Leader::default());
        let mut losses = Losses::default();
        let depth = self.tokens.depth();
        let mut builder = Builder { record, losses: &mut losses, policy: self.policy };
        let built = read_fields(&mut self.tokens, &mut builder);
        self.losses = losses.into_vec();
        match built {
            Ok(()) => {}
            Err(Fault::Reading(error)) => return Err(error),
            Err(Fault::Record(damage)) => {
                while self.tokens.depth() >= depth {
                    self.tokens.next()?;
                }
                self.tokens.renew();
                return Err(ReadError::Damaged { ordinal: self.ordinal, offset, damage });
            }
        }
        self.tokens.renew();
        Ok(true)
    }
}

impl<R: BufRead> ReadRecord for Reader<R> {
    fn read_into(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        if self.is_done {
            return Ok(false);
        }
        let read = self.next_record(record);
        self.is_done |= read.as_ref().is_err_and(|error| !error.is_one_record());
        read
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }
}

/// What ends a record early.
enum Fault {
    /// The record makes no sense, and the document goes on.
    Record(Damage),
    /// The document cannot be read on.
    Reading(ReadError),
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Reading(error)
    }
}

impl From<MarcError> for Fault {
    fn from(error: MarcError) -> Self {
        Self::Record(error.into())
    }
}

fn misplaced(what: &'static str) -> Fault {
    Fault::Record(Damage::Structure { what })
}

/// Reads what stands inside `<record>`, to its end tag.
fn read_fields<R: BufRead>(tokens: &mut Tokens<R>, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let mut has_leader = false;
    loop {
        let token = tokens.next()?;
        refuse_stray_text(tokens)?;
        match token {
            Token::Close => break,
            Token::Open(Element::Leader) => {
                read_text(tokens)?;
                builder.leader(Some(&tokens.text));
                has_leader = true;
            }
            Token::Open(Element::Controlfield) => {
                read_text(tokens)?;
                match builder.tag(&tokens.attributes.tag, String::new) {
                    Some(tag) if tag.is_control() => builder.control(tag, &tokens.text)?,
                    Some(_) => return Err(misplaced("a controlfield with the tag of a data field")),
                    None => {}
                }
            }
            Token::Open(Element::Datafield) => read_data(tokens, builder)?,
            Token::Open(Element::Foreign) => skip(tokens)?,
            Token::Open(_) => return Err(misplaced("an element that has no place in a record")),
            Token::End => return Err(misplaced("no end")),
        }
    }
    if !has_leader {
        builder.leader(None);
    }
    Ok(())
}

fn read_data<R: BufRead>(tokens: &mut Tokens<R>, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let Attributes { tag, ind1, ind2, .. } = &tokens.attributes;
    let Some(tag) = builder.tag(tag, String::new) else {
        skip(tokens)?;
        return Ok(());
    };
    if tag.is_control() {
        return Err(misplaced("a datafield with the tag of a control field"));
    }
    let indicators = [builder.indicator(tag, 1, Some(ind1)), builder.indicator(tag, 2, Some(ind2))];
    let first = builder.record.subfield_count();
    loop {
        let token = tokens.next()?;
        refuse_stray_text(tokens)?;
        match token {
            Token::Close => break,
            Token::Open(Element::Subfield) => {
                read_text(tokens)?;
                builder.subfield(tag, &tokens.attributes.code, &tokens.text)?;
            }
            Token::Open(Element::Foreign) => skip(tokens)?,
            Token::Open(_) => return Err(misplaced("an element that has no place in a data field")),
            Token::End => return Err(misplaced("no end")),
        }
    }
    builder.close(tag, indicators, first);
    Ok(())
}

/// Reads to the end tag of an element that holds text alone; the text is then in `tokens.text`.
fn read_text<R: BufRead>(tokens: &mut Tokens<R>) -> Result<(), Fault> {
    let token = tokens.next()?;
    if tokens.met_entity {
        return Err(Fault::Record(Damage::Entity));
    }
    if token == Token::Close { Ok(()) } else { Err(misplaced("an element where only text may be")) }
}

fn refuse_stray_text<R: BufRead>(tokens: &Tokens<R>) -> Result<(), Fault> {
    if tokens.met_entity {
        return Err(Fault::Record(Damage::Entity));
    }
    if tokens.text.trim_ascii().is_empty() { Ok(()) } else { Err(misplaced("text between fields")) }
}

/// Passes over the element just opened.
fn skip<R: BufRead>(tokens: &mut Tokens<R>) -> Result<(), Fault> {
    let depth = tokens.depth();
    while tokens.depth() >= depth {
        tokens.next()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
                "leader-missing leader",
            ]
        );
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
            ("<html><body/></html>", "there is no MARCXML in this document"),
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
}
