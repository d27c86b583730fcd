//! The whole stand-in: library, API, access, journal. Pure: a request and the time in, a reply out.

use std::time::Duration;

use bytes::Bytes;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};

use super::api::{self, Access, Answer, ApiRequest, Endpoint, JSON, Refusal, Route, Tampering, Tokens};
use super::journal::{Call, Journal};
use super::reply::{Delivery, Reply};
use super::switches::Switches;
use super::world::{LibrarySettings, World};
use crate::seed::RootSeed;

/// The path below which Sierra serves its API when nobody changed it.
pub const BASE_PATH: &str = "/iii/sierra-api/v6";

/// What `isRequestable` costs Sierra for each record (`sierra-api.md` §2.3).
const SLOW_ENTRY: Duration = Duration::from_millis(73);

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The true time, by the clock that the simulator lives on.
    pub now: Timestamp,
    /// A number for the connection; calls on one connection meet the same back-end.
    pub connection: u64,
}

/// A Sierra that is not one.
#[derive(Debug)]
pub struct Simulator {
    /// The library behind the API.
    pub world: World,
    /// The server's quirks; they may be changed at any time.
    pub switches: Switches,
    /// The key, its secret and its roles.
    pub access: Access,
    /// What was asked so far.
    pub journal: Journal,
    base_path: String,
    tokens: Tokens,
    clock_step: SignedDuration,
}

impl Simulator {
    /// A simulator of a library opened with `settings`; the seed decides every random choice.
    #[must_use]
    pub fn new(settings: &LibrarySettings, seed: RootSeed) -> Self {
        Self::of(World::open(settings, seed), seed)
    }

    /// A simulator of a library that exists already.
    #[must_use]
    pub fn of(world: World, seed: RootSeed) -> Self {
        Self {
            world,
            switches: Switches::default(),
            access: Access::default(),
            journal: Journal::default(),
            base_path: BASE_PATH.into(),
            tokens: Tokens::new(seed),
            clock_step: SignedDuration::ZERO,
        }
    }

    /// Sierra's own idea of the time when it is `now` in truth.
    #[must_use]
    pub fn sierra_now(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.clock_step).unwrap_or(now)
    }

    /// Steps Sierra's clock, and with it `Date` and every stamp from here on.
    pub fn step_clock(&mut self, by: SignedDuration) {
        self.clock_step = self.clock_step.saturating_add(by);
    }

    /// Ends every token given out so far, as a restart of the server does.
    pub fn revoke_tokens(&mut self) {
        self.tokens.revoke_all();
    }

    /// How many tokens were given out so far.
    #[must_use]
    pub fn tokens_issued(&self) -> u64 {
        self.tokens.issued()
    }

    /// Answers a request. Life up to now happens first; the journal notes the arrival. Whoever delivers the reply
    /// must call [`Simulator::finished`] once it is over, however it ended.
    pub fn handle(&mut self, http: &http::Request<Bytes>, arrival: Arrival) -> Reply {
        self.world.tick(self.sierra_now(arrival.now));
        let base_path = self.base_path.clone();
        let request = ApiRequest::read(http, &base_path);
        let call = self.arrived(&request, arrival);
        let result = self.answer(&request, arrival.now, &Tampering::default());
        let answer = result.unwrap_or_else(|refusal| self.refused(&refusal, &request));
        self.journal.answered(call, Some(answer.status), answer.entries, None);
        let delay = SLOW_ENTRY.saturating_mul(u32::try_from(answer.slow_entries).unwrap_or(u32::MAX));
        let response = self.dressed(answer, arrival);
        Reply { response, delay, delivery: Delivery::Whole, call, endpoint: request.route.endpoint() }
    }

    /// Notes that the reply to a call was delivered, or that its caller gave up.
    pub fn finished(&mut self, call: u64, endpoint: Endpoint, now: Timestamp) {
        self.journal.finished(call, endpoint, now);
    }

    fn arrived(&mut self, request: &ApiRequest<'_>, arrival: Arrival) -> u64 {
        self.journal.arrived(Call {
            number: 0,
            at: arrival.now,
            finished: None,
            endpoint: request.route.endpoint(),
            method: request.http.method().to_string(),
            path: request.http.uri().path().to_owned(),
            parameters: request.parameters.clone(),
            status: None,
            entries: 0,
            fault: None,
            connection: arrival.connection,
            in_flight: 0,
        })
    }

    fn answer(&mut self, request: &ApiRequest<'_>, now: Timestamp, tampering: &Tampering) -> Result<Answer, Refusal> {
        if request.route == Route::Token {
            return self.tokens.grant(&self.access, request, now);
        }
        if request.route == Route::Unknown {
            return Ok(no_such_page());
        }
        let left = self.tokens.check(&self.access, &self.switches, request, now)?;
        match request.route {
            Route::Token | Route::Unknown => Ok(no_such_page()),
            Route::TokenInfo => Ok(api::info(&self.access, left)),
            Route::List(kind) => api::list(&self.world, &self.switches, request, kind, tampering),
            Route::One(kind, id) => api::one(&self.world, &self.switches, request, kind, id),
            Route::BadNumber(_) => Err(Refusal::documented(101).saying("Invalid parameter : id must be a number")),
            Route::BibMarc(_) | Route::MarcExport | Route::MarcFile(_) | Route::MarcFiles => Ok(no_such_page()),
        }
    }

    fn refused(&self, refusal: &Refusal, request: &ApiRequest<'_>) -> Answer {
        let accepts_json = request.header(http::header::ACCEPT).is_some_and(|accept| accept.contains("json"));
        let (body, content_type) = if self.switches.plain_text_errors && !accepts_json {
            (refusal.plain_text(), "text/plain;charset=UTF-8")
        } else {
            (refusal.body(), JSON)
        };
        Answer { status: refusal.status, content_type, body: body.into_bytes(), entries: 0, slow_entries: 0 }
    }

    /// Puts on the headers that recorded answers carry (`sierra-api.md` §1.1).
    fn dressed(&self, answer: Answer, arrival: Arrival) -> http::Response<Bytes> {
        let container = 1 + arrival.connection % 2;
        let date = http_date(self.sierra_now(arrival.now));
        http::Response::builder()
            .status(answer.status)
            .header(http::header::DATE, date)
            .header(http::header::SERVER, "Apache")
            .header(http::header::CONTENT_TYPE, answer.content_type)
            .header(http::header::VARY, "User-Agent")
            .header(
                http::header::SET_COOKIE,
                format!("jcontainerId=.jcontainer-public{container}; path=/iii/sierra-api"),
            )
            .header(http::header::CONTENT_LENGTH, answer.body.len())
            .body(Bytes::from(answer.body))
            .expect("every status and header here is valid")
    }
}

/// What Apache says of a path that nothing serves: a 404 that does not mean "no records".
fn no_such_page() -> Answer {
    let body = "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>404 Not Found</title>\n</head>\
                <body>\n<h1>Not Found</h1>\n<p>The requested URL was not found on this server.</p>\n</body></html>\n";
    Answer {
        status: 404,
        content_type: "text/html; charset=iso-8859-1",
        body: body.as_bytes().to_vec(),
        entries: 0,
        slow_entries: 0,
    }
}

/// A date as HTTP writes it.
pub(crate) fn http_date(stamp: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).expect("years of the simulation have four digits")
}
