//! The whole stand-in: library, API, faults, limits, journal. Pure: a request and the time in, a reply out.

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use super::api::{Access, ApiRequest, Endpoint, Exports, Tokens};
use super::faults::{FaultId, Faults, PlannedFault, Sighting};
use super::hooks::Hooks;
use super::journal::{Call, Journal};
use super::latency::Latency;
use super::limits::{EndpointLimit, Quota, RateLimit, Throttle};
use super::reply::Reply;
use super::switches::Switches;
use super::world::{LibrarySettings, World};
use crate::seed::RootSeed;

/// The path below which Sierra serves its API when nobody changed it.
pub const BASE_PATH: &str = "/iii/sierra-api/v6";

/// How a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The true time, by the clock that the simulator lives on.
    pub now: Timestamp,
    /// A number for the connection; calls on one connection meet the same back-end.
    pub connection: u64,
    /// Whether an earlier call came on that connection.
    pub is_reused: bool,
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
    /// How long answers take.
    pub latency: Latency,
    /// What was asked so far.
    pub journal: Journal,
    pub(super) tokens: Tokens,
    pub(super) exports: Exports,
    pub(super) faults: Faults,
    pub(super) quota: Option<Quota>,
    pub(super) throttles: Vec<Throttle>,
    hooks: Hooks,
    base_path: String,
    now: Timestamp,
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
            now: world.now(),
            world,
            switches: Switches::default(),
            access: Access::default(),
            latency: Latency::default(),
            journal: Journal::default(),
            tokens: Tokens::new(seed),
            exports: Exports::default(),
            faults: Faults::new(seed),
            quota: None,
            throttles: vec![Throttle::new(EndpointLimit::marc_export())],
            hooks: Hooks::default(),
            base_path: BASE_PATH.into(),
        }
    }

    /// Serves the API below another path than [`BASE_PATH`]; no slash at the end.
    pub fn serve_below(&mut self, base_path: &str) {
        base_path.trim_end_matches('/').clone_into(&mut self.base_path);
    }

    /// The path below which the API is served.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// Moves the whole simulation to `now`.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.world.tick(self.now);
    }

    /// The true time that the simulation has reached.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Steps Sierra's clock, and with it `Date` and every stamp from here on. Time itself goes on as before: tokens
    /// and quota windows do not notice.
    pub fn step_clock(&mut self, by: SignedDuration) {
        self.world.step_clock(by);
    }

    /// Plans a fault from now on.
    pub fn plan(&mut self, fault: impl Into<PlannedFault>) -> FaultId {
        self.faults.plan(fault.into(), self.now)
    }

    /// Takes a fault off the plan.
    pub fn cancel(&mut self, fault: FaultId) {
        self.faults.cancel(fault);
    }

    /// Takes all faults off the plan.
    pub fn cancel_all_faults(&mut self) {
        self.faults.clear();
    }

    /// How many calls a planned fault has met.
    #[must_use]
    pub fn hits(&self, fault: FaultId) -> u64 {
        self.faults.hits(fault)
    }

    /// Whether a planned fault can meet no later call.
    #[must_use]
    pub fn is_spent(&self, fault: FaultId) -> bool {
        self.faults.is_spent(fault, self.now)
    }

    /// Changes the library right after the `nth` call of an endpoint from now on was answered, and before any other is.
    pub fn after_call(&mut self, endpoint: Endpoint, nth: u64, act: impl FnOnce(&mut World) + Send + 'static) {
        self.hooks.after(endpoint, nth, act);
    }

    /// Sets the quota of the API key, with a fresh window, or lifts it.
    pub fn limit_rate(&mut self, limit: Option<RateLimit>) {
        self.quota = limit.map(Quota::new);
    }

    /// Replaces the limits per endpoint. At first there is one, the measured limit on exports of MARC.
    pub fn limit_endpoints(&mut self, limits: impl IntoIterator<Item = EndpointLimit>) {
        self.throttles = limits.into_iter().map(Throttle::new).collect();
    }

    /// Spends a call of the quota on behalf of somebody else who uses the same key. Tells whether it was granted;
    /// without a quota everything is.
    pub fn spend_as_another(&mut self) -> bool {
        let now = self.now;
        self.quota.as_mut().is_none_or(|quota| quota.take(now).is_granted)
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

    /// How many export files nobody has deleted yet.
    #[must_use]
    pub fn export_files(&self) -> usize {
        self.exports.len()
    }

    /// Answers a request. Life up to now happens first; the journal notes the arrival. Whoever delivers the reply
    /// must call [`Simulator::finished`] once it is over, however it ended.
    pub fn handle(&mut self, http: &http::Request<Bytes>, arrival: Arrival) -> Reply {
        self.advance(arrival.now);
        let base_path = self.base_path.clone();
        let request = ApiRequest::read(http, &base_path);
        let endpoint = request.route.endpoint();
        let (call, in_flight) = self.arrived(&request, arrival);
        let sighting = Sighting { endpoint, parameters: &request.parameters, is_reused_connection: arrival.is_reused };
        let meddling = self.faults.meet(&sighting, self.now, self.world.zone());
        let answered = self.respond(&request, &meddling, arrival.connection);
        let travels = meddling.delivery(answered.response.body().len());
        let status = travels.brings_an_answer().then(|| answered.response.status().as_u16());
        self.journal.answered(call, status, answered.entries, meddling.describe());
        self.hooks.answered(endpoint, &mut self.world);
        let delay = meddling.delay + self.latency.of(answered.entries, answered.slow_entries, in_flight);
        Reply { response: answered.response, delay, delivery: travels, call, endpoint }
    }

    /// Notes that the reply to a call was delivered, or that its caller gave up.
    pub fn finished(&mut self, call: u64, endpoint: Endpoint, now: Timestamp) {
        self.journal.finished(call, endpoint, now);
    }

    fn arrived(&mut self, request: &ApiRequest<'_>, arrival: Arrival) -> (u64, usize) {
        let endpoint = request.route.endpoint();
        let call = self.journal.arrived(Call {
            number: 0,
            at: arrival.now,
            finished: None,
            endpoint,
            method: request.http.method().to_string(),
            path: request.http.uri().path().to_owned(),
            parameters: request.parameters.clone(),
            status: None,
            entries: 0,
            fault: None,
            connection: arrival.connection,
            in_flight: 0,
        });
        (call, self.journal.in_flight(endpoint))
    }
}
