//! From an answer to what it holds: the one place where page, nothing and failure are told apart.

use bytes::Bytes;
use http::StatusCode;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::api_error::ApiError;
use super::decode::decode_page;
use super::envelope::InvalidBody;
use super::error::Fault;
use super::page::{self, Checked};
use super::transport::TransportError;
use crate::sync::ports::PageQuery;

/// Decoding a larger body takes long enough to hold up other tasks.
const LARGE_BODY: usize = 128 * 1024;

/// What a list answer holds.
#[derive(Debug)]
pub(super) enum Read {
    /// At least one entry.
    Page {
        /// The entries.
        checked: Checked,
        /// Lone surrogates that were replaced.
        replaced_surrogates: usize,
    },
    /// Sierra's own "nothing".
    Nothing,
}

/// Reads the answer to `query`; a large body is decoded off the runtime's threads, where there are several. On a single
/// one that would only leave to chance when it is done, and a simulation could not be repeated.
pub(super) async fn read_list(
    query: &PageQuery,
    result: &Result<http::Response<Bytes>, TransportError>,
) -> Result<Read, Fault> {
    let answer = result.as_ref().map_err(|error| Fault::Transport(error.clone()))?;
    let (status, body) = (answer.status(), answer.body().clone());
    let has_several = Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread;
    if body.len() < LARGE_BODY || !has_several {
        return read(query, status, &body);
    }
    let query = query.clone();
    match tokio::task::spawn_blocking(move || read(&query, status, &body)).await {
        Ok(read) => read,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels such a task.
            Err(_) => std::future::pending().await,
        },
    }
}

fn read(query: &PageQuery, status: StatusCode, body: &[u8]) -> Result<Read, Fault> {
    if !status.is_success() {
        let error = ApiError::read(body);
        // A 404 is nothing only when Sierra itself says so: any other one is a wrong path, a proxy or a redeploy
        // (BR-067, BR-128).
        if status == StatusCode::NOT_FOUND && error.as_ref().and_then(|error| error.code) == Some(107) {
            return Ok(Read::Nothing);
        }
        return Err(Fault::Refused { status: status.as_u16(), error });
    }
    let page = decode_page(query.stream, body).map_err(|reason| invalid(status, reason, body))?;
    if page.entries.is_empty() {
        return Ok(Read::Nothing);
    }
    let checked = page::check(query, page.entries).map_err(Fault::Violation)?;
    Ok(Read::Page { checked, replaced_surrogates: page.replaced_surrogates })
}

/// Whether an answer that is no list shows Sierra at work: a JSON object under a success status, or an error of its
/// own making under any other.
pub(super) fn read_sign_of_life(
    result: &Result<http::Response<Bytes>, TransportError>,
) -> Result<&http::Response<Bytes>, Fault> {
    let answer = result.as_ref().map_err(|error| Fault::Transport(error.clone()))?;
    let (status, body) = (answer.status(), answer.body());
    let error = ApiError::read(body);
    if !status.is_success() {
        return Err(Fault::Refused { status: status.as_u16(), error });
    }
    let is_object = serde_json::from_slice::<super::wire::WirePage<'_>>(body).is_ok_and(|page| page.code.is_none());
    let reason = match (is_object, body.is_empty()) {
        (true, _) => return Ok(answer),
        (false, true) => InvalidBody::Empty,
        (false, false) if error.is_some() => InvalidBody::ErrorObject,
        (false, false) => InvalidBody::Malformed,
    };
    Err(invalid(status, reason, body))
}

/// A success status over something that is no success.
pub(super) fn invalid(status: StatusCode, reason: InvalidBody, body: &[u8]) -> Fault {
    Fault::Invalid { status: status.as_u16(), reason, error: ApiError::read(body) }
}
