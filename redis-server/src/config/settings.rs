//! The settings that the server reads, by name. A name or kind that the table does not have fails to compile.

use super::setting::{Lines, Number, Switch, Text, Words, lines, number, switch, text, words};

macro_rules! settings {
    ($($type:ident $make:ident { $($id:ident $name:literal,)* })*) => { $($(
        #[doc = concat!("`", $name, "`")]
        pub const $id: $type = $make($name);
    )*)* };
}

settings! {
    Number number {
        PORT "port",
        WORKERS "workers",
        SHARDS "shards",
        DATABASES "databases",
        DRAIN_TIMEOUT "drain-timeout",
        HZ "hz",
        UNIXSOCKETPERM "unixsocketperm",
        TCP_BACKLOG "tcp-backlog",
        TCP_KEEPALIVE "tcp-keepalive",
        TLS_PORT "tls-port",
        TLS_AUTH_CLIENTS "tls-auth-clients",
        MAXCLIENTS "maxclients",
        TIMEOUT "timeout",
        CLIENT_OUTPUT_BUFFER_PAUSE "client-output-buffer-pause",
        CLIENT_QUERY_BUFFER_LIMIT "client-query-buffer-limit",
        PROTO_MAX_BULK_LEN "proto-max-bulk-len",
        ENABLE_PROTECTED_CONFIGS "enable-protected-configs",
        ENABLE_DEBUG_COMMAND "enable-debug-command",
        ENABLE_MODULE_COMMAND "enable-module-command",
        MAXMEMORY "maxmemory",
        MAXMEMORY_CLIENTS "maxmemory-clients",
        MAXMEMORY_POLICY "maxmemory-policy",
        MAXMEMORY_SAMPLES "maxmemory-samples",
        MAXMEMORY_EVICTION_TENACITY "maxmemory-eviction-tenacity",
        LFU_LOG_FACTOR "lfu-log-factor",
        LFU_DECAY_TIME "lfu-decay-time",
        ACTIVE_EXPIRE_EFFORT "active-expire-effort",
        HASH_MAX_LISTPACK_ENTRIES "hash-max-listpack-entries",
        HASH_MAX_LISTPACK_VALUE "hash-max-listpack-value",
        LIST_MAX_LISTPACK_SIZE "list-max-listpack-size",
        SET_MAX_INTSET_ENTRIES "set-max-intset-entries",
        SET_MAX_LISTPACK_ENTRIES "set-max-listpack-entries",
        SET_MAX_LISTPACK_VALUE "set-max-listpack-value",
        ZSET_MAX_LISTPACK_ENTRIES "zset-max-listpack-entries",
        ZSET_MAX_LISTPACK_VALUE "zset-max-listpack-value",
        HLL_SPARSE_MAX_BYTES "hll-sparse-max-bytes",
        STREAM_NODE_MAX_BYTES "stream-node-max-bytes",
        STREAM_NODE_MAX_ENTRIES "stream-node-max-entries",
        LOGLEVEL "loglevel",
        LOG_FORMAT "log-format",
        SLOWLOG_LOG_SLOWER_THAN "slowlog-log-slower-than",
        SLOWLOG_MAX_LEN "slowlog-max-len",
        TRACKING_TABLE_MAX_KEYS "tracking-table-max-keys",
        LATENCY_MONITOR_THRESHOLD "latency-monitor-threshold",
        NOTIFY_KEYSPACE_EVENTS "notify-keyspace-events",
        BUSY_REPLY_THRESHOLD "busy-reply-threshold",
        SCRIPT_MEMORY_LIMIT "script-memory-limit",
        ACLLOG_MAX_LEN "acllog-max-len",
        KEY_LOAD_DELAY "key-load-delay",
        RDB_KEY_SAVE_DELAY "rdb-key-save-delay",
        SHUTDOWN_ON_SIGINT "shutdown-on-sigint",
        SHUTDOWN_ON_SIGTERM "shutdown-on-sigterm",
        ACL_PUBSUB_DEFAULT "acl-pubsub-default",
    }
    Switch switch {
        PROTECTED_MODE "protected-mode",
        APPENDONLY "appendonly",
        RDBCHECKSUM "rdbchecksum",
        RDBCOMPRESSION "rdbcompression",
        RDB_SAVE_INCREMENTAL_FSYNC "rdb-save-incremental-fsync",
        LAZYFREE_LAZY_EVICTION "lazyfree-lazy-eviction",
        LAZYFREE_LAZY_EXPIRE "lazyfree-lazy-expire",
        LAZYFREE_LAZY_SERVER_DEL "lazyfree-lazy-server-del",
        LAZYFREE_LAZY_USER_DEL "lazyfree-lazy-user-del",
        LAZYFREE_LAZY_USER_FLUSH "lazyfree-lazy-user-flush",
        LATENCY_TRACKING "latency-tracking",
    }
    Text text {
        DBFILENAME "dbfilename",
        DIR "dir",
        UNIXSOCKET "unixsocket",
        TLS_CERT_FILE "tls-cert-file",
        TLS_KEY_FILE "tls-key-file",
        TLS_CA_CERT_FILE "tls-ca-cert-file",
        REQUIREPASS "requirepass",
        ACLFILE "aclfile",
        LOGFILE "logfile",
        METRICS_LISTEN "metrics-listen",
        PIDFILE "pidfile",
    }
    Words words {
        BIND "bind",
        CLIENT_OUTPUT_BUFFER_LIMIT "client-output-buffer-limit",
        LATENCY_TRACKING_INFO_PERCENTILES "latency-tracking-info-percentiles",
        SAVE "save",
    }
    Lines lines {
        RENAME_COMMAND "rename-command",
        USER "user",
    }
}
