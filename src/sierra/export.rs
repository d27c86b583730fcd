//! Exports of MARC in three phases: `GET /bibs/marc` makes a file, a second `GET` fetches it, `DELETE` removes it.
//!
//! Sierra names the file by an address. Only its last part is believed: the token goes to our own base and nowhere
//! else. What was asked for is compared with what came by counts, since a file may be cut short without a word, and an
//! error may lie where a file was expected (sierra-api.md §4.1).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::invalid;
use super::api_error::{ApiError, integer};
use super::auth::Refusal;
use super::client::{Inner, class_of};
use super::envelope::InvalidBody;
use super::error::{AttemptError, Fault};
use super::export_file::{self, Exported};
use super::log::RetryLog;
use super::query::MAX_LIMIT;
use super::session::Session;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::retry::{Answer, Attempt, Budget, Call, Ended, Ending, Tally};
use crate::resilience::taxonomy::Decision;
use crate::sync::RequestNumber;
use crate::sync::ports::{MarcExport, MarcQuery, SourceError, Traffic};

/// The path below the base.
const PATH: &str = "bibs/marc";
/// Longest name of a file that is believed.
const LONGEST_NAME: usize = 64;

impl Inner {
    /// Exports the range of `query`, and cleans up after itself as far as Sierra lets it.
    pub(super) async fn export(&self, query: &MarcQuery) -> Result<MarcExport, SourceError> {
        let class = class_of(query.class);
        // Brackets are encoded as in every other question.
        let path = format!("{PATH}?id=%5B{},{}%5D&limit={MAX_LIMIT}", query.from, query.to);
        let mut traffic = Traffic::default();
        let mut make = MakeCall { session: self.session(Endpoint::BibsMarc), path };
        let context = self.context(class, &make.session);
        let made = match self.line.call(&context, &mut make, &RetryLog).await {
            Ok(success) => {
                traffic += self.account(&make.session, success.tally);
                success.value
            }
            Err(ended) => return Err(self.failed(&make.session, *ended, false, traffic)),
        };
        let Some(file) = made.file else {
            return Ok(MarcExport { records: Vec::new(), answered: made.answered, traffic });
        };
        let path = format!("{PATH}/files/{}", file.name);
        let mut fetch = FetchCall { session: self.session(Endpoint::BibsMarcFile), path: &path, records: file.records };
        let context = self.context(class, &fetch.session);
        let fetched = self.line.call(&context, &mut fetch, &RetryLog).await;
        let session = self.session(Endpoint::BibsMarcFile);
        let mut remove = RemoveCall { session, path: &path, was_sent: false };
        let context = self.context(class, &remove.session);
        // Best effort: a key that may only read is refused, and then the file stays until Sierra removes it.
        let removed = self.line.call(&context, &mut remove, &RetryLog).await;
        let tally = removed.map_or_else(|ended| ended.tally, |success| success.tally);
        traffic += self.account(&remove.session, tally);
        match fetched {
            Ok(success) => {
                traffic += self.account(&fetch.session, success.tally);
                let (Exported { records, .. }, answered) = success.value;
                Ok(MarcExport { records, answered, traffic })
            }
            Err(ended) => Err(self.failed(&fetch.session, *ended, false, traffic)),
        }
    }
}

/// What the first phase says.
#[derive(Debug)]
struct Made {
    /// `None` when there is nothing to fetch.
    file: Option<File>,
    answered: RequestNumber,
}

#[derive(Debug, PartialEq, Eq)]
struct File {
    name: String,
    /// Records in it, when Sierra said so.
    records: Option<u64>,
}

/// Reads the summary of the first phase.
fn read_summary(body: &[u8]) -> Result<Option<File>, InvalidBody> {
    #[derive(Deserialize)]
    struct Summary<'a> {
        #[serde(default)]
        file: Option<String>,
        #[serde(default, rename = "outputRecords", borrow)]
        output_records: Option<&'a RawValue>,
        #[serde(default)]
        code: Option<serde::de::IgnoredAny>,
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(InvalidBody::Empty);
    }
    if ApiError::read(body).is_some() {
        return Err(InvalidBody::ErrorObject);
    }
    let summary: Summary<'_> = serde_json::from_slice(body).map_err(|_| InvalidBody::Malformed)?;
    if summary.code.is_some() {
        return Err(InvalidBody::ErrorObject);
    }
    let records = summary.output_records.and_then(integer).and_then(|records| u64::try_from(records).ok());
    if records == Some(0) && summary.file.is_none() {
        return Ok(None);
    }
    let name = summary.file.as_deref().and_then(file_name).ok_or(InvalidBody::NoFile)?;
    Ok(Some(File { name, records }))
}

/// The last part of the file's address.
fn file_name(address: &str) -> Option<String> {
    let path = address.split(['?', '#']).next()?;
    let (before, name) = path.trim_end_matches('/').rsplit_once('/')?;
    let is_sound = (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && !name.starts_with('.');
    (is_sound && before.ends_with("/files")).then(|| name.to_owned())
}

/// Phase one.
struct MakeCall<'a> {
    session: Session<'a>,
    path: String,
}

impl Call for MakeCall<'_> {
    type Value = Made;
    type Error = AttemptError;

    async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        self.session.prepare(renew).await
    }

    fn is_prepared(&self) -> bool {
        self.session.is_prepared()
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<Made, AttemptError> {
        let correlation_id = std::sync::Arc::clone(&self.session.correlation_id);
        let manner = self.session.manner(attempt, false, &correlation_id);
        let received = self.session.get(&self.path, manner).await;
        let answered = received.answered;
        let read = match &received.result {
            Err(error) => Err(Fault::Transport(error.clone())),
            Ok(answer) if answer.status() == http::StatusCode::NO_CONTENT => Ok(None),
            Ok(answer) if answer.status().is_success() => {
                read_summary(answer.body()).map_err(|reason| invalid(answer.status(), reason, answer.body()))
            }
            Ok(answer) => match ApiError::read(answer.body()) {
                // Sierra's own "nothing": no live bib in the range.
                Some(error) if answer.status() == http::StatusCode::NOT_FOUND && error.code == Some(107) => Ok(None),
                error => Err(Fault::Refused { status: answer.status().as_u16(), error }),
            },
        };
        match read {
            Ok(file) => self.session.good(&received, manner, Made { file, answered }),
            Err(fault) => {
                let decision = received.decision(&fault);
                self.session.bad(&received, manner, fault, decision)
            }
        }
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        AttemptError::Transport("timed out".to_owned())
    }
}

/// Phase two.
struct FetchCall<'a> {
    session: Session<'a>,
    path: &'a str,
    records: Option<u64>,
}

impl Call for FetchCall<'_> {
    type Value = (Exported, RequestNumber);
    type Error = AttemptError;

    async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        self.session.prepare(renew).await
    }

    fn is_prepared(&self) -> bool {
        self.session.is_prepared()
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<Self::Value, AttemptError> {
        let correlation_id = std::sync::Arc::clone(&self.session.correlation_id);
        let manner = self.session.manner(attempt, false, &correlation_id);
        let received = self.session.send(http::Method::GET, self.path, "application/octet-stream, */*", manner).await;
        let answered = received.answered;
        let read = match &received.result {
            Err(error) => Err(Fault::Transport(error.clone())),
            Ok(answer) if answer.status().is_success() => {
                let (status, body) = (answer.status(), answer.body().clone());
                export_file::read(body, self.records).await.map_err(|reason| invalid(status, reason, answer.body()))
            }
            Ok(answer) => {
                let error = ApiError::read(answer.body());
                Err(Fault::Refused { status: answer.status().as_u16(), error })
            }
        };
        match read {
            Ok(exported) => self.session.good(&received, manner, (exported, answered)),
            Err(fault) => {
                let decision = received.decision(&fault);
                self.session.bad(&received, manner, fault, decision)
            }
        }
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        AttemptError::Transport("timed out".to_owned())
    }
}

/// Phase three, a courtesy: sent once, and of its failures only a throttle is heeded.
struct RemoveCall<'a> {
    session: Session<'a>,
    path: &'a str,
    was_sent: bool,
}

impl Call for RemoveCall<'_> {
    type Value = ();
    type Error = AttemptError;

    async fn prepare(&mut self, renew: bool) -> Result<(), Refusal> {
        if self.was_sent {
            let ending = Ending::BudgetExhausted { budget: Budget::Attempts };
            return Err(Box::new(Ended { ending, status: None, error: None, tally: Tally::default() }));
        }
        self.session.prepare(renew).await
    }

    fn is_prepared(&self) -> bool {
        self.session.is_prepared()
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<(), AttemptError> {
        self.was_sent = true;
        let correlation_id = std::sync::Arc::clone(&self.session.correlation_id);
        let manner = self.session.manner(attempt, false, &correlation_id);
        let received = self.session.send(http::Method::DELETE, self.path, "application/json", manner).await;
        let fault = match &received.result {
            Ok(answer) if answer.status().is_success() => return self.session.good(&received, manner, ()),
            Ok(answer) => Fault::Refused { status: answer.status().as_u16(), error: ApiError::read(answer.body()) },
            Err(error) => Fault::Transport(error.clone()),
        };
        let decision = match received.decision(&fault) {
            throttle @ (Decision::Throttled | Decision::Refused(_)) => throttle,
            _ => Decision::Waived,
        };
        self.session.bad(&received, manner, fault, decision)
    }

    fn overdue(&mut self, _: Attempt) -> AttemptError {
        AttemptError::Transport("timed out".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_summary_that_names_a_file_of_ours_is_one() {
        let file = |name: &str, records| Ok(Some(File { name: name.to_owned(), records }));
        let table = [
            (
                r#"{"file":"https://h/iii/sierra-api/v6/bibs/marc/files/12","inputRecords":2,"outputRecords":2,"errors":0}"#,
                file("12", Some(2)),
            ),
            (r#"{"file":"http://elsewhere/v6/bibs/marc/files/a-1.mrc"}"#, file("a-1.mrc", None)),
            (r#"{"file":"https://h/v6/bibs/marc/files/12","outputRecords":"2"}"#, file("12", Some(2))),
            (r#"{"file":"https://h/v6/bibs/marc/files/12","outputRecords":-1}"#, file("12", None)),
            (r#"{"inputRecords":0,"outputRecords":0}"#, Ok(None)),
            (r#"{"outputRecords":2}"#, Err(InvalidBody::NoFile)),
            (r#"{"file":"https://h/v6/bibs/marc/files/../../token","outputRecords":2}"#, Err(InvalidBody::NoFile)),
            (r#"{"file":"https://h/v6/patrons/12","outputRecords":2}"#, Err(InvalidBody::NoFile)),
            (r#"{"file":"https://h/files/a%2Fb","outputRecords":2}"#, Err(InvalidBody::NoFile)),
            (r#"{"code":135,"httpStatus":500,"name":"External Process Failed"}"#, Err(InvalidBody::ErrorObject)),
            (r#"{"code":"-1"}"#, Err(InvalidBody::ErrorObject)),
            ("", Err(InvalidBody::Empty)),
            ("<html>", Err(InvalidBody::Malformed)),
            ("[]", Err(InvalidBody::NoFile)),
            (r#"{"file":12}"#, Err(InvalidBody::Malformed)),
        ];
        for (body, expected) in table {
            assert_eq!(read_summary(body.as_bytes()), expected, "{body}");
        }
    }
}
