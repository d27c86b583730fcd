//! What people are called for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The closed set of causes. Each has an entry in the runbook, and a line in the shipped Prometheus rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The store failed: nothing is captured or delivered.
    StoreFailed,
    /// There is no room on the disk, or in the queue: nothing is captured.
    NoRoom,
    /// Sierra refuses the credential.
    CredentialRefused,
    /// The breaker is open: no call goes to Sierra.
    BreakerOpen,
    /// One endpoint of Sierra is suspended.
    EndpointSuspended,
    /// A stream is stopped until a person acts.
    StreamStopped,
    /// Windows of a stream are owed.
    Gap,
    /// A stream waits for quota and is stale for that reason.
    QuotaStarved,
    /// A stream is stale.
    StreamStale,
    /// A sink lost its place and gets nothing until it is loaded again.
    SinkDetached,
    /// A sink takes no deliveries.
    SinkDown,
    /// The durable queue is nearly full.
    QueueFilling,
    /// Records were set aside lately.
    QuarantineGrowth,
    /// The state did not know what a sink held, so everything is read and delivered again.
    Rebuild,
    /// A task of the service met a defect and was started again.
    TaskRestarted,
}

/// How grave it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth a look today.
    Warning,
    /// Somebody must act now, or readers will notice.
    Critical,
}

impl Cause {
    /// Every cause, the deepest first: what stands further up explains what stands below it.
    pub const ALL: [Self; 15] = [
        Self::StoreFailed,
        Self::NoRoom,
        Self::CredentialRefused,
        Self::BreakerOpen,
        Self::EndpointSuspended,
        Self::StreamStopped,
        Self::Gap,
        Self::QuotaStarved,
        Self::StreamStale,
        Self::SinkDetached,
        Self::SinkDown,
        Self::QueueFilling,
        Self::QuarantineGrowth,
        Self::Rebuild,
        Self::TaskRestarted,
    ];

    /// Its name in notices, metrics and the runbook.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StoreFailed => "store_failed",
            Self::NoRoom => "no_room",
            Self::CredentialRefused => "credential_refused",
            Self::BreakerOpen => "breaker_open",
            Self::EndpointSuspended => "endpoint_suspended",
            Self::StreamStopped => "stream_stopped",
            Self::Gap => "gap",
            Self::QuotaStarved => "quota_starved",
            Self::StreamStale => "stream_stale",
            Self::SinkDetached => "sink_detached",
            Self::SinkDown => "sink_down",
            Self::QueueFilling => "queue_filling",
            Self::QuarantineGrowth => "quarantine_growth",
            Self::Rebuild => "rebuild",
            Self::TaskRestarted => "task_restarted",
        }
    }

    /// How grave it is.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::StoreFailed
            | Self::NoRoom
            | Self::CredentialRefused
            | Self::BreakerOpen
            | Self::StreamStopped
            | Self::SinkDetached => Severity::Critical,
            Self::EndpointSuspended
            | Self::Gap
            | Self::QuotaStarved
            | Self::StreamStale
            | Self::SinkDown
            | Self::QueueFilling
            | Self::QuarantineGrowth
            | Self::Rebuild
            | Self::TaskRestarted => Severity::Warning,
        }
    }

    /// Whether this, about `subject`, is why there is `other` about `its_subject`: then only this is told. An endpoint
    /// bears the name of its stream.
    #[must_use]
    pub fn explains(self, subject: &str, other: Self, its_subject: &str) -> bool {
        let is_about_reading = matches!(
            other,
            Self::BreakerOpen | Self::EndpointSuspended | Self::Gap | Self::QuotaStarved | Self::StreamStale
        );
        match self {
            Self::StoreFailed => other != self,
            Self::CredentialRefused => is_about_reading || other == Self::StreamStopped,
            Self::NoRoom | Self::BreakerOpen => is_about_reading && other != self,
            Self::EndpointSuspended | Self::StreamStopped | Self::QuotaStarved => {
                matches!(other, Self::Gap | Self::StreamStale) && subject == its_subject
            }
            Self::Gap => other == Self::StreamStale && subject == its_subject,
            Self::SinkDetached => other == Self::SinkDown && subject == its_subject,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_causes_explain_each_other() {
        for one in Cause::ALL {
            for other in Cause::ALL {
                let both = one.explains("bibs", other, "bibs") && other.explains("bibs", one, "bibs");
                assert!(!both, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn what_concerns_one_stream_explains_nothing_of_another() {
        assert!(Cause::EndpointSuspended.explains("bibs", Cause::Gap, "bibs"));
        assert!(!Cause::EndpointSuspended.explains("bibs", Cause::Gap, "items"));
        assert!(Cause::BreakerOpen.explains("", Cause::Gap, "items"));
    }

    #[test]
    fn names_are_those_of_the_json_form() {
        for cause in Cause::ALL {
            assert_eq!(serde_json::to_value(cause).expect("plain"), cause.name());
        }
    }
}
