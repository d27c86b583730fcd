//! Who gives an order, and why.

use clap::Args;

use crate::app::Operator;

/// Options of commands that are kept in the history.
#[derive(Debug, Clone, Default, Args)]
pub struct OperatorArgs {
    /// Why; kept in the history and shown to others
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Options of orders that take a protection away, cost calls, or put a stream elsewhere.
#[derive(Debug, Clone, Args)]
pub struct Consent {
    /// Who says so, and why
    #[command(flatten)]
    pub operator: OperatorArgs,
    /// Says that this is meant
    #[arg(long)]
    pub yes: bool,
}

impl OperatorArgs {
    /// The reason with the name of whoever is logged in: that under which `sudo` was called, before that of the session.
    pub(super) fn operator(&self) -> Operator {
        let name = ["SUDO_USER", "LOGNAME", "USER"].into_iter().filter_map(|name| std::env::var(name).ok());
        let name = name.into_iter().find(|name| !name.trim().is_empty());
        Operator::new(name.as_deref(), self.reason.as_deref())
    }
}
