//! What is told, and when: a pure machine over what the status shows, kept with the state so that a restart neither
//! repeats an alert nor forgets that it is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::sync::report::StatusReport;

use super::finding::{Finding, set_aside};
use super::notice::{Notice, NoticeKind};

/// What is over must stay so for this long: a breaker that closes and opens again is one outage.
const SETTLES: SignedDuration = SignedDuration::from_mins(2);
/// What is still wrong is told again after this time.
const REMINDS: SignedDuration = SignedDuration::from_hours(24);
/// The quarantine grows no more when it has not for this long.
const GROWS_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Passes that follow each other within this time can wait for the next one, as a service can.
const SOON: SignedDuration = SignedDuration::from_mins(15);
/// So many messages wait for a webhook that takes none; the oldest give way.
const WAITING: usize = 100;

/// The alerts that stand, and the messages that are still to be brought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AlertBook {
    /// By cause and subject.
    #[serde(default)]
    standing: BTreeMap<String, Standing>,
    /// By stream: the quarantine as it was.
    #[serde(default)]
    aside: BTreeMap<String, Aside>,
    /// Messages for the webhook, the oldest first.
    #[serde(default)]
    outgoing: VecDeque<Notice>,
    /// When the last pass ended after which somebody looked; `None` where a service looks.
    #[serde(default)]
    passed: Option<Timestamp>,
    /// Messages that were made so far.
    #[serde(default)]
    made: u64,
}

/// Something that is or was just now wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Standing {
    /// As people know it: what ends is what they were told of, whatever it looked like last.
    finding: Finding,
    since: Timestamp,
    /// When people last heard of it; `None` while it may still mend itself.
    told: Option<Timestamp>,
    /// Since when it is not seen any more.
    gone: Option<Timestamp>,
}

/// The records of a stream that are set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Aside {
    count: u64,
    grew: Option<Timestamp>,
}

impl AlertBook {
    /// Looks at `found`, which is what `report` shows, and returns what is to be told now. The same is kept for the
    /// webhook, if there is one.
    pub fn look(&mut self, report: &StatusReport, found: Vec<Finding>, has_webhook: bool) -> Vec<Notice> {
        self.look_waiting(report, found, has_webhook, SETTLES)
    }

    /// The same for a pass that has ended: what it did not mend stays until the next one, and what it did is over. So
    /// nothing is waited for, unless the next pass comes as soon as a service would look again.
    pub fn look_after_a_pass(
        &mut self,
        report: &StatusReport,
        mut found: Vec<Finding>,
        has_webhook: bool,
    ) -> Vec<Notice> {
        let before = self.passed.replace(report.now);
        if before.is_some_and(|before| report.now.duration_since(before) <= SOON) {
            return self.look_waiting(report, found, has_webhook, SETTLES);
        }
        found.iter_mut().for_each(|finding| finding.lasts = Duration::ZERO);
        self.look_waiting(report, found, has_webhook, SignedDuration::ZERO)
    }

    fn look_waiting(
        &mut self,
        report: &StatusReport,
        mut found: Vec<Finding>,
        has_webhook: bool,
        settles: SignedDuration,
    ) -> Vec<Notice> {
        let now = report.now;
        found.extend(self.grown(report));
        let mut notices = self.rise(&found, now);
        notices.extend(self.settle(&found, now, settles));
        if has_webhook {
            self.outgoing.extend(notices.iter().cloned());
            let surplus = self.outgoing.len().saturating_sub(WAITING);
            self.outgoing.drain(..surplus);
        } else {
            self.outgoing.clear();
        }
        notices
    }

    /// The message that is to be brought next.
    #[must_use]
    pub fn next(&self) -> Option<&Notice> {
        self.outgoing.front()
    }

    /// Takes note that the message `id` was brought.
    pub fn brought(&mut self, id: &str) {
        self.outgoing.retain(|notice| notice.id != id);
    }

    /// What people were told and is not over.
    pub fn active(&self) -> impl Iterator<Item = &Finding> {
        self.standing.values().filter(|standing| standing.told.is_some()).map(|standing| &standing.finding)
    }

    /// Raises what is new, and has lasted, and reminds of what is old.
    fn rise(&mut self, found: &[Finding], now: Timestamp) -> Vec<Notice> {
        let mut notices = Vec::new();
        for finding in found {
            let is_known = self.standing.get(&key(finding)).is_some_and(|standing| standing.told.is_some());
            if !is_known && self.is_explained(finding, found) {
                self.standing.remove(&key(finding));
                continue;
            }
            let new = || Standing { finding: finding.clone(), since: now, told: None, gone: None };
            let standing = self.standing.entry(key(finding)).or_insert_with(new);
            standing.gone = None;
            let lasted = now.duration_since(standing.since);
            let kind = match standing.told {
                None if lasted >= SignedDuration::try_from(finding.lasts).unwrap_or(SignedDuration::MAX) => {
                    NoticeKind::Raised
                }
                Some(told) if now.duration_since(told) >= REMINDS => NoticeKind::Reminder,
                _ => continue,
            };
            standing.finding.clone_from(finding);
            standing.told = Some(now);
            self.made += 1;
            notices.push(Notice::new(kind, finding, standing.since, now, self.made));
        }
        notices
    }

    /// Takes back what is over.
    fn settle(&mut self, found: &[Finding], now: Timestamp, settles: SignedDuration) -> Vec<Notice> {
        let mut notices = Vec::new();
        let made = &mut self.made;
        self.standing.retain(|key_of, standing| {
            if found.iter().any(|finding| key(finding) == *key_of) {
                return true;
            }
            if standing.told.is_none() {
                return false;
            }
            let gone = *standing.gone.get_or_insert(now);
            if now.duration_since(gone) < settles {
                return true;
            }
            *made += 1;
            notices.push(Notice::new(NoticeKind::Recovered, &standing.finding, standing.since, now, *made));
            false
        });
        notices
    }

    fn is_explained(&self, finding: &Finding, found: &[Finding]) -> bool {
        let explains = |other: &Finding| other.cause.explains(&other.subject, finding.cause, &finding.subject);
        found.iter().any(explains) || self.active().any(explains)
    }

    /// A finding for each stream of which records were set aside within the last day.
    fn grown(&mut self, report: &StatusReport) -> Vec<Finding> {
        let now = report.now;
        let mut found = Vec::new();
        for (stream, count) in &report.quarantine {
            let aside = self.aside.entry(stream.clone()).or_insert(Aside { count: 0, grew: None });
            if *count > aside.count {
                aside.grew = Some(now);
            }
            aside.count = *count;
            let grows = aside.grew.is_some_and(|grew| now.duration_since(grew) < GROWS_FOR);
            if grows && *count > 0 {
                found.push(set_aside(stream, *count));
            }
        }
        found
    }
}

fn key(finding: &Finding) -> String {
    format!("{}/{}", finding.cause.name(), finding.subject)
}
