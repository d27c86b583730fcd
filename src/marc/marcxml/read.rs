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
                let tag = tokens.attributes.tag.take().unwrap_or_default();
                read_text(tokens)?;
                match builder.tag(&tag, String::new) {
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
    let Attributes { tag, ind1, ind2, .. } = std::mem::take(&mut tokens.attributes);
    let Some(tag) = builder.tag(tag.as_deref().unwrap_or_default(), String::new) else {
        skip(tokens)?;
        return Ok(());
    };
    if tag.is_control() {
        return Err(misplaced("a datafield with the tag of a control field"));
    }
    let first = builder.record.subfield_count();
    loop {
        let token = tokens.next()?;
        refuse_stray_text(tokens)?;
        match token {
            Token::Close => break,
            Token::Open(Element::Subfield) => {
                let code = tokens.attributes.code.take().unwrap_or_default();
                read_text(tokens)?;
                builder.subfield(tag, &code, &tokens.text)?;
            }
            Token::Open(Element::Foreign) => skip(tokens)?,
            Token::Open(_) => return Err(misplaced("an element that has no place in a data field")),
            Token::End => return Err(misplaced("no end")),
        }
    }
    let indicators = [builder.indicator(tag, 1, ind1.as_deref()), builder.indicator(tag, 2, ind2.as_deref())];
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
