//! Reading MARCXML: a collection, a single record, or records inside some envelope.

use std::io::BufRead;

use super::fields::{Fault, read_fields};
use super::strict;
use super::token::{Element, Token, Tokens};
use crate::marc::builder::Builder;
use crate::marc::leader::Leader;
use crate::marc::loss::{Loss, Losses};
use crate::marc::model::Record;
use crate::marc::read::{Damage, ReadError, ReadRecord};
use crate::marc::settings::OnIllegal;

/// Reads MARCXML records one after another, with any prefix or none, in a collection or an envelope such as an OAI-PMH
/// answer, or simply one after the other. An envelope may call its own parts `record` too.
///
/// XML that is not well-formed ends the reading, as XML demands; a record whose parts make no sense costs only itself.
/// Fields outside of a record, or of a namespace that is not that of MARCXML, and text between records are refused as if
/// they were records. Entities are not expanded, encodings other than UTF-8 are refused, depth and size are bounded.
pub struct Reader<R> {
    tokens: Tokens<R>,
    /// A token that was met before its time.
    pending: Option<Token>,
    ordinal: u64,
    /// Whether a collection has been seen.
    is_marc: bool,
    /// Whether anything has been seen outside of records that is not MARCXML.
    is_mixed: bool,
    /// The depths of the open collections.
    collections: Vec<usize>,
    /// The open elements that are called `record` and are none.
    envelopes: Vec<Envelope>,
    /// The depth of the open element whose stray parts have been refused.
    stray: Option<usize>,
    is_done: bool,
    policy: OnIllegal,
    losses: Vec<Loss>,
}

/// An element without namespace that is called `record` as those of MARCXML are, and holds something else first.
struct Envelope {
    depth: usize,
    /// Whether something in it was read or refused.
    has_record: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub fn new(input: R, policy: OnIllegal) -> Self {
        Self {
            tokens: Tokens::new(input),
            pending: None,
            ordinal: 0,
            is_marc: false,
            is_mixed: false,
            collections: Vec::new(),
            envelopes: Vec::new(),
            stray: None,
            is_done: false,
            policy,
            losses: Vec::new(),
        }
    }

    fn next_record(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        loop {
            let token = match self.pending.take() {
                Some(token) => token,
                None => {
                    let token = self.next_outside()?;
                    if self.is_stray_text(token) {
                        self.pending = Some(token);
                        return Err(self.refuse("text between records"));
                    }
                    token
                }
            };
            match token {
                Token::Open(Element::Record) => {
                    if self.read_record(record)? {
                        return Ok(true);
                    }
                }
                Token::Open(Element::Collection) => {
                    self.is_marc = true;
                    self.collections.push(self.tokens.depth());
                }
                Token::Open(Element::Unknown | Element::Foreign) => self.is_mixed = true,
                Token::Open(_) => {
                    self.skip_outside()?;
                    let parent = Some(self.tokens.depth());
                    if self.stray != parent {
                        self.stray = parent;
                        return Err(self.refuse("fields outside of a record, or not of MARCXML's namespace"));
                    }
                }
                Token::Close => {
                    if self.leave() {
                        return Err(self.refuse("neither fields nor a record inside"));
                    }
                }
                Token::End if self.ordinal > 0 || (self.is_marc && !self.is_mixed) => {
                    self.is_done = true;
                    return Ok(false);
                }
                Token::End => {
                    let reason = "there is no MARCXML record in this document, as far as its namespaces tell";
                    return Err(self.tokens.unreadable(reason.to_owned()));
                }
            }
        }
    }

    /// The next token outside of records.
    fn next_outside(&mut self) -> Result<Token, ReadError> {
        let token = self.tokens.next()?;
        strict::check_characters(&self.tokens.text)
            .map_err(|reason| self.tokens.unreadable(format!("not well-formed: {reason}")))?;
        Ok(token)
    }

    fn skip_outside(&mut self) -> Result<(), ReadError> {
        let depth = self.tokens.depth();
        while self.tokens.depth() >= depth {
            self.next_outside()?;
        }
        Ok(())
    }

    /// Whether text stands in a collection, where only records may. Told once for each element.
    fn is_stray_text(&mut self, token: Token) -> bool {
        if !self.tokens.met_entity && strict::is_blank_text(&self.tokens.text) {
            return false;
        }
        let parent = match token {
            Token::Open(_) => self.tokens.depth().checked_sub(1),
            Token::Close => Some(self.tokens.depth() + 1),
            Token::End => None,
        };
        let is_stray = parent.is_some() && self.collections.last().copied() == parent && self.stray != parent;
        if is_stray {
            self.stray = parent;
        }
        is_stray
    }

    /// Notes the end of an element outside of records; tells whether it seemed to be a record and held none.
    fn leave(&mut self) -> bool {
        let depth = self.tokens.depth();
        self.collections.retain(|open| *open <= depth);
        self.stray = self.stray.filter(|open| *open <= depth);
        match self.envelopes.pop_if(|open| open.depth > depth) {
            Some(envelope) => !envelope.has_record,
            None => false,
        }
    }

    /// An error that counts as one record.
    fn refuse(&mut self, what: &'static str) -> ReadError {
        self.ordinal += 1;
        self.envelopes.iter_mut().for_each(|envelope| envelope.has_record = true);
        self.tokens.renew();
        let damage = Damage::Structure { what };
        ReadError::Damaged { ordinal: self.ordinal, offset: self.tokens.offset(), damage }
    }

    /// Reads the record whose element was just opened; `false` when it turns out to be an envelope.
    fn read_record(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        let offset = self.tokens.offset();
        self.tokens.renew();
        record.clear(Leader::default());
        let mut losses = Losses::default();
        let depth = self.tokens.depth();
        let mut builder = Builder { record, losses: &mut losses, policy: self.policy };
        let built = read_fields(&mut self.tokens, &mut builder);
        if let Err(Fault::Envelope(token)) = built {
            self.pending = Some(token);
            self.envelopes.push(Envelope { depth, has_record: false });
            self.is_mixed = true;
            return Ok(false);
        }
        self.ordinal += 1;
        self.envelopes.iter_mut().for_each(|envelope| envelope.has_record = true);
        self.losses = losses.into_vec();
        match built {
            Ok(()) | Err(Fault::Envelope(_)) => {}
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

#[cfg(test)]
mod tests;
