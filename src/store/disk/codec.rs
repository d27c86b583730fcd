//! Bytes in and out: the small binary language of every stored value.
//!
//! Integers are LEB128 varints unless an order or a budget wants them fixed; texts and byte strings carry their
//! length. A reader never panics and never trusts a length: what does not fit is [`Damaged`].

use jiff::Timestamp;
use jiff::civil::Date;

use crate::record::{RecordNumber, Stream};
use crate::sync::{ContentHash, Seq};

/// The bytes are not what was written. The caller knows the tree and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// Builds a value.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.byte(u8::from(value))
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn varint(&mut self, mut value: u64) -> &mut Self {
        loop {
            let low = (value & 0x7f).to_le_bytes()[0];
            value >>= 7;
            if value == 0 {
                return self.byte(low);
            }
            self.byte(low | 0x80);
        }
    }

    pub(super) fn signed(&mut self, value: i64) -> &mut Self {
        self.varint((value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned())
    }

    pub(super) fn length(&mut self, length: usize) -> &mut Self {
        self.varint(u64::try_from(length).unwrap_or(u64::MAX))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.length(bytes.len()).raw(bytes)
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) -> &mut Self {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
        self
    }

    pub(super) fn optional_text(&mut self, text: Option<&str>) -> &mut Self {
        self.option(text, |writer, text| {
            writer.text(text);
        })
    }

    pub(super) fn timestamp(&mut self, at: Timestamp) -> &mut Self {
        self.signed(at.as_second()).signed(i64::from(at.subsec_nanosecond()))
    }

    pub(super) fn optional_timestamp(&mut self, at: Option<Timestamp>) -> &mut Self {
        self.option(at, |writer, at| {
            writer.timestamp(at);
        })
    }

    pub(super) fn date(&mut self, date: Date) -> &mut Self {
        self.raw(&date.year().to_be_bytes()).raw(&date.month().to_be_bytes()).raw(&date.day().to_be_bytes())
    }

    pub(super) fn number(&mut self, number: RecordNumber) -> &mut Self {
        self.varint(number.value())
    }

    pub(super) fn numbers(&mut self, numbers: &[RecordNumber]) -> &mut Self {
        self.length(numbers.len());
        for number in numbers {
            self.number(*number);
        }
        self
    }

    pub(super) fn seq(&mut self, seq: Seq) -> &mut Self {
        self.varint(seq.value())
    }

    pub(super) fn stream(&mut self, stream: Stream) -> &mut Self {
        self.byte(stream_code(stream))
    }

    pub(super) fn hash(&mut self, hash: ContentHash) -> &mut Self {
        self.raw(&hash.0)
    }
}

/// Takes a value apart.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Everything must have been read: what is left over was not written by this format.
    pub(super) fn end(&self) -> Result<(), Damaged> {
        if self.0.is_empty() { Ok(()) } else { Err(Damaged) }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damaged> {
        let (first, rest) = self.0.split_first().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Damaged> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }

    pub(super) fn raw(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Damaged);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Damaged> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(super) fn length(&mut self) -> Result<usize, Damaged> {
        usize::try_from(self.varint()?).map_err(|_| Damaged)
    }

    pub(super) fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, Damaged> {
        T::try_from(self.varint()?).map_err(|_| Damaged)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let length = self.length()?;
        self.raw(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damaged)
    }

    pub(super) fn owned_text(&mut self) -> Result<String, Damaged> {
        self.text().map(str::to_owned)
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Damaged>,
    ) -> Result<Option<T>, Damaged> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    pub(super) fn timestamp(&mut self) -> Result<Timestamp, Damaged> {
        let (second, nanosecond) = (self.signed()?, self.signed()?);
        Timestamp::new(second, i32::try_from(nanosecond).map_err(|_| Damaged)?).map_err(|_| Damaged)
    }

    pub(super) fn date(&mut self) -> Result<Date, Damaged> {
        let year = i16::from_be_bytes(self.array()?);
        let (month, day) = (i8::from_be_bytes(self.array()?), i8::from_be_bytes(self.array()?));
        Date::new(year, month, day).map_err(|_| Damaged)
    }

    pub(super) fn number(&mut self) -> Result<RecordNumber, Damaged> {
        self.varint().map(RecordNumber::new)
    }

    pub(super) fn numbers(&mut self) -> Result<Vec<RecordNumber>, Damaged> {
        // The length is not trusted with an allocation: a damaged one would ask for all memory there is.
        let count = self.length()?;
        (0..count).map(|_| self.number()).collect()
    }

    pub(super) fn seq(&mut self) -> Result<Seq, Damaged> {
        Seq::new(self.varint()?).ok_or(Damaged)
    }

    pub(super) fn stream(&mut self) -> Result<Stream, Damaged> {
        let code = self.byte()?;
        Stream::ALL.into_iter().find(|stream| stream_code(*stream) == code).ok_or(Damaged)
    }

    pub(super) fn hash(&mut self) -> Result<ContentHash, Damaged> {
        self.array().map(ContentHash)
    }
}

/// The byte that stands for a stream in keys and values.
pub(super) fn stream_code(stream: Stream) -> u8 {
    match stream {
        Stream::Bibs => b'b',
        Stream::Items => b'i',
        Stream::Patrons => b'p',
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_of_any_size_and_sign_round_trip(value: u64, signed: i64) {
            let mut writer = Writer::new();
            writer.varint(value).signed(signed);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!((reader.varint(), reader.signed(), reader.end()), (Ok(value), Ok(signed), Ok(())));
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes: Vec<u8>) {
            let read: [fn(&mut Reader<'_>) -> bool; 8] = [
                |reader| reader.numbers().is_ok(),
                |reader| reader.text().is_ok(),
                |reader| reader.timestamp().is_ok(),
                |reader| reader.date().is_ok(),
                |reader| reader.seq().is_ok(),
                |reader| reader.stream().is_ok(),
                |reader| reader.signed().is_ok(),
                |reader| reader.option(Reader::number).is_ok(),
            ];
            for read in read {
                read(&mut Reader::new(&bytes));
            }
        }
    }

    #[test]
    fn what_is_cut_or_overlong_is_damaged() {
        assert_eq!(Reader::new(&[0x80]).varint(), Err(Damaged));
        assert_eq!(Reader::new(&[0xff; 10]).varint(), Err(Damaged));
        assert_eq!(Reader::new(&[5, b'a']).text(), Err(Damaged));
        assert_eq!(Reader::new(&[2]).flag(), Err(Damaged));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).numbers(), Err(Damaged));
        assert_eq!(Reader::new(&[0]).end(), Err(Damaged));
    }
}
