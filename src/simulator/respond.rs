//! From a request to the answer on the wire: faults first, then limits, then access, then the API itself.

use bytes::Bytes;
use jiff::SignedDuration;

use super::api::{self, Answer, ApiRequest, JSON, Refusal, Route};
use super::dates::http_date;
use super::faults::Meddling;
use super::limits::{self, Verdict};
use super::simulator::Simulator;

/// A dressed answer and what it carries.
pub(super) struct Answered {
    pub(super) response: http::Response<Bytes>,
    pub(super) entries: usize,
    pub(super) slow_entries: usize,
}

impl Simulator {
    /// Makes the answer to a request that meets `meddling`.
    pub(super) fn respond(&mut self, request: &ApiRequest<'_>, meddling: &Meddling, connection: u64) -> Answered {
        if meddling.revokes_tokens {
            self.tokens.revoke_all();
        }
        let verdict = self.charge(request);
        let (mut answer, own_headers) = match &meddling.instead {
            Some((answer, headers)) => (answer.clone(), headers.as_slice()),
            None if verdict.is_some_and(|verdict| !verdict.is_granted) => (over_quota(), [].as_slice()),
            None => {
                let result = self.answer(request, meddling);
                (result.unwrap_or_else(|refusal| self.refused(&refusal, request)), [].as_slice())
            }
        };
        if meddling.breaks_json {
            answer.body.truncate(answer.body.len() * 3 / 5);
        }
        let (entries, slow_entries) = (answer.entries, answer.slow_entries);
        let mut response = self.dressed(answer, meddling, connection);
        if own_headers.is_empty() {
            self.tell_quota(verdict, &mut response);
        }
        own_headers.iter().for_each(|(name, value)| set(&mut response, name, value));
        Answered { response, entries, slow_entries }
    }

    fn charge(&mut self, request: &ApiRequest<'_>) -> Option<Verdict> {
        let now = self.now();
        let quota = self.quota.as_mut()?;
        if quota.limit().free_token_calls && request.route == Route::Token {
            return None;
        }
        Some(quota.take(now))
    }

    fn tell_quota(&self, verdict: Option<Verdict>, response: &mut http::Response<Bytes>) {
        if let (Some(quota), Some(verdict)) = (&self.quota, verdict) {
            for (name, value) in limits::headers(quota.limit(), &verdict, self.world.now()) {
                set(response, name, &value);
            }
        }
    }

    fn answer(&mut self, request: &ApiRequest<'_>, meddling: &Meddling) -> Result<Answer, Refusal> {
        let now = self.now();
        match request.route {
            Route::Token => {
                let granted = self.tokens.grant(&self.access, request, now, meddling.expires_in.as_ref())?;
                if self.switches.one_token {
                    self.tokens.keep_latest();
                }
                return Ok(granted);
            }
            Route::Unknown => return Ok(no_such_page()),
            _ => {}
        }
        let left = self.tokens.check(&self.access, &self.switches, request, now)?;
        for throttle in &mut self.throttles {
            throttle.take(request.route.endpoint(), now)?;
        }
        let tampering = &meddling.tampering;
        match request.route {
            Route::Token | Route::Unknown => Ok(no_such_page()),
            Route::TokenInfo => Ok(api::info(&self.access, left)),
            Route::List(kind) => api::list(&self.world, &self.switches, request, kind, tampering),
            Route::One(kind, id) => api::one(&self.world, &self.switches, request, kind, id),
            Route::BadNumber(_) => Err(Refusal::documented(101).saying("Invalid parameter : id must be a number")),
            Route::BibMarc(id) => api::single(&self.world, request, id),
            Route::MarcExport => self.exports.make(&self.world, &self.switches, request, tampering),
            Route::MarcFile(id) if request.http.method() == http::Method::DELETE => self.exports.remove(id),
            Route::MarcFile(id) => self.exports.fetch(id),
            Route::MarcFiles => Ok(self.exports.clear()),
        }
    }

    fn refused(&self, refusal: &Refusal, request: &ApiRequest<'_>) -> Answer {
        let accepts_json = request.header(http::header::ACCEPT).is_some_and(|accept| accept.contains("json"));
        let (body, content_type) = if self.switches.plain_text_errors && !accepts_json {
            (refusal.plain_text(), "text/plain;charset=UTF-8")
        } else {
            (refusal.body(), JSON)
        };
        Answer { status: refusal.status, content_type, ..Answer::json(body) }
    }

    /// Puts on the headers that recorded answers carry (`sierra-api.md` §1.1).
    fn dressed(&self, answer: Answer, meddling: &Meddling, connection: u64) -> http::Response<Bytes> {
        let container = 1 + connection % 2;
        let cookie = format!("jcontainerId=.jcontainer-public{container}; path=/iii/sierra-api");
        let mut response = http::Response::new(Bytes::from(answer.body));
        *response.status_mut() = http::StatusCode::from_u16(answer.status).unwrap_or(http::StatusCode::BAD_GATEWAY);
        if !meddling.drops_date {
            let date = self.world.now().saturating_add(SignedDuration::from_secs(meddling.date_offset));
            set(&mut response, "date", &http_date(date.unwrap_or(self.world.now())));
        }
        set(&mut response, "server", "Apache");
        set(&mut response, "content-type", answer.content_type);
        set(&mut response, "vary", "User-Agent");
        set(&mut response, "set-cookie", &cookie);
        response
    }
}

/// Sets a header; one that HTTP does not allow is left out.
fn set(response: &mut http::Response<Bytes>, name: &str, value: &str) {
    let name = http::HeaderName::try_from(name);
    if let (Ok(name), Ok(value)) = (name, http::HeaderValue::try_from(value)) {
        response.headers_mut().insert(name, value);
    }
}

/// A gateway's refusal, which is not in Sierra's envelope.
fn over_quota() -> Answer {
    let body = r#"{"message":"API rate limit exceeded"}"#;
    Answer { status: 429, content_type: "application/json", ..Answer::json(body.into()) }
}

/// What Apache says of a path that nothing serves: a 404 that does not mean "no records".
fn no_such_page() -> Answer {
    let body = "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>404 Not Found</title>\n</head>\
                <body>\n<h1>Not Found</h1>\n<p>The requested URL was not found on this server.</p>\n</body></html>\n";
    Answer { status: 404, content_type: "text/html; charset=iso-8859-1", ..Answer::json(body.into()) }
}
