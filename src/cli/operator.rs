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

impl OperatorArgs {
    /// The reason with the name of whoever is logged in: that under which `sudo` was called, before that of the session.
    pub(super) fn operator(&self) -> Operator {
        let name = ["SUDO_USER", "LOGNAME", "USER"].into_iter().filter_map(|name| std::env::var(name).ok());
        let name = name.into_iter().find(|name| !name.trim().is_empty());
        Operator::new(name.as_deref(), self.reason.as_deref())
    }
}
