//! The table of all settings. Adding a setting is adding a row.
//!
//! Names, kinds and defaults are those of Redis 7.2; rows without a counterpart there say so in their text.

use super::setting::{Flags, Group, Kind, Setting, same};
use Flags as F;
use Group::{
    AppendOnly, Clients, Cluster, Encodings, General, Memory, Network, Observability, Process, Replication, Scripting,
    Security, Snapshots, Tls,
};
use Kind::{Bool, Directory, Enum, FileName, Lines, Text};

const MUT: F = F::MUTABLE;
const IMM: F = F::IMMUTABLE;
const OURS: F = F::IMMUTABLE.and(F::OURS);
const INERT: F = F::NO_EFFECT;
const CONTENT: F = F::NAMES_CONTENT;
const HIDDEN: F = F::HIDDEN;
const HIDDEN_INERT: F = F::HIDDEN.and(F::NO_EFFECT);
const IMM_INERT: F = F::IMMUTABLE.and(F::NO_EFFECT);
const SECRET: F = F::SENSITIVE;
const SECRET_INERT: F = F::SENSITIVE.and(F::NO_EFFECT);

const PORT: Kind = int(0, 65_535);
const U31: Kind = int(0, i32::MAX as i64);
const POSITIVE: Kind = int(1, i32::MAX as i64);
const U63: Kind = int(0, i64::MAX);
const BYTES: Kind = bytes(0);
const LOCAL: Kind = Enum(&["no", "yes", "local"]);
const SHUTDOWN: Kind = Kind::FlagWords(&[("default", 0), ("save", 1), ("nosave", 2), ("now", 4), ("force", 8)]);
const ADDRESSES: Kind = Kind::Words { max: 16, too_many: "Too many bind addresses specified." };

/// Every setting.
#[rustfmt::skip]
pub(super) const TABLE: &[Setting] = &[
    row(General, "port",               PORT, "6379", MUT, "TCP port; 0 turns TCP off"),
    row(General, "workers",            int(0, 1024), "0", OURS, "threads that serve clients; 0 is one per core (ours)"),
    row(General, "shards",             int(0, 65_536), "0", OURS, "parts of each database, a power of two; 0 is 4096; ignored by cluster nodes (ours)"),
    row(General, "databases",          POSITIVE, "16", IMM, "number of databases for SELECT"),
    row(General, "dir",                Directory, ".", F::PROTECTED, "working directory, for every file that the server writes"),
    row(General, "drain-timeout",      U31, "5", MUT, "seconds that open connections get to end at shutdown (ours)"),
    row(General, "shutdown-timeout",   U31, "10", MUT, "seconds that lagging replicas get at shutdown"),
    row(General, "shutdown-on-sigint", SHUTDOWN, "default", MUT, "shutdown by SIGINT: default, or save|nosave, now, force"),
    row(General, "shutdown-on-sigterm", SHUTDOWN, "default", MUT, "shutdown by SIGTERM: default, or save|nosave, now, force"),
    row(General, "hz",                 Kind::Clamped { min: 1, max: 500 }, "10", MUT, "runs of the background tasks per second"),
    row(General, "dynamic-hz",         Bool, "yes", INERT, "run background tasks more often with many clients"),
    row(General, "compatibility",      Enum(super::level::NAMES), "7.0", F::OURS, "server whose version, replies and file format are used (ours)"),
    row(General, "extended-redis-compatibility", Bool, "no", MUT, "with compatibility valkey-9, HELLO and INFO still name Redis"),
    row(General, "availability-zone", Text, "", MUT, "zone of this server, told to clients by HELLO and INFO"),
    row(General, "import-mode",        Bool, "no", MUT, "keep expired keys and evict nothing while data is imported"),
    row(General, "include",            Lines { min: 1, max: 1 }, "", IMM, "read another configuration file here; may hold wildcards"),
    row(General, "loadmodule",         Lines { min: 1, max: usize::MAX }, "", IMM_INERT, "load a module"),

    row(Network, "bind",               ADDRESSES, "* -::*", MUT, "addresses to listen on; '-' before one: may be absent"),
    row(Network, "bind-source-addr",   Text, "", MUT, "source address of connections to primaries and cluster nodes"),
    row(Network, "unixsocket",         Text, "", IMM, "path of a Unix socket to listen on"),
    row(Network, "unixsocketperm",     Kind::Octal { max: 0o777 }, "0", IMM, "permissions of the Unix socket, octal"),
    row(Network, "tcp-backlog",        U31, "511", IMM, "length of the queue of connections to accept"),
    row(Network, "tcp-keepalive",      U31, "300", MUT, "seconds between keepalive probes; 0 turns them off"),
    row(Network, "socket-mark-id",     int(0, u32::MAX as i64), "0", IMM_INERT, "firewall mark of the listening sockets"),
    row(Network, "io-threads",         int(1, 128), "1", IMM_INERT, "see workers"),
    row(Network, "io-threads-do-reads", Bool, "no", IMM_INERT, "see workers"),

    row(Tls, "tls-port",               PORT, "0", MUT, "TCP port for TLS; 0 turns it off"),
    row(Tls, "tls-cert-file",          Text, "", CONTENT, "the server's certificate chain, PEM"),
    row(Tls, "tls-key-file",           Text, "", CONTENT, "the certificate's private key, PEM"),
    row(Tls, "tls-ca-cert-file",       Text, "", CONTENT, "authorities that sign the clients' certificates, PEM"),
    row(Tls, "tls-auth-clients",       Enum(&["no", "yes", "optional"]), "yes", MUT, "whether clients must show a certificate"),
    row(Tls, "tls-auth-clients-user",  Enum(&["off", "CN", "URI"]), "off", MUT, "field of a client's certificate that names its user"),
    row(Tls, "tls-ca-cert-dir",        Text, "", INERT, "directory of authorities"),
    row(Tls, "tls-key-file-pass",      Text, "", SECRET_INERT, "passphrase of the private key"),
    row(Tls, "tls-client-cert-file",   Text, "", CONTENT, "certificate for outgoing connections; tls-cert-file if there is none"),
    row(Tls, "tls-client-key-file",    Text, "", CONTENT, "its private key"),
    row(Tls, "tls-client-key-file-pass", Text, "", SECRET_INERT, "passphrase of that key"),
    row(Tls, "tls-dh-params-file",     Text, "", INERT, "Diffie-Hellman parameters of old clients"),
    row(Tls, "tls-replication",        Bool, "no", MUT, "follow the primary over TLS"),
    row(Tls, "tls-cluster",            Bool, "no", MUT, "speak TLS on the cluster bus"),
    row(Tls, "tls-protocols",          Text, "", MUT, "versions of TLS that are spoken: TLSv1.2, TLSv1.3; both if empty"),
    row(Tls, "tls-ciphers",            Text, "", INERT, "ciphers of TLS 1.2"),
    row(Tls, "tls-ciphersuites",       Text, "", INERT, "cipher suites of TLS 1.3"),
    row(Tls, "tls-prefer-server-ciphers", Bool, "no", INERT, "the server's order of ciphers wins"),
    row(Tls, "tls-session-caching",    Bool, "yes", INERT, "allow sessions to resume"),
    row(Tls, "tls-session-cache-size", U31, "20480", INERT, "sessions kept for resumption"),
    row(Tls, "tls-session-cache-timeout", U31, "300", INERT, "seconds that a session may resume"),

    row(Clients, "maxclients",         int(1, u32::MAX as i64), "10000", MUT, "connections served at the same time"),
    row(Clients, "timeout",            U31, "0", MUT, "seconds after which an idle connection is closed; 0 never"),
    row(Clients, "client-output-buffer-limit", Kind::OutputLimits, OUTPUT_LIMITS, MUT, "class hard soft seconds: when a slow reader is cut off"),
    row(Clients, "client-output-buffer-pause", BYTES, "0", MUT, "bytes of unread replies at which a client's commands wait; 0: never, as in Redis (ours)"),
    row(Clients, "client-query-buffer-limit", bytes(1024 * 1024), "1gb", MUT, "bytes of one unfinished request"),
    row(Clients, "proto-max-bulk-len", bytes(1024 * 1024), "512mb", MUT, "longest string of the protocol"),
    row(Clients, "maxmemory-clients",  Kind::MemoryOrPercent, "0", MUT, "bytes, or percent of maxmemory, of all clients' buffers"),
    row(Clients, "tracking-table-max-keys", U63, "1000000", MUT, "keys remembered for client-side caching"),
    row(Clients, "max-new-connections-per-cycle", int(1, 1000), "10", INERT, "connections accepted at a time"),
    row(Clients, "min-io-threads-avoid-copy-reply", U31, "7", HIDDEN_INERT, "threads from which on replies are not copied"),
    row(Clients, "min-string-size-avoid-copy-reply", U31, "16384", HIDDEN_INERT, "bytes of a string from which on its reply is not copied"),
    row(Clients, "min-string-size-avoid-copy-reply-threaded", U31, "65536", HIDDEN_INERT, "the same with several threads"),
    row(Clients, "max-new-tls-connections-per-cycle", int(1, 1000), "1", INERT, "TLS connections accepted at a time"),

    row(Security, "protected-mode",    Bool, "yes", MUT, "without a password, serve this machine only"),
    row(Security, "requirepass",       Text, "", SECRET, "password of the default user"),
    row(Security, "rename-command",    Lines { min: 2, max: 2 }, "", IMM, "give a command another name, or none (\"\")"),
    row(Security, "enable-protected-configs", LOCAL, "no", IMM, "whether CONFIG SET may change dir and dbfilename"),
    row(Security, "enable-debug-command", LOCAL, "no", IMM, "whether DEBUG is served"),
    row(Security, "enable-module-command", LOCAL, "no", IMM, "whether MODULE LOAD is allowed; it loads nothing"),
    row(Security, "user",              Lines { min: 1, max: usize::MAX }, "", IMM, "define a user: name and rules"),
    row(Security, "aclfile",           Text, "", IMM, "file of users"),
    row(Security, "acllog-max-len",    U63, "128", MUT, "entries kept by ACL LOG"),
    row(Security, "acl-pubsub-default", Enum(&["allchannels", "resetchannels"]), "resetchannels", MUT, "channels that a new user may use"),

    row(Memory, "maxmemory",           BYTES, "0", MUT, "bytes of data before eviction; 0 is no limit"),
    row(Memory, "maxmemory-policy",    Enum(&["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"]), "noeviction", MUT, "which keys are evicted at maxmemory"),
    row(Memory, "maxmemory-samples",   POSITIVE, "5", MUT, "keys compared per eviction"),
    row(Memory, "maxmemory-eviction-tenacity", int(0, 100), "10", MUT, "how long a command may wait for eviction"),
    row(Memory, "lfu-log-factor",      U31, "10", MUT, "factor of the accesses that saturate the LFU counter"),
    row(Memory, "lfu-decay-time",      U31, "1", MUT, "minutes after which the LFU counter halves"),
    row(Memory, "active-expire-effort", int(1, 10), "1", MUT, "share of time spent on removing expired keys"),
    row(Memory, "lazyfree-lazy-eviction", Bool, "no", MUT, "free evicted values in the background"),
    row(Memory, "lazyfree-lazy-expire", Bool, "no", MUT, "free expired values in the background"),
    row(Memory, "lazyfree-lazy-server-del", Bool, "no", MUT, "free overwritten values in the background"),
    row(Memory, "lazyfree-lazy-user-del", Bool, "no", MUT, "DEL behaves like UNLINK"),
    row(Memory, "lazyfree-lazy-user-flush", Bool, "no", MUT, "FLUSHALL and FLUSHDB are ASYNC unless told otherwise"),
    row(Memory, "activerehashing",     Bool, "yes", INERT, "grow hash tables in idle time"),
    row(Memory, "activedefrag",        Bool, "no", INERT, "defragment memory"),
    row(Memory, "active-defrag-ignore-bytes", bytes(1), "100mb", INERT, "waste below which nothing is defragmented"),
    row(Memory, "active-defrag-threshold-lower", int(0, 1000), "10", INERT, "percent of waste that starts it"),
    row(Memory, "active-defrag-threshold-upper", int(0, 1000), "100", INERT, "percent of waste of full effort"),
    row(Memory, "active-defrag-cycle-min", int(1, 99), "1", INERT, "least percent of processor time"),
    row(Memory, "active-defrag-cycle-max", int(1, 99), "25", INERT, "greatest percent of processor time"),
    row(Memory, "active-defrag-max-scan-fields", int(1, i64::MAX), "1000", INERT, "elements walked at a time"),
    row(Memory, "jemalloc-bg-thread",  Bool, "yes", INERT, "the allocator of the C server"),

    row(Encodings, "hash-max-listpack-entries", U63, "512", MUT, "largest hash kept compact, fields").alias("hash-max-ziplist-entries"),
    row(Encodings, "hash-max-listpack-value", BYTES, "64", MUT, "longest field or value of a compact hash, bytes").alias("hash-max-ziplist-value"),
    row(Encodings, "list-max-listpack-size", int(i32::MIN as i64, i32::MAX as i64), "-2", MUT, "elements of a list's node, or -1..-5 for 4..64 KiB").alias("list-max-ziplist-size"),
    row(Encodings, "list-compress-depth", U31, "0", INERT, "nodes at both ends of a list that stay uncompressed"),
    row(Encodings, "set-max-intset-entries", U63, "512", MUT, "largest set of integers kept compact"),
    row(Encodings, "set-max-listpack-entries", U63, "0", MUT, "largest set of other members kept compact; 0 never, as in Redis 7.0; 128 with another compatibility"),
    row(Encodings, "set-max-listpack-value", BYTES, "64", MUT, "longest element of a compact set, bytes"),
    row(Encodings, "zset-max-listpack-entries", U63, "128", MUT, "largest sorted set kept compact").alias("zset-max-ziplist-entries"),
    row(Encodings, "zset-max-listpack-value", BYTES, "64", MUT, "longest element of a compact sorted set, bytes").alias("zset-max-ziplist-value"),
    row(Encodings, "hll-sparse-max-bytes", BYTES, "3000", MUT, "largest sparse HyperLogLog, bytes"),
    row(Encodings, "stream-node-max-bytes", BYTES, "4096", MUT, "bytes of a stream's node; 0 is no limit"),
    row(Encodings, "stream-node-max-entries", U63, "100", MUT, "entries of a stream's node; 0 is no limit"),
    row(Memory, "stream-idmp-duration", int(1, 86_400), "100", MUT, "seconds for which a stream recognizes messages of XADD IDMP; XCFGSET overrides it"),
    row(Memory, "stream-idmp-maxsize", int(1, 10_000), "100", MUT, "messages of a producer that a stream recognizes at most; XCFGSET overrides it"),

    row(Observability, "loglevel",     Enum(&["debug", "verbose", "notice", "warning"]), "notice", MUT, "least severity that is logged"),
    row(Observability, "logfile",      Text, "", IMM, "file for the log; empty is standard output"),
    row(Observability, "log-format",   Enum(&["text", "json"]), "text", OURS, "form of a log line (ours)"),
    row(Observability, "metrics-listen", Text, "", OURS, "address of the Prometheus endpoint, like 127.0.0.1:9121 (ours)"),
    row(Observability, "slowlog-log-slower-than", int(-1, i64::MAX), "10000", MUT, "microseconds from which a command is slow; -1 never").alias("commandlog-execution-slower-than"),
    row(Observability, "slowlog-max-len", U63, "128", MUT, "entries kept by SLOWLOG").alias("commandlog-slow-execution-max-len"),
    row(Observability, "commandlog-request-larger-than", int(-1, i64::MAX), "1048576", MUT, "bytes from which a request is large; -1 never"),
    row(Observability, "commandlog-large-request-max-len", U63, "128", MUT, "large requests kept by COMMANDLOG"),
    row(Observability, "commandlog-reply-larger-than", int(-1, i64::MAX), "1048576", MUT, "bytes from which a reply is large; -1 never"),
    row(Observability, "commandlog-large-reply-max-len", U63, "128", MUT, "large replies kept by COMMANDLOG"),
    row(Observability, "latency-monitor-threshold", U63, "0", MUT, "milliseconds from which LATENCY records; 0 never"),
    row(Observability, "latency-tracking", Bool, "yes", MUT, "keep a latency histogram per command"),
    row(Observability, "latency-tracking-info-percentiles", Kind::Percentiles, "50 99 99.9", MUT, "percentiles in INFO latencystats"),
    row(Observability, "notify-keyspace-events", Kind::Events, "", MUT, "classes of events to publish: KEA, g$lshzxetdmn"),
    row(Observability, "syslog-enabled", Bool, "no", IMM_INERT, "log to syslog"),
    row(Observability, "syslog-ident", Text, "redis", IMM_INERT, "name in syslog"),
    row(Observability, "syslog-facility", Enum(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]), "local0", IMM_INERT, "facility in syslog"),
    row(Observability, "always-show-logo", Bool, "no", IMM_INERT, "print the logo into log files too"),
    row(Observability, "enable-debug-assert", Bool, "no", HIDDEN_INERT, "check more while the server runs, for tests"),
    row(Observability, "hide-user-data-from-log", Bool, "yes", INERT, "leave users' data out of the log; it is never there"),
    row(Observability, "crash-log-enabled", Bool, "yes", MUT, "write a report on a crash"),
    row(Observability, "use-exit-on-panic", Bool, "no", HIDDEN_INERT, "exit instead of aborting, for tests"),
    row(Observability, "watchdog-period", U31, "0", HIDDEN_INERT, "milliseconds after which a stall is logged with its stack"),
    row(Observability, "crash-memcheck-enabled", Bool, "yes", INERT, "test memory on a crash"),

    row(Snapshots, "save",             Kind::SavePoints, "3600 1 300 100 60 10000", MUT, "seconds changes …: when to write a snapshot; \"\" never"),
    row(Snapshots, "dbfilename",       FileName, "dump.rdb", F::PROTECTED, "name of the snapshot file"),
    row(Snapshots, "stop-writes-on-bgsave-error", Bool, "yes", MUT, "refuse writes after a failed snapshot"),
    row(Snapshots, "rdb-version-check", Enum(&["strict", "relaxed"]), "strict", MUT, "whether RESTORE refuses payloads of versions that are not known"),
    row(Snapshots, "rdbcompression",   Bool, "yes", MUT, "compress strings in snapshots"),
    row(Snapshots, "rdbchecksum",      Bool, "yes", IMM, "end snapshots with a checksum"),
    row(Snapshots, "sanitize-dump-payload", Enum(&["no", "yes", "clients"]), "no", MUT, "accepted as in Redis; RESTORE checks all payloads in full"),
    row(Snapshots, "rdb-del-sync-files", Bool, "no", INERT, "remove files that replication left"),
    row(Snapshots, "key-load-delay",   int(i32::MIN as i64, i32::MAX as i64), "0", HIDDEN, "microseconds that each key's loading is delayed, for tests"),
    row(Snapshots, "loading-process-events-interval-bytes", int(1024, i32::MAX as i64), "2097152", HIDDEN, "files of fewer bytes are loaded before the server listens"),
    row(Snapshots, "rdb-key-save-delay", int(i32::MIN as i64, i32::MAX as i64), "0", HIDDEN, "microseconds that each key's saving is delayed, for tests"),
    row(Snapshots, "rdb-save-incremental-fsync", Bool, "yes", MUT, "sync a snapshot as it grows"),

    row(AppendOnly, "appendonly",      Bool, "no", MUT, "log every write to files"),
    row(AppendOnly, "appendfilename",  FileName, "appendonly.aof", IMM, "base name of the log's files"),
    row(AppendOnly, "appenddirname",   FileName, "appendonlydir", IMM, "directory of the log's files"),
    row(AppendOnly, "appendfsync",     Enum(&["everysec", "always", "no"]), "everysec", MUT, "when the log is forced to disk"),
    row(AppendOnly, "no-appendfsync-on-rewrite", Bool, "no", MUT, "do not force it during a rewrite"),
    row(AppendOnly, "auto-aof-rewrite-percentage", U31, "100", MUT, "growth that starts a rewrite; 0 never"),
    row(AppendOnly, "auto-aof-rewrite-min-size", BYTES, "64mb", MUT, "size below which nothing is rewritten"),
    row(AppendOnly, "aof-load-truncated", Bool, "yes", MUT, "load a log that ends in the middle of a command"),
    row(AppendOnly, "aof-use-rdb-preamble", Bool, "yes", MUT, "begin a rewritten log with a snapshot"),
    row(AppendOnly, "aof-timestamp-enabled", Bool, "no", MUT, "write times into the log"),
    row(AppendOnly, "aof-rewrite-incremental-fsync", Bool, "yes", MUT, "sync a rewritten log as it grows"),
    row(AppendOnly, "aof-disable-auto-gc", Bool, "no", MUT, "keep old files of the log"),

    row(Replication, "replicaof",      Kind::HostPort, "", IMM, "host port of the primary to follow").alias("slaveof"),
    row(Replication, "masterauth",     Text, "", SECRET, "password for the primary"),
    row(Replication, "masteruser",     Text, "", MUT, "user name for the primary"),
    row(Replication, "replica-serve-stale-data", Bool, "yes", MUT, "serve reads while the primary is away").alias("slave-serve-stale-data"),
    row(Replication, "replica-read-only", Bool, "yes", MUT, "refuse writes of clients on a replica").alias("slave-read-only"),
    row(Replication, "replica-priority", U31, "100", MUT, "rank for Sentinel; 0 is never promoted").alias("slave-priority"),
    row(Replication, "replica-announced", Bool, "yes", MUT, "be listed by Sentinel"),
    row(Replication, "replica-announce-ip", Text, "", MUT, "address told to the primary").alias("slave-announce-ip"),
    row(Replication, "replica-announce-port", PORT, "0", MUT, "port told to the primary").alias("slave-announce-port"),
    row(Replication, "replica-ignore-maxmemory", Bool, "yes", INERT, "leave eviction to the primary").alias("slave-ignore-maxmemory"),
    row(Replication, "replica-lazy-flush", Bool, "no", INERT, "empty a replica in the background").alias("slave-lazy-flush"),
    row(Replication, "replica-ignore-disk-write-errors", Bool, "no", INERT, "go on when a replica's disk fails"),
    row(Replication, "propagation-error-behavior", Enum(&["ignore", "panic", "panic-on-replicas"]), "ignore", MUT, "effect of a command that fails while an append-only file is loaded; panic refuses the start"),
    row(Replication, "repl-diskless-sync", Bool, "yes", MUT, "send the snapshot without a file"),
    row(Replication, "repl-diskless-sync-delay", U31, "5", MUT, "seconds to wait for more replicas"),
    row(Replication, "repl-diskless-sync-max-replicas", U31, "0", MUT, "replicas that end that wait; 0 waits in full"),
    row(Replication, "repl-diskless-load", Enum(&["disabled", "on-empty-db", "swapdb"]), "disabled", MUT, "load the snapshot as it comes, without a file"),
    row(Replication, "replica-refuse-empty-primary", Bool, "yes", MUT, "keep a replica's data if its primary comes back empty (ours)"),
    row(Replication, "repl-ping-replica-period", POSITIVE, "10", MUT, "seconds between pings to replicas").alias("repl-ping-slave-period"),
    row(Replication, "repl-timeout",   POSITIVE, "60", MUT, "seconds of silence that end the link"),
    row(Replication, "repl-disable-tcp-nodelay", Bool, "no", INERT, "fewer, larger packets to replicas"),
    row(Replication, "repl-backlog-size", bytes(1), "1mb", MUT, "bytes kept for replicas that come back"),
    row(Replication, "repl-backlog-ttl", U63, "3600", MUT, "seconds without replicas after which it is freed"),
    row(Replication, "min-replicas-to-write", U31, "0", MUT, "good replicas that a write needs").alias("min-slaves-to-write"),
    row(Replication, "min-replicas-max-lag", U31, "10", MUT, "seconds of lag that a good replica may have").alias("min-slaves-max-lag"),

    row(Scripting, "busy-reply-threshold", U63, "5000", MUT, "milliseconds of a script after which clients get BUSY").alias("lua-time-limit"),
    row(Scripting, "lua-enable-deprecated-api", Bool, "no", F::IMMUTABLE.and(HIDDEN_INERT), "names of Lua 5.0"),
    row(Scripting, "script-memory-limit", BYTES, "256mb", MUT, "bytes of Lua values, for scripts and functions each; 0 is no limit (ours)"),

    row(Cluster, "cluster-enabled",    Bool, "no", IMM, "be a node of a cluster"),
    row(Cluster, "cluster-config-file", Text, "nodes.conf", IMM, "file of the cluster's state"),
    row(Cluster, "cluster-node-timeout", U63, "15000", MUT, "milliseconds after which a node counts as failing"),
    row(Cluster, "cluster-port",       PORT, "0", IMM, "port of the cluster bus; 0 is port + 10000"),
    row(Cluster, "cluster-replica-validity-factor", U31, "10", MUT, "factor of the node time-out; a staler replica is not promoted").alias("cluster-slave-validity-factor"),
    row(Cluster, "cluster-allow-replica-migration", Bool, "yes", MUT, "replicas move to primaries without one"),
    row(Cluster, "cluster-migration-barrier", U31, "1", MUT, "replicas that a primary keeps"),
    row(Cluster, "cluster-require-full-coverage", Bool, "yes", MUT, "stop when a slot has no node"),
    row(Cluster, "cluster-replica-no-failover", Bool, "no", MUT, "never promote this replica").alias("cluster-slave-no-failover"),
    row(Cluster, "cluster-allow-reads-when-down", Bool, "no", MUT, "serve reads when the cluster is down"),
    row(Cluster, "cluster-allow-pubsubshard-when-down", Bool, "yes", MUT, "serve sharded pub/sub when the cluster is down"),
    row(Cluster, "cluster-link-sendbuf-limit", BYTES, "0", MUT, "bytes queued for a node; 0 is no limit"),
    row(Cluster, "cluster-manual-failover-timeout", int(1, i32::MAX as i64), "5000", MUT, "milliseconds that a manual failover may take while writes wait"),
    row(Cluster, "cluster-slot-migration-log-max-len", U31, "1000", MUT, "ended slot migrations that CLUSTER GETSLOTMIGRATIONS lists"),
    row(Cluster, "slot-migration-max-failover-repl-bytes", int(-1, i64::MAX), "0", MUT, "bytes of unsent changes at which writes pause for a slot migration; -1: any"),
    row(Cluster, "cluster-announce-ip", Text, "", MUT, "address told to the cluster"),
    row(Cluster, "cluster-announce-port", PORT, "0", MUT, "port told to the cluster"),
    row(Cluster, "cluster-announce-tls-port", PORT, "0", MUT, "TLS port told to the cluster"),
    row(Cluster, "cluster-announce-bus-port", PORT, "0", MUT, "bus port told to the cluster"),
    row(Cluster, "cluster-announce-hostname", Kind::Hostname, "", MUT, "host name told to the cluster"),
    row(Cluster, "cluster-announce-human-nodename", Text, "", MUT, "name for logs, told to the cluster"),
    row(Cluster, "cluster-preferred-endpoint-type", Enum(&["ip", "hostname", "unknown-endpoint"]), "ip", MUT, "kind of address in redirections"),

    row(Process, "daemonize",          Bool, "no", IMM, "run in the background"),
    row(Process, "supervised",         Enum(&["upstart", "systemd", "auto", "no"]), "no", IMM, "whether systemd or upstart is told of readiness"),
    row(Process, "pidfile",            Text, "", IMM, "file for the process id"),
    row(Process, "set-proc-title",     Bool, "yes", IMM, "show state in the process list"),
    row(Process, "proc-title-template", Kind::Title, "{title} {listen-addr} {server-mode}", MUT, "form of that title"),
    row(Process, "oom-score-adj",      Enum(&["no", "yes", "relative", "absolute"]), "no", MUT, "set the priority for the kernel's out-of-memory killer"),
    row(Process, "oom-score-adj-values", Kind::OomScores, "0 200 800", MUT, "scores of primary, replica and child"),
    row(Process, "disable-thp",        Bool, "yes", IMM, "no transparent huge pages"),
    row(Process, "locale-collate",     Text, "", INERT, "locale of comparisons in scripts"),
    row(Process, "ignore-warnings",    Text, "", INERT, "warnings of the C server not to stop for"),
    row(Process, "server_cpulist",     Text, "", IMM_INERT, "processors of the server's threads"),
    row(Process, "bio_cpulist",        Text, "", IMM_INERT, "processors of background threads"),
    row(Process, "aof_rewrite_cpulist", Text, "", IMM_INERT, "processors of the log's rewrite"),
    row(Process, "bgsave_cpulist",     Text, "", IMM_INERT, "processors of snapshots"),
];

/// The number of settings.
pub(super) const COUNT: usize = TABLE.len();

const OUTPUT_LIMITS: &str = "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60";

const fn row(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    flags: Flags,
    help: &'static str,
) -> Setting {
    Setting { name, alias: "", group, kind, default, flags, help }
}

const fn int(min: i64, max: i64) -> Kind {
    Kind::Int { min, max }
}

const fn bytes(min: i64) -> Kind {
    Kind::Memory { min, max: i64::MAX }
}

// No two settings share a name: the second would never be found.
const _: () = {
    let mut at = 0;
    while at < COUNT {
        let mut other = at + 1;
        while other < COUNT {
            assert!(!same(TABLE[at].name.as_bytes(), TABLE[other].name.as_bytes()), "a setting is listed twice");
            other += 1;
        }
        at += 1;
    }
};
