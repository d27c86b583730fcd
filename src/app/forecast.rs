//! How long so many calls take, as far as it can be told.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::resilience::settings::QuotaSettings;
use crate::sierra::SierraClient;

/// What a call takes when none was timed yet: Sierra needs two to three seconds for a page of 2,000 (sierra-api.md §6).
pub(super) const SECONDS_PER_CALL: f64 = 2.0;

/// What so many calls take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Quota windows; `None` while the server has not said what it grants.
    pub windows: Option<u64>,
    /// Seconds; `None` when more than one window is needed and their length is not known.
    pub eta_seconds: Option<f64>,
}

/// The forecast for `calls`, by what `client` knows of its quota.
pub(super) fn of(client: &SierraClient, settings: &QuotaSettings, calls: u64, seconds_per_call: f64) -> Forecast {
    let quota = client.line().quota().map(|quota| quota.snapshot(Timestamp::UNIX_EPOCH));
    let (limit, window) = quota.map_or((None, None), |quota| (quota.limit, quota.window));
    forecast(calls, limit, window, settings, seconds_per_call)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
fn forecast(
    calls: u64,
    limit: Option<u32>,
    window: Option<Duration>,
    settings: &QuotaSettings,
    seconds_per_call: f64,
) -> Forecast {
    let own_pace = calls as f64 * seconds_per_call.max(1.0 / settings.rate);
    let Some(limit) = limit else { return Forecast { windows: None, eta_seconds: Some(own_pace) } };
    let grant = settings.grant(limit);
    let windows = calls.div_ceil(u64::from(grant));
    let eta_seconds = match window {
        // Paced calls are spread over the window rather than made at its beginning.
        Some(window) => Some((calls as f64 / f64::from(grant) * window.as_secs_f64()).max(own_pace)),
        None if windows <= 1 => Some(own_pace),
        None => None,
    };
    Forecast { windows: Some(windows), eta_seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_decides_where_it_is_known_and_our_own_pace_where_not() {
        let settings = QuotaSettings::default();
        let of = |limit: Option<u32>, window: Option<u64>| {
            let Forecast { windows, eta_seconds } =
                forecast(1790, limit, window.map(Duration::from_secs), &settings, 2.0);
            (windows, eta_seconds)
        };
        assert_eq!(of(None, None), (None, Some(3580.0)));
        // 1000 calls granted: 895 of them are ours.
        assert_eq!(of(Some(1000), Some(3600)), (Some(2), Some(7200.0)));
        assert_eq!(of(Some(1000), None), (Some(2), None));
        assert_eq!(of(Some(10_000), None), (Some(1), Some(3580.0)));
        assert_eq!(of(Some(10_000), Some(60)), (Some(1), Some(3580.0)));
        let slow = QuotaSettings { rate: 0.1, ..settings };
        assert_eq!(forecast(10, None, None, &slow, 2.0).eta_seconds, Some(100.0));
    }
}
