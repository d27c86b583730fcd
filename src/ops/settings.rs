//! What the ops endpoint obeys; the configuration layer fills it in.

use std::net::SocketAddr;

use crate::secret::Secret;

/// Where the ops endpoint listens.
#[derive(Debug, Clone)]
pub struct OpsSettings {
    /// The address. Anything but loopback needs a token.
    pub listen: SocketAddr,
    /// The bearer token for actions.
    pub token: Option<Secret>,
}
