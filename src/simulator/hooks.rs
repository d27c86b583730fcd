//! What a test lets happen exactly between two calls: an edit between page one and page two, say (BR-003).

use std::fmt;

use super::api::Endpoint;
use super::world::World;

/// Changes to the library that wait for a call.
#[derive(Default)]
pub(crate) struct Hooks(Vec<Hook>);

struct Hook {
    endpoint: Endpoint,
    /// Calls that must still be answered first.
    left: u64,
    act: Box<dyn FnOnce(&mut World) + Send>,
}

impl Hooks {
    /// Lets `act` happen right after the `nth` call of `endpoint` from now on was answered.
    pub(crate) fn after(&mut self, endpoint: Endpoint, nth: u64, act: impl FnOnce(&mut World) + Send + 'static) {
        self.0.push(Hook { endpoint, left: nth.max(1), act: Box::new(act) });
    }

    /// A call of `endpoint` was answered: what waited for it happens, in the order in which it was asked for.
    pub(crate) fn answered(&mut self, endpoint: Endpoint, world: &mut World) {
        for hook in &mut self.0 {
            if hook.endpoint == endpoint {
                hook.left -= 1;
            }
        }
        for hook in self.0.extract_if(.., |hook| hook.left == 0) {
            (hook.act)(world);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} hooks", self.0.len())
    }
}
