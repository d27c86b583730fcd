//! Reading a stream of ISO 2709 records.

use std::io::{self, Read};

use super::parse::{number, parse};
use super::{ENTRY_BYTES, FIELD_TERMINATOR, LEADER_BYTES, MAX_RECORD_BYTES, RECORD_TERMINATOR};
use crate::marc::loss::{Loss, Losses};
use crate::marc::model::Record;
use crate::marc::read::{Damage, ReadError, ReadRecord};
use crate::marc::settings::OnIllegal;

/// Reads ISO 2709 records one after another. A damaged one is reported and costs none of its neighbours: reading goes
/// on after the next record terminator or at the next thing that looks like a leader, whichever comes first.
///
/// Line ends, blanks, NUL and Ctrl-Z between records are passed over, and so is a byte order mark at the very start.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// What has been read ahead; a record never needs more than [`WINDOW_BYTES`].
    window: Box<[u8]>,
    /// The part of the window not yet used.
    start: usize,
    end: usize,
    /// Of `start`, in the input.
    offset: u64,
    ordinal: u64,
    is_exhausted: bool,
    has_failed: bool,
    policy: OnIllegal,
    losses: Vec<Loss>,
}

/// What may stand between records.
const GAP: &[u8] = b" \r\n\t\0\x1a";

/// Room for two records of the greatest possible length, so that one always lies in the window as a whole.
const WINDOW_BYTES: usize = 256 << 10;

impl<R: Read> Reader<R> {
    /// Reads from `input`, which needs no buffering of its own.
    pub fn new(input: R, policy: OnIllegal) -> Self {
        Self {
            input,
            window: vec![0; WINDOW_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            ordinal: 0,
            is_exhausted: false,
            has_failed: false,
            policy,
            losses: Vec::new(),
        }
    }

    fn unused(&self) -> &[u8] {
        self.window.get(self.start..self.end).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads until `wanted` bytes are there or the input ends; `wanted` is at most [`WINDOW_BYTES`].
    fn fill(&mut self, wanted: usize) -> Result<(), ReadError> {
        while self.end - self.start < wanted && !self.is_exhausted {
            if self.window.len() - self.start < wanted.max(self.end - self.start + 1) {
                self.window.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            match self.input.read(self.window.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => self.is_exhausted = true,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    self.has_failed = true;
                    return Err(ReadError::Io { offset: self.offset, source });
                }
            }
        }
        Ok(())
    }

    /// Passes over what may stand between records; `false` at the end of the input.
    fn skip_gap(&mut self) -> Result<bool, ReadError> {
        loop {
            self.fill(1)?;
            let unused = self.unused();
            if unused.is_empty() {
                return Ok(false);
            }
            let gap = unused.iter().position(|byte| !GAP.contains(byte));
            let bytes = gap.unwrap_or(unused.len());
            self.advance(bytes);
            if gap.is_some() {
                return Ok(true);
            }
        }
    }

    /// A file that is something else altogether is said to be that, instead of one damaged record (BR-046). Judged by
    /// what comes after a byte order mark and blanks, however slowly it comes.
    fn refuse_other_forms(&mut self) -> Result<(), ReadError> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        const ERROR_TEXT: &[u8] = b"ErrorCode(";
        self.fill(MARK.len())?;
        if self.unused().starts_with(MARK) {
            self.advance(MARK.len());
        }
        self.skip_gap()?;
        self.fill(ERROR_TEXT.len())?;
        let found = match self.unused() {
            [b'{' | b'[', ..] => "JSON",
            [b'<', ..] => "XML or HTML",
            [] => "empty",
            unused if unused.starts_with(ERROR_TEXT) => "an error answer of Sierra",
            _ => return Ok(()),
        };
        self.has_failed = true;
        Err(ReadError::Unreadable { offset: 0, reason: format!("this is {found}, not ISO 2709") })
    }

    fn extent(&mut self) -> Result<Result<usize, Damage>, ReadError> {
        self.fill(LEADER_BYTES)?;
        let Some(bytes) = self.unused().get(..5).and_then(number) else {
            return Ok(Err(if self.unused().len() < 5 { Damage::Truncated } else { Damage::NoLength }));
        };
        if bytes <= LEADER_BYTES {
            return Ok(Err(Damage::Length { bytes }));
        }
        self.fill(bytes)?;
        Ok(match self.unused().get(..bytes) {
            Some(record @ [.., RECORD_TERMINATOR]) if swallows_another(record) => Err(Damage::Swallows { bytes }),
            Some([.., RECORD_TERMINATOR]) => Ok(bytes),
            Some(_) => Err(Damage::Length { bytes }),
            None => Err(Damage::Truncated),
        })
    }

    /// Passes over a damaged record.
    fn resynchronise(&mut self) -> Result<(), ReadError> {
        self.advance(1.min(self.unused().len()));
        loop {
            // Whether a record begins at some place shows at its end, which may be as far away as this.
            self.fill(2 * MAX_RECORD_BYTES)?;
            let unused = self.unused();
            if unused.is_empty() {
                return Ok(());
            }
            let terminator = memchr::memchr(RECORD_TERMINATOR, unused).map(|position| position + 1);
            let searched = unused.get(..terminator.unwrap_or(unused.len())).unwrap_or_default();
            let begins = |position: &usize| {
                searched.get(*position..).is_some_and(|rest| looks_like_a_leader(rest) || is_whole_record(rest))
            };
            let leader = (0..searched.len().saturating_sub(LEADER_BYTES - 1)).find(begins);
            if let Some(bytes) = leader.or(terminator) {
                self.advance(bytes);
                return Ok(());
            }
            // A record may begin in the last bytes of what is here.
            let passed = if self.is_exhausted { unused.len() } else { unused.len().saturating_sub(MAX_RECORD_BYTES) };
            self.advance(passed);
        }
    }
}

/// Whether after a record terminator inside of `record` another record begins.
fn swallows_another(record: &[u8]) -> bool {
    let mut rest = record;
    while let Some(position) = memchr::memchr(RECORD_TERMINATOR, rest) {
        rest = rest.get(position + 1..).unwrap_or_default();
        let after = rest.iter().position(|byte| !GAP.contains(byte)).and_then(|blanks| rest.get(blanks..));
        let end = after.and_then(|after| memchr::memchr(RECORD_TERMINATOR, after).map(|end| (after, end + 1)));
        let next = end.and_then(|(after, end)| after.get(..end)).unwrap_or_default();
        if looks_like_a_leader(next) || is_whole_record(next) {
            return true;
        }
    }
    false
}

/// Whether `bytes`, which end with the next record terminator, are one record whatever its leader says besides: a length
/// that leads to the terminator, and a base address that leads to the end of a directory.
fn is_whole_record(bytes: &[u8]) -> bool {
    let length = bytes.get(..5).and_then(number);
    let base = bytes.get(12..17).and_then(number);
    length == Some(bytes.len())
        && bytes.last() == Some(&RECORD_TERMINATOR)
        && base.is_some_and(|base| {
            base > LEADER_BYTES
                && (base - LEADER_BYTES - 1).is_multiple_of(ENTRY_BYTES)
                && bytes.get(base - 1) == Some(&FIELD_TERMINATOR)
        })
}

/// Five digits, `22`, five digits, `4500` where a leader has them. Text does not look like that.
fn looks_like_a_leader(bytes: &[u8]) -> bool {
    let is_number = |bytes: Option<&[u8]>| bytes.is_some_and(|bytes| number(bytes).is_some());
    bytes.get(20..24) == Some(b"4500")
        && bytes.get(10..12) == Some(b"22")
        && is_number(bytes.get(..5))
        && is_number(bytes.get(12..17))
}

impl<R: Read> ReadRecord for Reader<R> {
    fn read_into(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        if self.has_failed {
            return Ok(false);
        }
        if self.ordinal == 0 {
            self.refuse_other_forms()?;
        }
        if !self.skip_gap()? {
            return Ok(false);
        }
        self.ordinal += 1;
        let (ordinal, offset) = (self.ordinal, self.offset);
        let damaged = |damage| ReadError::Damaged { ordinal, offset, damage };
        let bytes = match self.extent()? {
            Ok(bytes) => bytes,
            Err(damage) => {
                self.resynchronise()?;
                return Err(damaged(damage));
            }
        };
        let mut losses = Losses::default();
        let parsed = parse(self.unused().get(..bytes).unwrap_or_default(), record, self.policy, &mut losses);
        self.advance(bytes);
        self.losses = losses.into_vec();
        parsed.map(|()| true).map_err(damaged)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marc::iso2709::write_record;
    use crate::marc::{Leader, Tag};

    fn record(number: &str) -> Vec<u8> {
        let mut record = Record::new(Leader::default());
        record.push_control(Tag::CONTROL_NUMBER, number).expect("valid");
        let mut bytes = Vec::new();
        write_record(&mut bytes, &record).expect("fits");
        bytes
    }

    /// Gives its bytes in small and uneven pieces, as pipes do.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 % 7 + 1;
            let bytes = self.1.min(self.0.len()).min(target.len());
            let (now, later) = self.0.split_at(bytes);
            target[..bytes].copy_from_slice(now);
            self.0 = later;
            Ok(bytes)
        }
    }

    /// Control numbers and errors in order.
    fn read(bytes: &[u8]) -> Vec<String> {
        let whole = describe(Reader::new(bytes, OnIllegal::Drop));
        assert_eq!(whole, describe(Reader::new(Dribble(bytes, 0), OnIllegal::Drop)), "pieces make no difference");
        whole
    }

    fn describe<R: Read>(reader: Reader<R>) -> Vec<String> {
        let number = |record: Record| record.control(Tag::CONTROL_NUMBER).unwrap_or("none").to_owned();
        reader.records().map(|record| record.map_or_else(|error| error.to_string(), number)).collect()
    }

    #[test]
    fn records_are_read_whatever_stands_between_them() {
        let bytes =
            [record("1"), b"\r\n".to_vec(), record("2"), b" \n\0".to_vec(), record("3"), b"\n\x1a".to_vec()].concat();
        assert_eq!(read(&bytes), ["1", "2", "3"]);
        assert_eq!(read(&record("1")), ["1"]);
    }

    #[test]
    fn a_damaged_record_costs_none_of_its_neighbours() {
        let after = "does not lead to a record terminator";
        let mut too_long = record("2");
        too_long[..5].copy_from_slice(b"00060");
        let mut too_short = record("2");
        too_short[..5].copy_from_slice(b"00030");
        let mut tiny = record("2");
        tiny[..5].copy_from_slice(b"00003");
        let mut nonsense = record("2");
        nonsense[..5].copy_from_slice(b"xxxxx");
        let mut directory = record("2");
        directory[30] = b'x';
        for (damaged, message) in [
            (too_long, after),
            (too_short, after),
            (tiny, after),
            (nonsense, "no record length at its start"),
            (directory, "a length or a start is not a number"),
            (b"<html>".to_vec(), "no record length at its start"),
            (b"00070 and then nothing".to_vec(), after),
            // Cut off in the middle: the next record begins where nobody expects it.
            (record("2")[..33].to_vec(), after),
        ] {
            let bytes = [record("1"), damaged.clone(), record("3"), record("4")].concat();
            let read = read(&bytes);
            let shown = String::from_utf8_lossy(&damaged).into_owned();
            assert_eq!(
                (read.len(), read[0].as_str(), &read[2..]),
                (4, "1", &["3".to_owned(), "4".to_owned()][..]),
                "{shown}: {read:?}"
            );
            assert!(read[1].starts_with("record 2 at byte 40: ") && read[1].contains(message), "{shown}: {read:?}");
        }
    }

    /// A length that is wrong and yet leads to a terminator: that of a later record.
    #[test]
    fn a_length_that_reaches_into_the_next_record_costs_none_of_its_neighbours() {
        let mut greedy = record("2");
        greedy[..5].copy_from_slice(b"00080");
        let mut very = record("2");
        very[..5].copy_from_slice(b"00122");
        let odd = [b"00040nam a4".to_vec(), record("3")[11..].to_vec()].concat();
        for (bytes, length) in [
            ([record("1"), greedy.clone(), record("3"), record("4")].concat(), 80),
            ([record("1"), greedy, odd, record("4")].concat(), 80),
            ([record("1"), very, b"\r\n".to_vec(), record("3"), record("4")].concat(), 122),
        ] {
            let told = format!("record 2 at byte 40: its length of {length} bytes reaches into the next record");
            assert_eq!(read(&bytes), ["1", &told, "3", "4"]);
        }
    }

    #[test]
    fn a_neighbour_with_an_odd_leader_is_found_after_a_record_that_is_cut_off() {
        let odd = |place: usize, text: &str| {
            let mut bytes = record("3");
            bytes[place..place + text.len()].copy_from_slice(text.as_bytes());
            bytes
        };
        for neighbour in [odd(20, "450 "), odd(10, "4"), odd(9, "xx"), odd(20, "    ")] {
            for before in [30, 33, 39] {
                let bytes = [record("1"), record("2")[..before].to_vec(), neighbour.clone(), record("4")].concat();
                let read = read(&bytes);
                assert_eq!((read.len(), &read[2..]), (4, &["3".to_owned(), "4".to_owned()][..]), "{read:?}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_and_blanks_before_the_first_record_are_passed_over() {
        assert_eq!(read(&[b"\xEF\xBB\xBF".to_vec(), record("1"), record("2")].concat()), ["1", "2"]);
        assert_eq!(read(&[b"\n".repeat(40), record("1")].concat()), ["1"], "blanks that come alone are not all");
        assert_eq!(read(b"\xEF\xBB\xBF<a/>"), ["cannot read on at byte 0: this is XML or HTML, not ISO 2709"]);
        assert_eq!(read(&b"\n".repeat(40)), ["cannot read on at byte 0: this is empty, not ISO 2709"]);
    }

    #[test]
    fn an_input_that_ends_early_is_a_damaged_record() {
        for cut in 1..40 {
            let bytes = [record("1"), record("2")[..cut].to_vec()].concat();
            let read = read(&bytes);
            assert_eq!((read.len(), read[0].as_str()), (2, "1"), "cut at {cut}: {read:?}");
            assert!(read[1].ends_with("the input ends inside this record"), "{read:?}");
        }
    }

    #[test]
    fn megabytes_of_nonsense_are_one_damaged_record() {
        let bytes = [record("1"), vec![b'z'; 3 << 20], record("2")].concat();
        let read = read(&bytes);
        assert_eq!((read.len(), read[0].as_str(), read[2].as_str()), (3, "1", "2"), "{:?}", &read[1..2]);
    }

    #[test]
    fn a_leader_is_found_wherever_the_window_ends() {
        for before in WINDOW_BYTES - 80..WINDOW_BYTES - 30 {
            let bytes = [record("1"), vec![b'z'; before], record("2")].concat();
            let read = describe(Reader::new(&bytes[..], OnIllegal::Drop));
            assert_eq!((read.len(), read[0].as_str(), read[2].as_str()), (3, "1", "2"), "{before}");
        }
    }

    #[test]
    fn offsets_count_from_the_start_of_the_input() {
        let many = record("1").repeat(20_000);
        assert!(many.len() > 3 * WINDOW_BYTES);
        let read = describe(Reader::new(&[many, b"xxxxx".to_vec()].concat()[..], OnIllegal::Drop));
        assert_eq!(read[20_000], "record 20001 at byte 800000: no record length at its start");
    }

    /// BR-046: what was saved instead of MARC.
    #[test]
    fn other_forms_are_named_and_nothing_at_all_is_an_error() {
        for (bytes, found) in [
            (&b"{\"code\":107}"[..], "JSON"),
            (b" \n<html>", "XML or HTML"),
            (b"ErrorCode(100)", "an error answer of Sierra"),
            (b"", "empty"),
        ] {
            assert_eq!(read(bytes), [format!("cannot read on at byte 0: this is {found}, not ISO 2709")]);
        }
    }

    #[test]
    fn a_failing_input_is_told_once_and_ends_the_reading() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk on fire"))
            }
        }
        let bytes = record("1");
        let read = describe(Reader::new(bytes.chain(Failing), OnIllegal::Drop));
        assert_eq!(read, ["1", "cannot read on at byte 40: disk on fire"]);
    }

    #[test]
    fn the_largest_records_cross_the_window_unharmed() {
        let mut record = Record::new(Leader::default());
        for _ in 0..11 {
            record.push_control(Tag::new("009").expect("a tag"), &"x".repeat(9_050)).expect("valid");
        }
        let mut bytes = Vec::new();
        for _ in 0..9 {
            write_record(&mut bytes, &record).expect("fits");
        }
        assert!(bytes.len() > 3 * WINDOW_BYTES);
        let read: Vec<Record> =
            Reader::new(&bytes[..], OnIllegal::Drop).records().map(|read| read.expect("sound")).collect();
        assert_eq!(read, vec![record; 9]);
    }
}
