//! What stands inside a record: its leader and its fields, to its end tag.

use std::io::BufRead;

use super::token::{Attributes, Element, Token, Tokens};
use crate::marc::builder::Builder;
use crate::marc::error::MarcError;
use crate::marc::loss::LossKind;
use crate::marc::read::{Damage, ReadError};
use crate::marc::text;

/// What ends a record early.
pub(super) enum Fault {
    /// The record makes no sense, and the document goes on.
    Record(Damage),
    /// The document cannot be read on.
    Reading(ReadError),
    /// It is no record but something around records; this token was met in it.
    Envelope(Token),
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
pub(super) fn read_fields<R: BufRead>(tokens: &mut Tokens<R>, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let (mut has_leader, mut may_be_envelope) = (false, !tokens.is_bound);
    loop {
        let token = tokens.next()?;
        // OAI-PMH and SRU have records of their own, which begin with a header or so. Without namespaces only that tells.
        if may_be_envelope && !tokens.is_bound && matches!(token, Token::Open(Element::Foreign | Element::Record)) {
            return Err(Fault::Envelope(token));
        }
        may_be_envelope = false;
        refuse_stray_text(tokens)?;
        match token {
            Token::Close => break,
            Token::Open(Element::Leader) => {
                read_text(tokens)?;
                if has_leader {
                    builder.losses.push(LossKind::LeaderExtra, "leader", || "1 more ignored".to_owned());
                } else {
                    builder.leader(Some(&tokens.text));
                }
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
            Token::Open(Element::Foreign | Element::Alien) => ignore(tokens, builder, "")?,
            Token::Open(_) => return Err(misplaced("an element that has no place in a record")),
            Token::End => return Err(misplaced("no end")),
        }
    }
    if !has_leader {
        builder.leader(None);
    }
    builder.finish();
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
            Token::Open(Element::Foreign | Element::Alien) => ignore(tokens, builder, tag.as_str())?,
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

/// Passes over an element that is not MARCXML's and reports it.
fn ignore<R: BufRead>(tokens: &mut Tokens<R>, builder: &mut Builder<'_>, field: &str) -> Result<(), Fault> {
    builder.losses.push(LossKind::ElementIgnored, field, || {
        format!("element {} is not of MARCXML's namespace and names; left out", text::quote(&tokens.name))
    });
    skip(tokens)
}

/// Passes over the element just opened.
fn skip<R: BufRead>(tokens: &mut Tokens<R>) -> Result<(), Fault> {
    let depth = tokens.depth();
    while tokens.depth() >= depth {
        tokens.next()?;
    }
    Ok(())
}
