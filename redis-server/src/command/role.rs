//! The roles of commands for the code that runs them, beyond their flags.

/// The part that a command plays. No logic asks for a command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// None of those below.
    Plain,
    /// Begins a transaction, or says what it depends on: MULTI, WATCH.
    Begin,
    /// Runs a transaction: EXEC.
    Exec,
    /// Drops a transaction: DISCARD.
    Discard,
    /// Ends the session or brings it to its first state: QUIT, RESET.
    Leave,
    /// Begins or ends subscriptions.
    Subscribe,
    /// Asks for a sign of life: PING.
    Ping,
    /// Is said between a replica and its primary: REPLCONF.
    Replica,
    /// Sends a message to subscribers.
    Publish,
    /// Selects another database, in which the keys of later commands are.
    Select,
    /// Looks into all databases: INFO, MEMORY STATS.
    Survey,
    /// Runs the script that is its first argument.
    Eval,
    /// Runs the script or function whose name is its first argument.
    EvalNamed,
    /// Groups CLIENT's subcommands.
    Client,
    /// Says which replies a client wants: CLIENT REPLY.
    ClientReply,
    /// Has secrets in all arguments: AUTH.
    Auth,
    /// May have secrets behind AUTH: HELLO.
    Hello,
    /// May have secrets behind AUTH and AUTH2: MIGRATE.
    Migrate,
    /// Changes settings, some of which are secret: CONFIG SET.
    ConfigSet,
    /// Names users, and what identifies them: ACL SETUSER and its kin.
    Users,
}

impl Role {
    /// Whether it runs at once while a transaction is put together.
    pub const fn runs_inside_multi(self) -> bool {
        matches!(self, Self::Begin | Self::Exec | Self::Discard | Self::Leave)
    }

    /// Whether a RESP2 client may send it while it is subscribed.
    pub const fn is_allowed_while_subscribed(self) -> bool {
        matches!(self, Self::Subscribe | Self::Ping | Self::Leave)
    }
}
