//! Sierra's sign of life, and what the key may do (`/info/token`).

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::answer::read_sign_of_life;
use super::auth::Refusal;
use super::error::{AttemptError, Fault};
use super::session::Session;
use crate::record::Stream;
use crate::resilience::retry::{Answer, Attempt, Call};
use crate::resilience::taxonomy::Decision;

/// The path below the base.
pub(super) const PATH: &str = "info/token";

/// What the presented token may do (sierra-api.md §1.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenInfo {
    /// The roles of the key, by name.
    pub roles: Vec<String>,
    /// Their permissions, such as `Bibs_List`; empty when Sierra names none.
    pub permissions: Vec<String>,
}

impl TokenInfo {
    fn read(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Info {
            #[serde(default)]
            roles: Vec<Role>,
        }
        #[derive(Deserialize)]
        struct Role {
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            permissions: Option<Vec<String>>,
        }
        let info: Info = serde_json::from_slice(body).ok()?;
        let mut read = Self::default();
        for role in info.roles {
            read.roles.extend(role.name);
            for permission in role.permissions.unwrap_or_default() {
                if !read.permissions.contains(&permission) {
                    read.permissions.push(permission);
                }
            }
        }
        Some(read)
    }

    /// Whether the key may list records of `stream`; `None` when Sierra does not say.
    #[must_use]
    pub fn may_list(&self, stream: Stream) -> Option<bool> {
        if self.permissions.is_empty() {
            return None;
        }
        let wanted = format!("{}_list", stream.name());
        Some(self.permissions.iter().any(|permission| permission.eq_ignore_ascii_case(&wanted)))
    }

    /// The permissions, or else the roles, that do more than read: a sync needs none of them (A9).
    #[must_use]
    pub fn beyond_reading(&self) -> Vec<String> {
        let names = if self.permissions.is_empty() { &self.roles } else { &self.permissions };
        names.iter().filter(|name| !is_reading(name)).cloned().collect()
    }
}

fn is_reading(name: &str) -> bool {
    let words = || name.split(|at: char| !at.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    let reads = ["list", "read", "get", "view", "search", "validate"];
    let writes = ["write", "create", "update", "delete", "put", "post", "patch", "crud"];
    words().any(|word| reads.contains(&word.as_str())) && !words().any(|word| writes.contains(&word.as_str()))
}

/// What a sign of life said.
#[derive(Debug)]
pub(super) struct PulseRead {
    pub(super) date: Option<Timestamp>,
    /// `None` when Sierra answered and would not tell.
    pub(super) info: Option<TokenInfo>,
}

/// The call for a sign of life.
pub(super) struct PulseCall<'a> {
    pub(super) session: Session<'a>,
}

impl Call for PulseCall<'_> {
    type Value = PulseRead;
    type Error = AttemptError;

    async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        self.session.prepare(renew).await
    }

    fn is_prepared(&self) -> bool {
        self.session.is_prepared()
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<PulseRead, AttemptError> {
        let correlation_id = Arc::clone(&self.session.correlation_id);
        let manner = self.session.manner(attempt, false, &correlation_id);
        let received = self.session.get(PATH, manner).await;
        let date = received.date();
        match read_sign_of_life(&received.result) {
            Ok(answer) => {
                let info = TokenInfo::read(answer.body());
                self.session.good(&received, manner, PulseRead { date, info })
            }
            Err(fault) => match received.decision(&fault) {
                // A key without the right to ask about itself, or a version without this path: Sierra is there.
                Decision::Terminal | Decision::Nothing if is_sierras_own(&fault) => {
                    self.session.good(&received, manner, PulseRead { date, info: None })
                }
                Decision::Nothing => self.session.bad(&received, manner, fault, Decision::Terminal),
                decision => self.session.bad(&received, manner, fault, decision),
            },
        }
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        AttemptError::Transport("timed out".to_owned())
    }
}

/// Whether Sierra itself refused the question, and not the whole API (117, 118) or something before it.
fn is_sierras_own(fault: &Fault) -> bool {
    match fault {
        Fault::Refused { status: 400..=499, error: Some(error) } => error.code.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A9: a key that can also write is reported.
    #[test]
    fn permissions_beyond_reading_are_found() {
        let body = br#"{"keyId":"k","expiresIn":60,"roles":[
            {"name":"Bibs Read","tokenLifetime":3600,"permissions":["Bibs_List","Bibs_Read","Bibs_Read_Marc"]},
            {"name":"Patrons Write","permissions":["Patrons_Read","Patrons_Update","Patrons_Hold_Delete","Bibs_List"]}]}"#;
        let info = TokenInfo::read(body).expect("reads");
        assert_eq!(info.roles, ["Bibs Read", "Patrons Write"]);
        assert_eq!(info.permissions.len(), 6);
        assert_eq!(info.beyond_reading(), ["Patrons_Update", "Patrons_Hold_Delete"]);
        assert_eq!((info.may_list(Stream::Bibs), info.may_list(Stream::Items)), (Some(true), Some(false)));
    }

    #[test]
    fn without_permissions_the_roles_speak() {
        let info = TokenInfo::read(br#"{"roles":[{"name":"Items Read"},{"name":"Bibs Write"},{"permissions":null}]}"#);
        let info = info.expect("reads");
        assert_eq!((info.may_list(Stream::Bibs), info.beyond_reading()), (None, vec!["Bibs Write".to_owned()]));
        assert_eq!(TokenInfo::read(b"{}"), Some(TokenInfo::default()));
    }
}
