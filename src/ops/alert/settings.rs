//! What alerts obey; the configuration layer fills it in.

use std::time::Duration;

use crate::secret::Secret;

/// When the service calls for help, and where.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// Where notices go besides the log.
    pub webhook: Option<WebhookSettings>,
    /// Asked for every minute while all goes on: whoever listens there calls for help when it stops. The address is
    /// itself the secret of most such services.
    pub deadman_url: Option<Secret>,
    /// A stream is stale when its lag is longer by this than its schedule explains.
    pub stale_after: Duration,
}

/// A webhook.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Its address. Many services put the secret into it.
    pub url: Secret,
    /// The key with which notices are signed; `None` sends them unsigned.
    pub secret: Option<Secret>,
}
