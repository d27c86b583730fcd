//! One simulator for many callers: a lock and a clock around the pure one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::faults::{FaultId, PlannedFault};
use super::in_process::InProcess;
use super::reply::Reply;
use super::simulator::{Arrival, Simulator};
use super::world::World;
use crate::clock::SharedClock;

/// A handle on a simulator; clones share it.
#[derive(Debug, Clone)]
pub struct SharedSimulator {
    simulator: Arc<Mutex<Simulator>>,
    clock: SharedClock,
    connections: Arc<AtomicU64>,
}

impl SharedSimulator {
    /// Shares `simulator`, which lives on `clock`: the truth, whatever the client's clock says.
    #[must_use]
    pub fn new(simulator: Simulator, clock: SharedClock) -> Self {
        Self { simulator: Arc::new(Mutex::new(simulator)), clock, connections: Arc::new(AtomicU64::new(0)) }
    }

    /// Looks at the simulator or changes it. It is moved to now first.
    pub fn with<T>(&self, act: impl FnOnce(&mut Simulator) -> T) -> T {
        let mut simulator = self.lock();
        simulator.advance(self.clock.now());
        act(&mut simulator)
    }

    /// Plans a fault from now on.
    pub fn plan(&self, fault: impl Into<PlannedFault>) -> FaultId {
        self.with(|simulator| simulator.plan(fault))
    }

    /// Looks at the library or changes it.
    pub fn world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        self.with(|simulator| act(&mut simulator.world))
    }

    /// A transport that reaches this simulator without sockets. Each has a connection of its own.
    #[must_use]
    pub fn transport(&self) -> InProcess {
        InProcess::new(self.clone())
    }

    /// A number for a new connection, from one.
    pub(crate) fn open_connection(&self) -> u64 {
        1 + self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands a request in. The call counts as under way until the returned guard is dropped.
    pub(crate) fn handle(&self, request: &http::Request<Bytes>, connection: Connection) -> (Reply, UnderWay) {
        let mut simulator = self.lock();
        let reply = simulator.handle(
            request,
            Arrival { now: self.clock.now(), connection: connection.number, is_reused: connection.is_reused },
        );
        let under_way = UnderWay { simulator: self.clone(), call: reply.call, endpoint: reply.endpoint };
        (reply, under_way)
    }

    fn lock(&self) -> MutexGuard<'_, Simulator> {
        // A caller that panicked in `with` has failed its test already; others may still look.
        self.simulator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection that a call comes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    /// Its number.
    pub(crate) number: u64,
    /// Whether an earlier call came on it.
    pub(crate) is_reused: bool,
}

/// A call that is not over yet.
pub(crate) struct UnderWay {
    simulator: SharedSimulator,
    call: u64,
    endpoint: super::api::Endpoint,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = self.simulator.clock.now();
        self.simulator.lock().finished(self.call, self.endpoint, now);
    }
}
