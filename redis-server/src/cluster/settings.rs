//! The operator's settings for a node.

use super::Millis;

/// The settings of a node, by redis.conf's names. They may change at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `cluster-node-timeout`.
    pub node_timeout: Millis,
    /// `cluster-replica-validity-factor`.
    pub replica_validity_factor: u64,
    /// `repl-ping-replica-period`, in milliseconds.
    pub replica_ping_period: Millis,
    /// `cluster-migration-barrier`.
    pub migration_barrier: usize,
    /// `cluster-allow-replica-migration`.
    pub allow_replica_migration: bool,
    /// `cluster-require-full-coverage`.
    pub require_full_coverage: bool,
    /// `cluster-replica-no-failover`.
    pub replica_no_failover: bool,
    /// `cluster-manual-failover-timeout`: how long clients are held at most.
    pub manual_failover_timeout: Millis,
    /// `slot-migration-max-failover-repl-bytes`: how much of the stream may be left when clients are held; none: as much as there is.
    pub max_failover_repl_bytes: Option<u64>,
    /// `cluster-slot-migration-log-max-len`: moves that are told of when they are over.
    pub migration_log_max_len: usize,
    /// `repl-timeout`, in milliseconds.
    pub repl_timeout: Millis,
    /// The hard limit of `client-output-buffer-limit` for replicas; 0 if there is none.
    pub replica_buffer_limit: u64,
    /// `tls-cluster`.
    pub tls: bool,
    /// The announced port without TLS: `cluster-announce-port`, or `port`.
    pub port: u16,
    /// The announced port with TLS: `cluster-announce-tls-port`, or `tls-port`.
    pub tls_port: u16,
    /// The announced bus port: `cluster-announce-bus-port`, `cluster-port`, or the port and 10,000.
    pub bus_port: u16,
    /// `cluster-announce-ip`; empty if others are to find it out.
    pub announce_ip: String,
    /// `cluster-announce-hostname`.
    pub hostname: String,
    /// `cluster-announce-human-nodename`.
    pub nodename: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            node_timeout: 15_000,
            replica_validity_factor: 10,
            replica_ping_period: 10_000,
            migration_barrier: 1,
            allow_replica_migration: true,
            require_full_coverage: true,
            replica_no_failover: false,
            manual_failover_timeout: 5000,
            max_failover_repl_bytes: Some(0),
            migration_log_max_len: 1000,
            repl_timeout: 60_000,
            replica_buffer_limit: 0,
            tls: false,
            port: 6379,
            tls_port: 0,
            bus_port: 16_379,
            announce_ip: String::new(),
            hostname: String::new(),
            nodename: String::new(),
        }
    }
}
