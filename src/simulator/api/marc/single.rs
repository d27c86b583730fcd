//! `GET /bibs/{id}/marc`: what comes depends on `Accept`, and without one that it knows Sierra refuses.

use super::super::super::json::{Object, push_array, push_string};
use super::super::super::world::{Content, VarField, World, record_number_field};
use super::super::answer::Answer;
use super::super::refusal::Refusal;
use super::super::request::ApiRequest;
use super::super::serve::push_marc;

/// Answers for one bib.
///
/// # Errors
/// 404 with code 107 for an unknown or deleted bib, 400 with code 108 for a media type that is not MARC.
pub(crate) fn single(world: &World, request: &ApiRequest<'_>, id: u64) -> Result<Answer, Refusal> {
    let unknown = Refusal::documented(108).saying("Invalid parameter : Unknown content type");
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    let slot = world.bibs.visible(id).and_then(|slot| slot.live());
    let bib = slot.ok_or_else(|| Refusal::documented(107))?;
    let fields = bib.description().fields_with(record_number_field(id));
    let (body, content_type) = if accept.contains("application/marc-xml") {
        (marc_xml(&fields), "application/marc-xml;charset=UTF-8")
    } else if accept.contains("application/marc-in-json") {
        let mut out = String::new();
        push_marc(&mut out, &fields);
        (out, "application/marc-in-json;charset=UTF-8")
    } else if accept.contains("application/marc-json") {
        (marc_json(&fields), "application/marc-json;charset=UTF-8")
    } else {
        return Err(unknown);
    };
    Ok(Answer { content_type, ..Answer::json(body) }.counting(1))
}

fn leader(fields: &[VarField]) -> Option<&str> {
    fields.iter().find(|field| field.field_tag == '_').and_then(VarField::text)
}

/// MARCXML as recorded: every element prefixed, control fields first.
fn marc_xml(fields: &[VarField]) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><marcxml:collection xmlns:marcxml=\"http://www.loc.gov/MARC21/slim\">\n  \
         <marcxml:record>\n",
    );
    if let Some(leader) = leader(fields) {
        out.push_str(&format!("    <marcxml:leader>{}</marcxml:leader>\n", escaped(leader)));
    }
    let tagged = || fields.iter().filter_map(|field| Some((field.marc_tag.as_deref()?, field)));
    for (tag, field) in tagged() {
        if let Some(text) = field.text() {
            let text = escaped(text);
            out.push_str(&format!("    <marcxml:controlfield tag=\"{tag}\">{text}</marcxml:controlfield>\n"));
        }
    }
    for (tag, field) in tagged() {
        let Content::Subfields(subfields) = &field.content else { continue };
        let [first, second] = field.indicators.unwrap_or([' ', ' ']);
        out.push_str(&format!("    <marcxml:datafield tag=\"{tag}\" ind1=\"{first}\" ind2=\"{second}\">\n"));
        for (code, text) in subfields {
            let text = escaped(text);
            out.push_str(&format!("      <marcxml:subfield code=\"{code}\">{text}</marcxml:subfield>\n"));
        }
        out.push_str("    </marcxml:datafield>\n");
    }
    out.push_str("  </marcxml:record>\n</marcxml:collection>\n");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The vendor's own shape of MARC in JSON, in which both indicators are one text.
fn marc_json(fields: &[VarField]) -> String {
    let mut out = String::new();
    let mut record = Object::open(&mut out);
    if let Some(leader) = leader(fields) {
        record.string("leader", leader);
    }
    let tagged = || fields.iter().filter_map(|field| Some((field.marc_tag.as_deref()?, field)));
    let control = tagged().filter_map(|(tag, field)| Some((tag, field.text()?)));
    push_array(record.key("controlfield"), control, |out, (tag, text)| {
        let mut field = Object::open(out);
        field.string("tag", tag);
        field.string("data", text);
        field.close();
    });
    let data = tagged().filter_map(|(tag, field)| match &field.content {
        Content::Text(_) => None,
        Content::Subfields(subfields) => Some((tag, field.indicators.unwrap_or([' ', ' ']), subfields)),
    });
    push_array(record.key("datafield"), data, |out, (tag, indicators, subfields)| {
        let mut field = Object::open(out);
        field.string("tag", tag);
        field.string("ind", &String::from_iter(indicators));
        push_array(field.key("subfield"), subfields, |out, (code, text)| {
            let mut subfield = Object::open(out);
            push_string(subfield.key("code"), code.encode_utf8(&mut [0; 4]));
            subfield.string("data", text);
            subfield.close();
        });
        field.close();
    });
    record.close();
    out
}
