//! What the ops endpoint obeys; the configuration layer fills it in.

use std::net::SocketAddr;
use std::time::Duration;

use crate::secret::Secret;

/// Where the ops endpoint listens.
#[derive(Debug, Clone)]
pub struct OpsSettings {
    /// The address. Anything but loopback needs a token.
    pub listen: SocketAddr,
    /// The bearer token for actions.
    pub token: Option<Secret>,
}

/// When the service calls for help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSettings {
    /// A stream whose lag is longer is stale.
    pub stale_after: Duration,
}
