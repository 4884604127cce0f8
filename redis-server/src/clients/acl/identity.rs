//! The identity of a client.

use std::sync::Arc;

use super::table::{Account, Table};
use super::user::User;

/// The account of a client, and what is known of its permissions.
#[derive(Clone, Debug)]
pub struct Identity {
    account: Arc<Account>,
    /// The account's user at `seen`.
    user: Arc<User>,
    authenticated: bool,
    /// The table's version when the user was looked up.
    seen: u64,
    /// The table's version at which nothing needs to be checked; 0 is none.
    cleared: u64,
}

impl Identity {
    /// A client that acts for an account, whether it has authenticated or not.
    pub fn new(table: &Table, account: Arc<Account>, authenticated: bool) -> Self {
        let user = account.user();
        let mut identity = Self { account, user, authenticated, seen: 0, cleared: 0 };
        identity.refresh(table);
        identity
    }

    /// A client that has just come, or begins anew: while the default user needs no password, it has authenticated.
    pub fn newcomer(table: &Table) -> Self {
        Self::new(table, Arc::clone(table.default_account()), table.is_open())
    }

    /// Whether nothing needs to be checked: the user is unrestricted, and has not changed since that was found.
    #[inline]
    pub fn is_cleared(&self, table: &Table) -> bool {
        self.cleared == table.version()
    }

    /// Follows changes of the table.
    pub fn refresh(&mut self, table: &Table) {
        let version = table.version();
        if self.seen == version {
            return;
        }
        self.user = self.account.user();
        self.seen = version;
        let free = self.may_enter(table) && self.user.is_unrestricted();
        self.cleared = if free { version } else { 0 };
    }

    /// Whether commands run at all: the client has authenticated, or the default user needs no password.
    pub fn may_enter(&self, table: &Table) -> bool {
        (self.authenticated || table.is_open()) && !self.account.is_gone()
    }

    /// Whether the client's user has been removed.
    pub fn is_gone(&self) -> bool {
        self.account.is_gone()
    }

    /// The account.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The account's user when it was last looked up.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }
}
