//! Why capture may have to wait: the only thing that deliveries can do to it.

/// Why there is no room for more changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Held {
    /// The outbox is full and the sink furthest behind chose to hold.
    #[error(
        "the queue in {place} is full ({} of state.outbox_max_size, {}): {} must catch up first",
        size(*.bytes), size(*.max_bytes), .sinks.join(", ")
    )]
    OutboxFull {
        /// The state directory.
        place: String,
        /// What waits.
        bytes: u64,
        /// What may wait.
        max_bytes: u64,
        /// The sinks that are waited for.
        sinks: Vec<String>,
        /// What lets them catch up.
        remedy: String,
    },
    /// The disk is nearly full (BR-078): no quota is spent on what could not be kept.
    #[error("only {} are free on the disk of {place}, and state.min_free asks for {}", size(*.free_bytes), size(*.min_bytes))]
    DiskLow {
        /// The state directory.
        place: String,
        /// What is free.
        free_bytes: u64,
        /// What must stay free.
        min_bytes: u64,
    },
}

impl Held {
    /// A closed word for reports.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OutboxFull { .. } => "outbox_full",
            Self::DiskLow { .. } => "disk_low",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::OutboxFull { remedy, .. } => remedy.clone(),
            Self::DiskLow { .. } => {
                "make room on that disk (`sierra-sync queue compact --yes` gives back what the state no \
                                     longer needs) or lower state.min_free; a service goes on by itself then, and \
                                     without one `sierra-sync sync` does"
                    .to_owned()
            }
        }
    }
}

/// Why a sink is behind, as far as the state tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// A person paused it.
    Paused,
    /// The configuration pauses it.
    Unconfigured,
    /// It does not take deliveries.
    Down,
    /// It takes them, and is slow.
    Slow,
}

impl Behind {
    /// What lets `sink` catch up.
    #[must_use]
    pub fn remedy(self, sink: &str) -> String {
        match self {
            Self::Paused => format!("`sierra-sync resume --sink {sink}` lets it go on"),
            Self::Unconfigured => format!("take sinks.{sink}.paused out, then `sierra-sync queue drain` empties it"),
            Self::Down => {
                format!("`sierra-sync check` tells what {sink} says; once it is well, `sierra-sync queue drain`")
            }
            Self::Slow => "`sierra-sync queue drain` empties it".to_owned(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{bytes} bytes"),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_with_its_place_and_what_frees_it() {
        let remedy = Behind::Paused.remedy("slow");
        let (place, sinks) = ("/var/state".to_owned(), vec!["slow".to_owned()]);
        let full = Held::OutboxFull { place: place.clone(), bytes: 2 << 20, max_bytes: 1 << 20, sinks, remedy };
        let told =
            "the queue in /var/state is full (2.0 MiB of state.outbox_max_size, 1.0 MiB): slow must catch up first";
        assert_eq!(full.to_string(), told);
        assert_eq!(full.hint(), "`sierra-sync resume --sink slow` lets it go on");
        let low = Held::DiskLow { place, free_bytes: 999, min_bytes: 512 << 20 };
        let told = "only 999 bytes are free on the disk of /var/state, and state.min_free asks for 512.0 MiB";
        assert_eq!(low.to_string(), told);
    }
}
