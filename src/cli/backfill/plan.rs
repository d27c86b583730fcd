//! What a backfill would take, for people and programs.

use crate::app::Backfilled;
use crate::cli::backfill::bar::whole;
use crate::cli::table::{aligned, counted, grouped, spoken_seconds};
use crate::record::Stream;

/// Ranges shown one by one, at most.
const SHOWN: usize = 20;

/// One object: `{"ranges","calls","windows","eta_seconds"}`; what is not known is null.
pub(super) fn json(planned: &Backfilled) -> String {
    let Backfilled { ranges, calls, forecast, .. } = planned;
    serde_json::json!({
        "ranges": ranges.len(),
        "calls": calls,
        "windows": forecast.windows,
        "eta_seconds": forecast.eta_seconds.map(whole),
    })
    .to_string()
}

/// The same for people, with the ranges themselves. Those of patrons are withheld.
pub(super) fn page(planned: &Backfilled, stream: Stream) -> String {
    let Backfilled { ranges, records, calls, forecast } = planned;
    let known = records.map_or_else(
        || "an unknown number of records".to_owned(),
        |records| counted(records, "record", "records") + " known",
    );
    let windows = forecast
        .windows
        .map_or_else(String::new, |windows| format!(", {}", counted(windows, "quota window", "quota windows")));
    let eta = match forecast.eta_seconds {
        Some(seconds) => format!("about {}", spoken_seconds(whole(seconds))),
        None => "a time that cannot be told before the quota window's length is known".to_owned(),
    };
    let mut lines = vec![format!(
        "{} in {}: at least {}{windows}, {eta}. Nothing was sent.",
        known,
        counted(ranges.len() as u64, "range", "ranges"),
        counted(*calls, "call", "calls"),
    )];
    if stream == Stream::Patrons {
        return lines.concat();
    }
    let mut rows = vec![["from", "to", "records", "calls"].map(str::to_owned).to_vec()];
    rows.extend(ranges.iter().take(SHOWN).map(|range| {
        let to = range.to.map_or_else(|| "end".to_owned(), |to| to.to_string());
        vec![range.from.to_string(), to, grouped(range.records), grouped(range.calls)]
    }));
    lines.push(aligned(&rows));
    if ranges.len() > SHOWN {
        lines.push(format!("  and {} more", grouped((ranges.len() - SHOWN) as u64)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Forecast;
    use crate::record::RecordNumber;
    use crate::sync::backfill::Cut;

    fn planned(windows: Option<u64>, eta_seconds: Option<f64>) -> Backfilled {
        let cut = |from: u64, to: Option<u64>| Cut {
            from: RecordNumber::new(from),
            to: to.map(RecordNumber::new),
            known: None,
            records: 50_000,
            calls: 26,
        };
        let ranges = vec![cut(1, Some(1_060_000)), cut(1_060_001, None)];
        Backfilled { ranges, records: Some(100_000), calls: 52, forecast: Forecast { windows, eta_seconds } }
    }

    #[test]
    fn programs_get_one_object() {
        assert_eq!(json(&planned(None, Some(104.4))), r#"{"calls":52,"eta_seconds":104,"ranges":2,"windows":null}"#);
        assert_eq!(json(&planned(Some(3), None)), r#"{"calls":52,"eta_seconds":null,"ranges":2,"windows":3}"#);
    }

    #[test]
    fn people_get_the_ranges_but_not_those_of_patrons() {
        insta::assert_snapshot!(page(&planned(Some(1), Some(104.4)), Stream::Bibs));
        let withheld = page(&planned(None, None), Stream::Patrons);
        assert!(!withheld.contains("1060000") && withheld.contains("52 calls"), "{withheld}");
    }
}
