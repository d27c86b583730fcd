//! Signatures of the Standard Webhooks specification 1.0 (symmetric form): HMAC-SHA-256 over `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::secret::Secret;

/// The value of the header `webhook-signature`.
///
/// A secret that begins with `whsec_` is base64 after it, as the specification has it; any other text is the key as it
/// stands. `at` is in unix seconds and equals the header `webhook-timestamp`.
#[must_use]
pub fn sign(secret: &Secret, id: &str, at: i64, body: &[u8]) -> String {
    let text = secret.expose();
    let decoded = text.strip_prefix("whsec_").and_then(|encoded| STANDARD.decode(encoded).ok());
    let key = decoded.as_deref().unwrap_or(text.as_bytes());
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn the_published_example_comes_out_as_published() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let signed = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn another_secret_time_or_body_signs_differently() {
        let of = |secret: &str, at, body: &[u8]| sign(&Secret::new(secret.to_owned()), "msg_1", at, body);
        let signed = of("plain words", 7, b"{}");
        for other in [of("plain word", 7, b"{}"), of("plain words", 8, b"{}"), of("plain words", 7, b"{ }")] {
            assert_ne!(signed, other);
        }
    }
}
