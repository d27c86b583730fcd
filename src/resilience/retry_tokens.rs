//! A bucket of retry tokens shared by all calls of one API key: in a long outage first attempts still go out, but
//! retries on top of them dry up, so that we do not multiply the load on a server that is already down.

/// Tokens in a full bucket.
const CAPACITY: u32 = 100;
/// Price of repeating a transient failure.
const TRANSIENT: u32 = 10;
/// Price of repeating a throttled call that came without a usable wait: the server is alive and answers cheaply.
const THROTTLE: u32 = 5;
/// What a call that succeeded at its first attempt puts back.
const TRICKLE: u32 = 1;

/// Why a retry is asked for; sets its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPrice {
    /// A transient failure.
    Transient,
    /// A throttle without a usable wait.
    Throttle,
}

/// The bucket. The level stays within 0 and its capacity and changes only through withdrawals and successes, never
/// with time: no clock can fill it (BR-105).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryTokens {
    level: u32,
}

impl Default for RetryTokens {
    fn default() -> Self {
        Self { level: CAPACITY }
    }
}

impl RetryTokens {
    /// Takes the price of one retry, or takes nothing and says no.
    #[must_use]
    pub fn try_withdraw(&mut self, price: RetryPrice) -> Option<u32> {
        let price = match price {
            RetryPrice::Transient => TRANSIENT,
            RetryPrice::Throttle => THROTTLE,
        };
        self.level = self.level.checked_sub(price)?;
        Some(price)
    }

    /// A call succeeded after having withdrawn `paid` in all: gives it back, or a trickle if it had paid nothing.
    pub fn refund(&mut self, paid: u32) {
        self.level = self.level.saturating_add(paid.max(TRICKLE)).min(CAPACITY);
    }

    /// Tokens left.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_transient_or_twenty_throttled_retries_empty_the_bucket() {
        for (price, retries) in [(RetryPrice::Transient, 10), (RetryPrice::Throttle, 20)] {
            let mut tokens = RetryTokens::default();
            for _ in 0..retries {
                assert!(tokens.try_withdraw(price).is_some());
            }
            assert_eq!(tokens.try_withdraw(price), None);
            assert_eq!(tokens.level(), 0);
        }
    }

    #[test]
    fn success_refunds_what_was_paid_and_never_overfills() {
        let mut tokens = RetryTokens::default();
        let paid = tokens.try_withdraw(RetryPrice::Transient).expect("a full bucket");
        tokens.refund(paid);
        assert_eq!(tokens.level(), CAPACITY);
        tokens.refund(50);
        assert_eq!(tokens.level(), CAPACITY);
        assert!(tokens.try_withdraw(RetryPrice::Throttle).is_some());
        tokens.refund(0);
        assert_eq!(tokens.level(), CAPACITY - THROTTLE + TRICKLE);
    }
}
