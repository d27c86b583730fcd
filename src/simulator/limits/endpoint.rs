//! Sierra's own throttle: so many calls of one endpoint, then none until the window is over.
//!
//! Measured from one site's export of 2019 (`sierra-api.md` §6): about 50 exports in 15 minutes, then locked.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::super::api::{Endpoint, Refusal};

/// A limit on one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointLimit {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Calls that are answered in a window.
    pub calls: u32,
    /// The window, in whole seconds; it begins with the first call in it.
    pub seconds: u32,
    /// The status of the refusal: 500 as observed, perhaps 429 or 503.
    pub status: u16,
}

impl EndpointLimit {
    /// The measured limit on exports of MARC.
    #[must_use]
    pub fn marc_export() -> Self {
        Self { endpoint: Endpoint::MarcExport, calls: 50, seconds: 15 * 60, status: 500 }
    }
}

/// A limit and its window.
#[derive(Debug)]
pub(crate) struct Throttle {
    limit: EndpointLimit,
    window: Option<(Timestamp, u32)>,
}

impl Throttle {
    pub(crate) fn new(limit: EndpointLimit) -> Self {
        Self { limit, window: None }
    }

    /// Counts a call and refuses it when the window is full; the text says how many minutes are left.
    pub(crate) fn take(&mut self, endpoint: Endpoint, now: Timestamp) -> Result<(), Refusal> {
        if endpoint != self.limit.endpoint {
            return Ok(());
        }
        let length = SignedDuration::from_secs(i64::from(self.limit.seconds));
        let age =
            self.window.map(|(start, _)| now.duration_since(start)).filter(|age| !age.is_negative() && *age < length);
        let (Some(age), Some((_, calls))) = (age, self.window.as_mut()) else {
            self.window = Some((now, 1));
            return Ok(());
        };
        if *calls < self.limit.calls {
            *calls += 1;
            return Ok(());
        }
        let left = Duration::try_from(length - age).unwrap_or(Duration::ZERO);
        let minutes = left.as_secs().div_ceil(60);
        Err(Refusal::rate_exceeded(self.limit.status, &minutes.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-044: the pause that the text asks for is long enough.
    #[test]
    fn a_full_window_refuses_and_names_the_minutes_left() {
        let mut throttle = Throttle::new(EndpointLimit { calls: 2, ..EndpointLimit::marc_export() });
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        assert!(throttle.take(Endpoint::MarcExport, at(0)).is_ok());
        assert!(throttle.take(Endpoint::MarcExport, at(10)).is_ok());
        let refusal = throttle.take(Endpoint::MarcExport, at(200)).unwrap_err();
        assert_eq!((refusal.status, refusal.name.as_str()), (500, "Rate exceeded for endpoint"));
        assert!(refusal.description.unwrap().contains("wait 12 minutes"));
        assert!(throttle.take(Endpoint::Bibs, at(200)).is_ok());
        assert!(throttle.take(Endpoint::MarcExport, at(200 + 12 * 60)).is_ok());
    }
}
