//! Location codes that count, as `locations` in the configuration names them.

/// A set of location codes; each may end in one `*`, which stands for anything. An empty set holds every record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locations {
    codes: Vec<Code>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Code {
    Exactly(String),
    StartingWith(String),
}

impl Locations {
    /// Reads the configured codes. Blanks around them do not count, as Sierra pads its codes.
    #[must_use]
    pub fn new(codes: &[String]) -> Self {
        let code = |text: &String| match text.trim().strip_suffix('*') {
            Some(start) => Code::StartingWith(start.to_owned()),
            None => Code::Exactly(text.trim().to_owned()),
        };
        Self { codes: codes.iter().map(code).collect() }
    }

    /// Whether a record with these location codes is in the set: one of them is enough. A record without any is in no
    /// set but the empty one, which holds everything.
    pub fn hold<'a>(&self, mut of_record: impl Iterator<Item = &'a str>) -> bool {
        self.codes.is_empty() || of_record.any(|code| self.codes.iter().any(|wanted| wanted.is(code.trim())))
    }
}

impl Code {
    fn is(&self, code: &str) -> bool {
        match self {
            Self::Exactly(wanted) => code == wanted,
            Self::StartingWith(start) => code.starts_with(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(wanted: &[&str], of_record: &[&str]) -> bool {
        let wanted: Vec<String> = wanted.iter().map(|code| (*code).to_owned()).collect();
        Locations::new(&wanted).hold(of_record.iter().copied())
    }

    #[test]
    fn one_location_of_many_is_enough() {
        assert!(holds(&["main"], &["law", "main"]));
        assert!(holds(&["main", "law  "], &["law"]));
        assert!(!holds(&["main"], &["law", "mainx"]));
    }

    #[test]
    fn a_trailing_star_stands_for_anything() {
        assert!(holds(&["main*"], &["mainx"]) && holds(&["main*"], &["main"]) && holds(&["*"], &["x"]));
        assert!(!holds(&["main*"], &["mai"]));
    }

    #[test]
    fn nothing_configured_holds_everything_and_nothing_recorded_is_in_no_set() {
        assert!(holds(&[], &[]) && holds(&[], &["law"]));
        assert!(!holds(&["*"], &[]));
    }
}
