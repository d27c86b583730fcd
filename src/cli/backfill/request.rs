//! From the command line to an order: every spelling, every problem at once.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{BackfillArgs, ViaName};
use crate::cli::exit::Refused;
use crate::config::Config;
use crate::record::{Stream, spelled};
use crate::sync::backfill::{BackfillOrder, Numbers, Selection};

/// Wrong lines of a file that are told one by one.
const TOLD: usize = 1000;

/// The order that `args` ask for.
///
/// # Errors
/// [`Refused`] with everything that is wrong, a file of numbers that cannot be read among it.
pub(super) fn order(args: &BackfillArgs, config: &Config) -> anyhow::Result<BackfillOrder> {
    let stream = Stream::from(args.stream);
    let mut problems = Vec::new();
    let mut keep = |problem: String| problems.push(problem);
    let numbers = match (&args.ids, &args.ids_file) {
        (Some(text), _) => range(text, stream).map_err(&mut keep).ok(),
        (None, Some(path)) => {
            let read = fs::read(path).map_err(|error| format!("--ids-file {} cannot be read: {error}", path.display()));
            read.and_then(|text| list(&String::from_utf8_lossy(&text), path, stream)).map_err(&mut keep).ok()
        }
        (None, None) => Some(Numbers::All),
    };
    let zone = &config.sierra.local_zone;
    let mut time = |option: &str, text: &Option<String>| {
        text.as_ref().and_then(|text| moment(text, zone).map_err(|why| keep(format!("{option} {why}"))).ok())
    };
    let (since, until) = (time("--since", &args.since), time("--until", &args.until));
    if let (Some(since), Some(until)) = (since, until)
        && since >= until
    {
        problems.push(format!("--since {since} is not before --until {until}: nothing lies between them"));
    }
    let locations: Vec<String> = args.locations.iter().map(|code| code.trim().to_owned()).collect();
    if stream == Stream::Patrons && !locations.is_empty() {
        problems.push("--location: patrons have no location".to_owned());
    }
    problems.extend(locations.iter().filter(|code| !is_location(code)).map(|code| {
        format!("--location {code:?}: write a code such as main, or its beginning and one asterisk such as ma*")
    }));
    if args.via == ViaName::MarcExport {
        let refuse = |option: &str| format!("--via marc-export exports ranges of bibs, so {option}");
        if stream != Stream::Bibs {
            problems.push(refuse(&format!("{stream} cannot be read that way")));
        }
        if matches!(numbers, Some(Numbers::List(_))) {
            problems.push(refuse("give --ids A..B, not single numbers"));
        }
        if args.since.is_some() || args.until.is_some() {
            problems.push(refuse("--since and --until cannot be given with it"));
        }
    }
    match numbers {
        Some(numbers) if problems.is_empty() => Ok(BackfillOrder {
            stream,
            selection: Selection { numbers, since, until, locations },
            via: args.via.into(),
            sink: args.sink.clone(),
            force: args.force,
            wait_for_quota: args.wait,
            meaning: None,
        }),
        _ => Err(Refused(problems.join("\n")).into()),
    }
}

/// `A..B`, `A..`, `..B` or `A`.
fn range(text: &str, stream: Stream) -> Result<Numbers, String> {
    let number = |text: &str| {
        spelled(text, stream).map_err(|error| match stream {
            Stream::Patrons => format!("--ids: one of the numbers {error}"),
            Stream::Bibs | Stream::Items => format!("--ids: {text:?} {error}"),
        })
    };
    let Some((from, to)) = text.split_once("..") else {
        return Ok(Numbers::List([number(text)?].into()));
    };
    let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
    match (end(from)?, end(to)?) {
        (None, None) => Err("--ids: give at least one end, such as 1000000..1099999".to_owned()),
        (Some(from), Some(to)) if from > to => Err("--ids: the first number lies behind the last one".to_owned()),
        (from, to) => Ok(Numbers::Range { from, to }),
    }
}

/// One number a line. Every wrong line is told.
fn list(text: &str, path: &Path, stream: Stream) -> Result<Numbers, String> {
    let (mut numbers, mut wrong) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match spelled(line, stream) {
            Ok(number) => numbers.push(number),
            Err(error) => {
                let said = if stream == Stream::Patrons { String::new() } else { format!("{line:?} ") };
                wrong.push(format!("{}:{}: {said}{error}", path.display(), index + 1));
            }
        }
    }
    if !wrong.is_empty() {
        let more = wrong.len().saturating_sub(TOLD);
        wrong.truncate(TOLD);
        if more > 0 {
            wrong.push(format!("{}: {more} more lines are wrong", path.display()));
        }
        return Err(wrong.join("\n"));
    }
    if numbers.is_empty() {
        return Err(format!("{}: there is no record number in it", path.display()));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Numbers::List(numbers.into()))
}

/// RFC 3339, or a day in the library's zone: its first moment.
pub(in crate::cli) fn moment(text: &str, zone: &TimeZone) -> Result<Timestamp, String> {
    if let Ok(at) = text.trim().parse::<Timestamp>() {
        return Ok(at);
    }
    let day = text.trim().parse::<Date>().ok().filter(|_| text.trim().len() == 10);
    day.and_then(|day| zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).compatible().ok()).ok_or_else(|| {
        format!("{text:?}: write a time with its zone such as 2024-03-09T02:14:07Z, or a day such as 2024-03-09")
    })
}

/// A code, with one asterisk at its end at most.
fn is_location(code: &str) -> bool {
    let stem = code.strip_suffix('*').unwrap_or(code);
    !code.is_empty() && !stem.contains('*') && !stem.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordNumber;

    fn numbers(list: &[u64]) -> Numbers {
        Numbers::List(list.iter().copied().map(RecordNumber::new).collect())
    }

    fn ends(from: Option<u64>, to: Option<u64>) -> Numbers {
        Numbers::Range { from: from.map(RecordNumber::new), to: to.map(RecordNumber::new) }
    }

    #[test]
    fn ranges_are_open_or_closed_in_any_spelling() {
        let read = |text: &str| range(text, Stream::Bibs);
        assert_eq!(read("1024364..b10243732"), Ok(ends(Some(1_024_364), Some(1_024_373))));
        assert_eq!(read("1024364.."), Ok(ends(Some(1_024_364), None)));
        assert_eq!(read("..1024364"), Ok(ends(None, Some(1_024_364))));
        assert_eq!(read(".b10243641"), Ok(numbers(&[1_024_364])));
        assert_eq!(read("7..7"), Ok(ends(Some(7), Some(7))));
        for wrong in ["..", "9..7", "x..7", "7...9", "b10243642..", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_wrong_line_of_a_file_is_told_with_its_number() {
        let path = Path::new("ids.txt");
        let read = |text: &str, stream| list(text, path, stream);
        let good = "\u{feff}# from the shelf list\r\n1024364\r\n\r\nb1024365\n\".b10243641\",\n";
        assert_eq!(read(good, Stream::Bibs), Ok(numbers(&[1_024_364, 1_024_365])));
        let wrong = read("1024364\nb10243642\ni1024364\nsoup\n", Stream::Bibs).expect_err("three lines");
        let lines: Vec<&str> = wrong.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("ids.txt:2: \"b10243642\" has a wrong check digit: expected 1"), "{wrong}");
        assert!(lines[1].starts_with("ids.txt:3: \"i1024364\" is a record of another kind"), "{wrong}");
        assert!(lines[2].starts_with("ids.txt:4: \"soup\" is not a record number"), "{wrong}");
        let private = read("p10243642\nsoup 1234567\n", Stream::Patrons).expect_err("two lines");
        assert!(!private.contains("1024364") && !private.contains("soup 1"), "{private}");
        assert!(read("# nothing\n", Stream::Bibs).is_err());
    }

    /// sierra-api.md §7 item 17, and what people copy from screens, spreadsheets and address bars.
    #[test]
    fn a_file_may_hold_every_spelling_of_a_number() {
        let path = Path::new("ids.txt");
        // Check digits 1 and x; seven places and eight.
        for (number, digit) in [(1_024_364_u64, '1'), (1_024_377, 'x'), (10_243_641, '1')] {
            assert_eq!(RecordNumber::new(number).check_digit(), digit, "{number}");
            let mut spellings = vec![
                format!("{number}"),
                format!("  {number}\t"),
                format!("b{number}{digit}"),
                format!("B{number}{digit}").to_uppercase(),
                format!(".b{number}{digit}"),
                format!("b{number}a"),
                format!(".b{number}a"),
                format!("\"{number}\","),
                format!("\".b{number}{digit}\";"),
                format!("https://catalog.example.edu/iii/sierra-api/v6/bibs/{number}"),
                format!("https://catalog.example.edu/iii/sierra-api/v5/bibs/{number}?fields=id"),
                format!("https://catalog.example.edu/record=b{number}{digit}~S1"),
            ];
            if number < 10_000_000 {
                spellings.push(format!("b{number}"));
                spellings.push(format!("https://catalog.example.edu/record=b{number}"));
            }
            for end in ["\n", "\r\n"] {
                for spelling in &spellings {
                    let text = format!("\u{feff}# list{end}{end}{spelling}{end}");
                    assert_eq!(list(&text, path, Stream::Bibs), Ok(numbers(&[number])), "{text:?}");
                }
                let all = spellings.join(end);
                assert_eq!(list(&all, path, Stream::Bibs), Ok(numbers(&[number])), "all of them, each once");
            }
            // Every other check digit, and the number of another library, are refused with their line.
            for wrong in "0123456789x".chars().filter(|other| *other != digit) {
                for text in [format!("b{number}{wrong}"), format!(".b{number}{wrong}")] {
                    let refused = list(&format!("{number}\r\n\r\n{text}\r\n"), path, Stream::Bibs);
                    let told = format!("ids.txt:3: {text:?} has a wrong check digit: expected {digit}");
                    assert!(refused.as_ref().is_err_and(|why| why.starts_with(&told)), "{refused:?}");
                }
            }
            let foreign = list(&format!("b{number}@other\n"), path, Stream::Bibs);
            assert!(foreign.as_ref().is_err_and(|why| why.starts_with("ids.txt:1: ")), "{foreign:?}");
        }
    }

    #[test]
    fn times_are_moments_or_local_days() {
        let zone = TimeZone::get("America/New_York").expect("in the database");
        let read = |text: &str| moment(text, &zone).map(|at| at.to_string());
        assert_eq!(read("2024-03-09").as_deref(), Ok("2024-03-09T05:00:00Z"));
        assert_eq!(read("2024-07-09").as_deref(), Ok("2024-07-09T04:00:00Z"));
        assert_eq!(read("2024-03-09T02:14:07+01:00").as_deref(), Ok("2024-03-09T01:14:07Z"));
        for wrong in ["2024-3-9", "yesterday", "2024-03-09T02:14:07", "2024-13-01", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn locations_take_one_asterisk_at_the_end() {
        assert!(["main", "main*", "*"].into_iter().all(is_location));
        assert!(!["", "ma in", "*n", "ma**"].into_iter().any(is_location));
    }
}
