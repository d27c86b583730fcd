//! Sierra's own refusal: an error body that names a rate limit of one endpoint, under whatever status.
//!
//! Seen by exporters of /bibs/marc as `"name":"Rate exceeded for endpoint"` with an estimated wait in minutes in
//! the text, apparently under HTTP 500. It is neither a fault of Sierra nor one of the request: that endpoint is to
//! be left alone for the stated time (BR-044).

use std::time::Duration;

/// The words by which the refusal is known, wherever in the error body they stand.
const WORDS: &str = "rate exceeded for endpoint";
/// When the text states no readable time. Harvesters report that 15 to 16 minutes clear the limit.
const UNREADABLE: Duration = Duration::from_secs(15 * 60);
/// When the text says zero: do not come back in the same breath.
const ZERO: Duration = Duration::from_secs(5);
/// A text may not close an endpoint for longer than this.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long to leave the endpoint alone, if the error body with this `name` and `description` is Sierra's refusal.
#[must_use]
pub fn stated_wait(name: Option<&str>, description: Option<&str>) -> Option<Duration> {
    let texts = [name.unwrap_or_default(), description.unwrap_or_default()].map(str::to_ascii_lowercase);
    if !texts.iter().any(|text| text.contains(WORDS)) {
        return None;
    }
    let wait = texts.iter().rev().find_map(|text| read_wait(text));
    Some(match wait {
        None => UNREADABLE,
        Some(Duration::ZERO) => ZERO,
        Some(wait) => wait,
    })
}

/// A number with a unit wins over a bare one; a bare one counts minutes, and only if it stands alone. Of several with
/// units, the first after the word "wait", else the longest.
fn read_wait(text: &str) -> Option<Duration> {
    let separators = |character: char| !(character.is_ascii_alphanumeric() || character == '.');
    let words: Vec<&str> =
        text.split(separators).map(|word| word.trim_matches('.')).filter(|word| !word.is_empty()).collect();
    let times = |words: &[&str]| -> Vec<Duration> {
        let next = words.iter().skip(1).map(Some).chain([None]);
        words.iter().zip(next).filter_map(|(word, next)| time(word, next.copied())).collect()
    };
    let after_wait = words.iter().position(|word| word.starts_with("wait")).and_then(|at| words.get(at..));
    let bare = || {
        let mut numbers = words.iter().filter_map(|word| word.parse::<f64>().ok());
        let only = numbers.next()?;
        numbers.next().is_none().then(|| bounded(only * 60.0)).flatten()
    };
    after_wait.and_then(|words| times(words).first().copied()).or_else(|| times(&words).into_iter().max()).or_else(bare)
}

/// `12min`, or `12` before `minutes`.
fn time(word: &str, next: Option<&str>) -> Option<Duration> {
    let digits = word.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let attached = word.strip_prefix(digits).filter(|unit| !unit.is_empty());
    bounded(digits.parse::<f64>().ok()? * seconds_per(attached.or(next)?)?)
}

fn bounded(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.min(LONGEST.as_secs_f64())).ok()
}

fn seconds_per(unit: &str) -> Option<f64> {
    match unit {
        "h" | "hr" | "hrs" => Some(3600.0),
        "m" | "min" | "mins" => Some(60.0),
        "s" | "sec" | "secs" => Some(1.0),
        _ if unit.starts_with("hour") => Some(3600.0),
        _ if unit.starts_with("minute") => Some(60.0),
        _ if unit.starts_with("second") => Some(1.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-044: the minutes are read from the text; unreadable ones are fifteen, none are five seconds.
    #[test]
    fn the_stated_minutes_are_read_from_many_phrasings() {
        let name = Some("Rate exceeded for endpoint");
        let table = [
            (Some("wait 12 minutes"), 12 * 60),
            (Some("Please wait an estimated 12 minutes before trying again."), 12 * 60),
            (Some("Estimated wait (minutes): 7"), 7 * 60),
            (Some("limit of 50 calls; wait 9 min."), 9 * 60),
            (Some("wait 1.5 minutes"), 90),
            (Some("wait 10min"), 600),
            (Some("wait 45 seconds"), 45),
            (Some("50 calls per 24 hours; wait 12 minutes"), 12 * 60),
            (Some("50 calls in 5 minutes, back in 9 minutes"), 9 * 60),
            (Some("wait 12-15 minutes"), 15 * 60),
            (Some("wait 0 minutes"), 5),
            (Some("wait a while"), 15 * 60),
            (Some("50 calls, 2000 records"), 15 * 60),
            (Some("wait 99999999999999999999 minutes"), 24 * 3600),
            (None, 15 * 60),
        ];
        for (description, seconds) in table {
            assert_eq!(stated_wait(name, description), Some(Duration::from_secs(seconds)), "{description:?}");
        }
        let in_description = stated_wait(Some("Error"), Some("RATE EXCEEDED FOR ENDPOINT, wait 3 minutes"));
        assert_eq!(in_description, Some(Duration::from_secs(180)));
        assert_eq!(stated_wait(Some("Rate exceeded for endpoint: 4 minutes"), None), Some(Duration::from_secs(240)));
    }

    #[test]
    fn other_errors_are_no_refusal() {
        assert_eq!(stated_wait(Some("Internal server error"), Some("wait 12 minutes")), None);
        assert_eq!(stated_wait(None, None), None);
    }
}
