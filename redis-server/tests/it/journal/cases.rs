//! Clients' commands, and the journal that they cause.

/// Commands of clients, and the expected journal.
pub(super) struct Case {
    /// Commands between ` / `. `& …`: of a second client, which has to wait. `wait`: until times of some milliseconds are over.
    /// `~ REPLY …`: again and again, until this is the reply (there is a key `mark`). `{dump}`, `{functions}`, `{port}`: something dumped, the port of another server.
    pub(super) lines: &'static str,
    /// Our journal, and the reason, where it differs from that of the genuine server.
    pub(super) ours: Option<(&'static str, &'static str)>,
}

const fn c(lines: &'static str) -> Case {
    Case { lines, ours: None }
}

const fn differs(lines: &'static str, ours: &'static str, why: &'static str) -> Case {
    Case { lines, ours: Some((ours, why)) }
}

const READ: &str = "how much a group has read is kept too, for its lag";
const AGAIN: &str = "how often an entry was delivered is kept too";
const LOST: &str = "an entry that is gone is acknowledged, whoever has claimed it";

/// All that writes, at least once.
pub(super) const CASES: &[Case] = &[
    // Strings.
    c("SET k v / SET k w XX / SET k x NX / SET l v KEEPTTL / SET k 5"),
    c("SET k v EX 100 / SET k v PX 100000 NX / SET l v EXAT 9999999999 / SET l v PXAT 9999999999000"),
    c("SET k v GET / SET k w GET EX 100 / SET k GET XX GET KEEPTTL"),
    c("SETEX k 100 v / PSETEX l 100000 v / SETNX k w / SETNX m w / GETSET k x / GETSET n x"),
    c("SET k v / GETEX k / GETEX k EX 100 / GETEX k PERSIST / GETEX k PERSIST / GETEX k EXAT 1 / GETEX k"),
    c(
        "CONFIG SET lazyfree-lazy-expire yes / SET k v / GETEX k PXAT 1 / SET k v / EXPIREAT k 1 / CONFIG SET lazyfree-lazy-expire no",
    ),
    c("SET k v / GETDEL k / GETDEL k"),
    c("INCR k / INCRBY k 4 / DECR k / DECRBY k 2 / INCRBYFLOAT k 1.5 / EXPIRE k 100 / INCRBYFLOAT k 0.1"),
    c("MSET a 1 b 2 / MSETNX a 1 c 3 / MSETNX c 3 d 4 / APPEND a x / SETRANGE a 3 y / SETRANGE e 3 y"),
    // Keys.
    c(
        "SET k v / EXPIRE k 100 / PEXPIRE k 100000 / EXPIREAT k 9999999999 / PEXPIREAT k 9999999999000 / PERSIST k / PERSIST k",
    ),
    c("SET k v / EXPIRE k -1 / EXPIRE k 100 / SET k v / PEXPIREAT k 1"),
    differs(
        "SET k v / EXPIRE k 100 NX / EXPIRE k 1000 GT",
        "SET k v\nPEXPIREAT k T+100\nPEXPIREAT k T+1000",
        "the condition was met, and says nothing any more",
    ),
    c(
        "SET k v / DEL k l / DEL k / SET k v / UNLINK k l / SET k v / RENAME k l / SET k v / RENAMENX k l / RENAMENX k m",
    ),
    c(
        "SET k v EX 100 / COPY k l / COPY k l / COPY k l REPLACE / COPY k l DB 3 / MOVE k 2 / SELECT 2 / SET j v / MOVE j 0 / SELECT 0",
    ),
    c("SET x v / RESTORE k 0 {dump} / RESTORE k 100000 {dump} REPLACE / RESTORE k 9999999999000 {dump} REPLACE ABSTTL"),
    c("SET k v / RESTORE k 1 {dump} REPLACE ABSTTL / RESTORE k 1 {dump} ABSTTL / RESTORE-ASKING k 100000 {dump}"),
    c("SET k v / SET l v / SWAPDB 0 1 / SELECT 1 / SET m v / SWAPDB 1 0 / SELECT 0 / SWAPDB 3 3"),
    c("SET k v / FLUSHDB / FLUSHDB ASYNC / FLUSHALL / FLUSHALL SYNC / SELECT 5 / FLUSHDB / FLUSHALL / SELECT 0"),
    differs(
        "SET k v / SET l v / MIGRATE 127.0.0.1 {port} k 0 5000 / MIGRATE 127.0.0.1 {port} k 0 5000 / SET k v / MIGRATE 127.0.0.1 {port} \"\" 0 5000 REPLACE KEYS k l m",
        "SET k v\nSET l v\nDEL k\nSET k v\n[DEL k | DEL l]",
        "each key is deleted when the target has it, also if the conversation breaks off later",
    ),
    c("SET k v / MIGRATE 127.0.0.1 {port} k 0 5000 COPY REPLACE"),
    // Reads record nothing.
    c(
        "SET k v / GET k / EXISTS k / TTL k / TYPE k / TOUCH k / OBJECT ENCODING k / STRLEN k / SCAN 0 / KEYS * / RANDOMKEY / DUMP k",
    ),
    // Bits, counts.
    c(
        "SETBIT k 7 1 / SETBIT k 7 1 / BITFIELD k SET u8 0 5 INCRBY u8 8 1 / BITFIELD k GET u8 0 / BITOP NOT l k / BITOP AND l k m / BITOP AND l m n",
    ),
    c("PFADD p a b / PFADD p a / PFADD q c / PFCOUNT p / PFCOUNT p / PFMERGE r p q / PFDEBUG TODENSE p / PFADD e"),
    // Hashes.
    c(
        "HSET h a 1 b 2 / HMSET h c 3 / HSETNX h a 9 / HSETNX h d 4 / HINCRBY h a 2 / HINCRBYFLOAT h a 0.5 / HDEL h a b / HDEL h z / HDEL h c d",
    ),
    // Lists.
    c(
        "RPUSH l a b c d e f / LPUSH l z / LPUSHX l y / RPUSHX l g / LPUSHX m y / LPOP l / RPOP l / LPOP l 2 / RPOP l 0 / LPOP m",
    ),
    c("RPUSH l a b a c / LINSERT l BEFORE b x / LREM l 1 a / LREM l 1 q / LSET l 0 z / LTRIM l 0 1 / LTRIM l 5 6"),
    c(
        "RPUSH l a b c d / LMOVE l m LEFT RIGHT / RPOPLPUSH l m / RPOPLPUSH m m / LMPOP 2 x m RIGHT COUNT 9 / LMPOP 1 l LEFT",
    ),
    c(
        "RPUSH l a b c d e f / BLPOP x l 0 / BRPOP l 0 / BLMOVE l m LEFT RIGHT 0 / BRPOPLPUSH l m 0 / BLMPOP 0 1 m LEFT COUNT 5",
    ),
    c("& BLPOP x l 0 / RPUSH l a b"),
    c("& BRPOP l 0 / RPUSH l a"),
    differs(
        "& BLMOVE l m LEFT RIGHT 0 / RPUSH l a",
        "RPUSH l a\nLMOVE l m LEFT RIGHT",
        "in the letters of the client, as when it need not wait",
    ),
    c("& BRPOPLPUSH l m 0 / RPUSH l a"),
    c("& BLMPOP 0 2 x l RIGHT COUNT 2 / RPUSH l a b c"),
    c("& BLPOP l 0 / MULTI / RPUSH l a b / SET k v / EXEC"),
    c("& BLPOP l 0 / EVAL \"redis.call('RPUSH', 'l', 'a') redis.call('SET', 'k', 'v')\" 0"),
    c("SELECT 3 / RPUSH l a / SELECT 0 / & BLPOP l 0 / SWAPDB 0 3"),
    // Sets.
    c("SADD s a b c d / SADD s a / SREM s a / SREM s z / SMOVE s t b / SMOVE s t z / SREM s c d"),
    c("SADD s a / SPOP s / SADD s a b / SPOP s 5 / SPOP s / SPOP s 3"),
    c(
        "SADD a 1 2 3 / SADD b 2 3 4 / SINTERSTORE c a b / SUNIONSTORE c a b / SDIFFSTORE c a b / SINTERSTORE c a z / SINTERSTORE c a z",
    ),
    // Sorted sets.
    c("ZADD z 1 a 2 b / ZADD z XX 1 a / ZADD z GT CH 5 a / ZADD z INCR 1.5 a / ZINCRBY z 0.1 b / ZREM z a / ZREM z q"),
    c(
        "ZADD z 1 a 2 b 3 c 4 d 5 e 6 f / ZREMRANGEBYRANK z 0 0 / ZREMRANGEBYSCORE z 2 2 / ZREMRANGEBYLEX z [c [c / ZPOPMIN z / ZPOPMAX z 5 / ZPOPMIN z",
    ),
    c(
        "ZADD z 1 a 2 b 3 c / ZADD y 1 a / ZUNIONSTORE x 2 z y / ZINTERSTORE x 2 z y WEIGHTS 2 3 / ZDIFFSTORE x 2 z y / ZRANGESTORE x z 0 1 / ZRANGESTORE x q 0 1",
    ),
    c(
        "ZADD z 1 a 2 b 3 c 4 d 5 e / BZPOPMIN y z 0 / BZPOPMAX z 0 / ZMPOP 2 y z MIN COUNT 2 / BZMPOP 0 1 z MAX COUNT 7",
    ),
    c("& BZPOPMIN z 0 / ZADD z 1 a 2 b"),
    c("& BZPOPMAX z 0 / ZADD z 1 a 2 b"),
    c("& BZMPOP 0 2 y z MAX COUNT 2 / ZADD z 1 a 2 b 3 c"),
    c("RPUSH l 3 1 2 / SORT l / SORT l STORE m / SORT l BY nosort GET # STORE m / SORT q STORE m / SORT q STORE m"),
    differs(
        "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania / GEOADD g NX 1 1 Palermo / GEOADD g CH 1 1 Palermo",
        "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania\nGEOADD g CH 1 1 Palermo",
        "the same cell comes of the same place, and it is shorter than ZADD with its score",
    ),
    differs(
        "GEOADD g 13.361389 38.115556 Palermo / GEORADIUS g 13 38 200 km STORE h / GEORADIUSBYMEMBER g Palermo 9 km STOREDIST h / GEOSEARCHSTORE h g FROMMEMBER Palermo BYRADIUS 9 km / GEOSEARCHSTORE h q FROMLONLAT 1 1 BYRADIUS 9 km",
        "GEOADD g 13.361389 38.115556 Palermo\nGEORADIUS g 13 38 200 km STORE h\nGEORADIUSBYMEMBER g Palermo 9 km STOREDIST h\nGEOSEARCHSTORE h g FROMMEMBER Palermo BYRADIUS 9 km\nGEOSEARCHSTORE h q FROMLONLAT 1 1 BYRADIUS 9 km",
        "GEOADD is said as it is",
    ),
    // Streams.
    c(
        "XADD x 1-1 f v / XADD x 1-* f v / XADD x * f v / XADD y NOMKSTREAM * f v / XADD x NOMKSTREAM MAXLEN 2 * f v / XADD x MINID = 2 * f v",
    ),
    differs(
        "XADD x 1-1 f v / XADD x MAXLEN ~ 0 LIMIT 5 1-2 f v / XADD x MINID ~ 2 1-3 f v",
        "XADD x 1-1 f v\nXADD x MAXLEN = 0 1-2 f v\nXADD x MINID = 2 1-3 f v",
        "without its tilde LIMIT is an error to clients; of a stream without entries there is no first id",
    ),
    c(
        "XADD x 1-1 f v / XADD x 1-2 f v / XADD x 1-3 f v / XTRIM x MAXLEN 2 / XTRIM x MAXLEN ~ 0 / XTRIM x MINID = 1-3 / XDEL x 1-3 / XDEL x 1-3",
    ),
    differs(
        "CONFIG SET stream-node-max-entries 2 / XADD x 1-1 f v / XADD x 1-2 f v / XADD x 1-3 f v / XTRIM x MAXLEN ~ 1 / XADD x MAXLEN ~ 1 1-4 f v / XTRIM x MINID ~ 1-9 / CONFIG SET stream-node-max-entries 100",
        "XADD x 1-1 f v\nXADD x 1-2 f v\nXADD x 1-3 f v\nXTRIM x MAXLEN = 1\nXADD x MAXLEN = 2 1-4 f v\nXTRIM x MINID = 1-9",
        "of a stream without entries there is no first id",
    ),
    c("XADD x 1-1 f v / XSETID x 5-0 / XSETID x 6-0 ENTRIESADDED 9 MAXDELETEDID 2-0"),
    c(
        "XGROUP CREATE x g $ MKSTREAM / XGROUP CREATE x h 0 ENTRIESREAD 0 / XGROUP CREATECONSUMER x g c / XGROUP CREATECONSUMER x g c / XGROUP SETID x g 0 / XGROUP DELCONSUMER x g c / XGROUP DESTROY x g / XGROUP DESTROY x g",
    ),
    differs(
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XADD x 1-2 f v / XREADGROUP GROUP g c COUNT 1 STREAMS x > / XREADGROUP GROUP g c STREAMS x > / XREADGROUP GROUP g c STREAMS x > / XACK x g 1-1 / XACK x g 1-1",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\nXADD x 1-2 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1 | XGROUP SETID x g 1-1 ENTRIESREAD 1]\n[XCLAIM x g c 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XGROUP SETID x g 1-2 ENTRIESREAD 2]\nXACK x g 1-1",
        READ,
    ),
    c("XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XREADGROUP GROUP g c NOACK STREAMS x >"),
    differs(
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XREADGROUP GROUP g c STREAMS x > / XREADGROUP GROUP g c STREAMS x 0",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1 | XGROUP SETID x g 1-1 ENTRIESREAD 1]\nXCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-1",
        AGAIN,
    ),
    differs(
        "XGROUP CREATE x g 0 MKSTREAM / & XREADGROUP GROUP g c BLOCK 0 STREAMS x > / XADD x 1-1 f v",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1 | XGROUP SETID x g 1-1 ENTRIESREAD 1]",
        READ,
    ),
    differs(
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XADD x 1-2 f v / XREADGROUP GROUP g c STREAMS x > / XCLAIM x g d 0 1-1 / XCLAIM x g e 0 1-1 1-2 JUSTID / XCLAIM x g e 0 1-2 TIME 1000 RETRYCOUNT 7 / XCLAIM x g e 9999999 1-1",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\nXADD x 1-2 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XCLAIM x g c 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XGROUP SETID x g 1-2 ENTRIESREAD 2]\nXCLAIM x g d 0 1-1 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2\n[XCLAIM x g e 0 1-1 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2 | XCLAIM x g e 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2]\nXCLAIM x g e 0 1-2 TIME 1000 RETRYCOUNT 7 FORCE JUSTID LASTID 1-2",
        READ,
    ),
    c(
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XCLAIM x g d 0 1-1 FORCE LASTID 3-0 / XCLAIM x g d 0 1-1 LASTID 2-0",
    ),
    differs(
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XADD x 1-2 f v / XREADGROUP GROUP g c STREAMS x > / XAUTOCLAIM x g d 0 0 COUNT 1 / XAUTOCLAIM x g e 0 - JUSTID",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\nXADD x 1-2 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XCLAIM x g c 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XGROUP SETID x g 1-2 ENTRIESREAD 2]\nXCLAIM x g d 0 1-1 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2\n[XCLAIM x g e 0 1-1 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2 | XCLAIM x g e 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2]",
        READ,
    ),
    differs(
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XADD x 1-2 f v / XREADGROUP GROUP g c STREAMS x > / XDEL x 1-1 / XAUTOCLAIM x g d 0 0 / XDEL x 1-2 / XCLAIM x g d 0 1-2",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\nXADD x 1-2 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XCLAIM x g c 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XGROUP SETID x g 1-2 ENTRIESREAD 2]\nXDEL x 1-1\n[XACK x g 1-1 | XCLAIM x g d 0 1-2 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2]\nXDEL x 1-2\nXACK x g 1-2",
        LOST,
    ),
    // Transactions, scripts, functions.
    c(
        "MULTI / SET k v / GET k / EXEC / MULTI / SET k v / INCR n / SELECT 2 / SET k v / SELECT 0 / EXEC / MULTI / GET k / EXEC / MULTI / SET k v / DISCARD",
    ),
    c("MULTI / SPOP none / SET k v EX 100 / LPOP none / EXEC"),
    c(
        "EVAL \"redis.call('SET', KEYS[1], 'v')\" 1 k / EVAL \"redis.call('SET', 'k', 'v', 'EX', 100) redis.call('GET', 'k') redis.call('SADD', 's', 'a') redis.call('SPOP', 's')\" 0",
    ),
    c(
        "EVAL \"return redis.call('GET', 'k')\" 0 / EVAL \"redis.call('SELECT', 3) redis.call('SET', 'k', 'v')\" 0 / SET l v",
    ),
    c(
        "MULTI / SET a b / EVAL \"redis.call('SET', 'k', 'v') redis.call('INCR', 'n')\" 0 / EXEC / EVAL \"redis.pcall('SET', 'k') return redis.call('INCR', 'n')\" 0",
    ),
    c("SCRIPT LOAD \"return 1\" / SCRIPT FLUSH"),
    c(
        "FUNCTION LOAD \"#!lua name=lib\nredis.register_function('f', function() return redis.call('SET', 'k', 'v') end)\" / FCALL f 0 / FUNCTION DELETE lib / FUNCTION RESTORE {functions} / FUNCTION FLUSH / FUNCTION FLUSH",
    ),
    differs(
        "PUBLISH c m / SPUBLISH c m / MULTI / SET k v / PUBLISH c m / EXEC",
        "SET k v",
        "messages change nothing that is kept, and nobody else reads the stream yet",
    ),
    // Expiry: alone, found by a write, found by a read, in a transaction.
    c("SET k v PX 1 / SET l v / ~ 2 DBSIZE / GET k"),
    c("DEBUG SET-ACTIVE-EXPIRE 0 / SET k v PX 1 / wait / GET k / DEBUG SET-ACTIVE-EXPIRE 1"),
    c("DEBUG SET-ACTIVE-EXPIRE 0 / SET k v PX 1 / wait / SET k w / DEBUG SET-ACTIVE-EXPIRE 1"),
    c("DEBUG SET-ACTIVE-EXPIRE 0 / SADD k v / PEXPIRE k 1 / wait / SUNIONSTORE l k / DEBUG SET-ACTIVE-EXPIRE 1"),
    c("DEBUG SET-ACTIVE-EXPIRE 0 / SET k v PX 1 / wait / MULTI / SET j v / INCR k / EXEC / DEBUG SET-ACTIVE-EXPIRE 1"),
    c(
        "DEBUG SET-ACTIVE-EXPIRE 0 / CONFIG SET lazyfree-lazy-expire yes / SET k v PX 1 / wait / APPEND k w / CONFIG SET lazyfree-lazy-expire no / DEBUG SET-ACTIVE-EXPIRE 1",
    ),
];

/// Commands that the genuine server of the table above lacks, and our journal of them.
pub(super) const NEWER: &[(&str, &str)] = &[
    (
        "FT.CREATE i SCHEMA t TEXT / FT.ALTER i SCHEMA ADD n NUMERIC / FT.ALIASADD a i / FT.ALIASUPDATE a i / FT.ALIASDEL a / FT.SYNUPDATE i g x y / FT.DROPINDEX i",
        "FT.CREATE i SCHEMA t TEXT\nFT.ALTER i SCHEMA ADD n NUMERIC\nFT.ALIASADD a i\nFT.ALIASUPDATE a i\nFT.ALIASDEL a\nFT.SYNUPDATE i g x y\nFT._DROPINDEXIFX i _FORCEKEEPDOCS",
    ),
    (
        "FT.CREATE i SCHEMA t TEXT / FT.ADD i d 1 FIELDS t x / FT.SAFEADD i e 1 FIELDS t x / FT.DEL i d / FT.DEL i d / FT._CREATEIFNX i SCHEMA t TEXT / FT._ALTERIFNX i SCHEMA ADD n NUMERIC / FT._ALTERIFNX i SCHEMA ADD n NUMERIC",
        "FT.CREATE i SCHEMA t TEXT\nFT.ADD i d 1 FIELDS t x\nFT.SAFEADD i e 1 FIELDS t x\nDEL d\nFT._ALTERIFNX i SCHEMA ADD n NUMERIC",
    ),
    (
        "FT.CREATE i SCHEMA t TEXT / FT._ALIASADDIFNX a i / FT._ALIASADDIFNX a i / FT._ALIASDELIFX a / FT._ALIASDELIFX a / FT._DROPINDEXIFX i / FT._DROPIFX i",
        "FT.CREATE i SCHEMA t TEXT\nFT._ALIASADDIFNX a i\nFT._ALIASDELIFX a\nFT._DROPINDEXIFX i _FORCEKEEPDOCS",
    ),
    (
        "FT.CREATE i SCHEMA t TEXT / FT.ADD i e 1 FIELDS t x / FT.DROP i",
        "FT.CREATE i SCHEMA t TEXT\nFT.ADD i e 1 FIELDS t x\n[DEL e | FT._DROPINDEXIFX i _FORCEKEEPDOCS]",
    ),
    (
        "FT.DICTADD d x y / FT.DICTDEL d x z / FT.SUGADD s hello 1 / FT.SUGDEL s hello / FT.SUGDEL s hello",
        "FT.DICTADD d x y\nFT.DICTDEL d x z\nFT.SUGADD s hello 1\nFT.SUGDEL s hello",
    ),
    (
        "HSET h t x / FT.CREATE i SCHEMA t TEXT / FT.DROPINDEX i DD",
        "HSET h t x\nFT.CREATE i SCHEMA t TEXT\n[DEL h | FT._DROPINDEXIFX i _FORCEKEEPDOCS]",
    ),
    (
        "HSET h t x / FT.CREATE i TEMPORARY 100 SCHEMA t TEXT / FT.DROPINDEX i / FT.CREATE i SCHEMA t TEXT / FT.DROPINDEX i _FORCEKEEPDOCS",
        "HSET h t x\nFT.CREATE i TEMPORARY 100 SCHEMA t TEXT\n[DEL h | FT._DROPINDEXIFX i _FORCEKEEPDOCS]\nFT.CREATE i SCHEMA t TEXT\nFT._DROPINDEXIFX i _FORCEKEEPDOCS",
    ),
    (
        "HSET h a 1 b 2 / HPEXPIREAT h 9999999999000 FIELDS 2 a x / HEXPIREAT h 9999999999 NX FIELDS 2 a b / HEXPIRE h 100 FIELDS 2 a b",
        "HSET h a 1 b 2\nHPEXPIREAT h 9999999999000 FIELDS 1 a\nHPEXPIREAT h 9999999999000 FIELDS 1 b\nHPEXPIREAT h T+100 FIELDS 2 a b",
    ),
    (
        "HSETEX h PX 100000 FIELDS 1 a 1 / HPEXPIRE h 200000 GT FIELDS 1 a / HPERSIST h FIELDS 2 a x / HPERSIST h FIELDS 1 a / HEXPIREAT h 1 FIELDS 2 x a",
        "HSETEX h PXAT T+100 FIELDS 1 a 1\nHPEXPIREAT h T+200 FIELDS 1 a\nHPERSIST h FIELDS 1 a\nHDEL h a",
    ),
    (
        "HSETEX h FNX FIELDS 2 a 1 b 2 / HSETEX h FNX FIELDS 1 a 1 / HSETEX h KEEPTTL FIELDS 1 a 2 / HSETEX h XX EX 100 FIELDS 1 a 2 / HSETEX h PXAT 1 FIELDS 2 a 3 x 4",
        "HSET h a 1 b 2\nHSETEX h KEEPTTL FIELDS 1 a 2\nHSETEX h PXAT T+100 FIELDS 1 a 2\nHDEL h a",
    ),
    (
        "HSET h a 1 b 2 c 3 / HGETEX h FIELDS 1 a / HGETEX h EX 100 FIELDS 2 a x / HGETEX h PERSIST FIELDS 2 a b / HGETEX h PXAT 1 FIELDS 2 b x / HGETDEL h FIELDS 2 a x",
        "HSET h a 1 b 2 c 3\nHPEXPIREAT h T+100 FIELDS 1 a\nHPERSIST h FIELDS 1 a\nHDEL h b\nHDEL h a",
    ),
    // A field whose time is over is another than the one that takes its place.
    (
        "DEBUG SET-ACTIVE-EXPIRE 0 / HSET h a 1 b 2 / HPEXPIRE h 1 FIELDS 2 a b / wait / HINCRBY h a 5 / HDEL h a b / HSETNX h b 7 / HEXPIRE h 100 FIELDS 1 x / DEBUG SET-ACTIVE-EXPIRE 1",
        "HSET h a 1 b 2\nHPEXPIREAT h T+0 FIELDS 2 a b\nHSET h a 5\nHDEL h a\nHSET h b 7",
    ),
    (
        "HSETEX h PXAT 9999999999000 FIELDS 1 a 1 / HINCRBYFLOAT h a 0.5 / HINCRBY h b 1",
        "HSETEX h PXAT 9999999999000 FIELDS 1 a 1\nHSETEX h PXAT 9999999999000 FIELDS 1 a 1.5\nHINCRBY h b 1",
    ),
    (
        "SET k v / SET k w IFEQ v / SET k x IFEQ v / SET k x IFNE v KEEPTTL / SET k y IFEQ x EX 100 GET / DELIFEQ k z / DELIFEQ k y / SET k v / DELEX k IFNE v / DELEX k IFEQ v",
        "SET k v\nSET k w\nSET k x KEEPTTL\nSET k y PXAT T+100\nDEL k\nSET k v\nDEL k",
    ),
    (
        "INCREX a / INCREX a BYFLOAT 0.5 EX 100 / INCREX a BYFLOAT 1 PERSIST / INCREX b BYINT 5 UBOUND 3 SATURATE / INCREX b BYINT 5 UBOUND 3 / INCREX b PXAT 1",
        "SET a 1 KEEPTTL\nSET a 1.5 PXAT T+100\nSET a 2.5\nSET b 3 KEEPTTL\nDEL b",
    ),
    (
        "MSETEX 2 a 1 b 2 / MSETEX 2 a 1 c 2 NX / MSETEX 1 a 3 XX EX 100 / MSETEX 1 a 4 KEEPTTL",
        "[SET a 1 | SET b 2]\nSET a 3 PXAT T+100\nSET a 4 KEEPTTL",
    ),
    // Streams of Redis 8.2 and 8.4, in words that earlier servers know.
    (
        "XGROUP CREATE x g 0 MKSTREAM / XGROUP CREATE x h 0 / XADD x 1-1 f v / XADD x 1-2 f v / XADD x 1-3 f v / XADD x 1-4 f v / XREADGROUP GROUP g c NOACK STREAMS x > / XREADGROUP GROUP h c NOACK STREAMS x > / XCLAIM x g c 0 1-1 1-3 FORCE JUSTID TIME 1000 / XDELEX x ACKED IDS 2 1-1 1-2 / XDELEX x ACKED IDS 1 1-1 / XDELEX x DELREF IDS 2 1-1 1-2 / XACKDEL x g IDS 2 1-3 1-4 / XACKDEL x g IDS 1 1-3",
        "XGROUP CREATE x g 0 MKSTREAM\nXGROUP CREATE x h 0\nXADD x 1-1 f v\nXADD x 1-2 f v\nXADD x 1-3 f v\nXADD x 1-4 f v\n[XGROUP CREATECONSUMER x g c | XGROUP SETID x g 1-4 ENTRIESREAD 4]\n[XGROUP CREATECONSUMER x h c | XGROUP SETID x h 1-4 ENTRIESREAD 4]\n[XCLAIM x g c 0 1-1 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-4 | XCLAIM x g c 0 1-3 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-4]\nXDEL x 1-2\n[XDEL x 1-1 | XACK x g 1-1]\n[XACK x g 1-3 | XDEL x 1-3]",
    ),
    (
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XADD x 1-2 f v / XADD x 1-3 f v / XADD x 1-4 f v / XREADGROUP GROUP g c NOACK STREAMS x > / XCLAIM x g c 0 1-2 1-4 FORCE JUSTID TIME 1000 / XADD x NOMKSTREAM ACKED MAXLEN ~ 1 1-5 f v / XADD x ACKED MAXLEN 3 1-6 f v / XTRIM x MINID ~ 1-4 DELREF / XTRIM x DELREF MINID 1-5 / XADD x KEEPREF * f v",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\nXADD x 1-2 f v\nXADD x 1-3 f v\nXADD x 1-4 f v\n[XGROUP CREATECONSUMER x g c | XGROUP SETID x g 1-4 ENTRIESREAD 4]\n[XCLAIM x g c 0 1-2 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-4 | XCLAIM x g c 0 1-4 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-4]\nXADD x 1-5 f v\n[XADD x 1-6 f v | XTRIM x MAXLEN = 5 | XDEL x 1-3]\n[XTRIM x MAXLEN = 2 | XACK x g 1-2 1-4]\nXADD x T-n f v",
    ),
    (
        "XGROUP CREATE x g 0 MKSTREAM / XADD x 1-1 f v / XADD x 1-2 f v / XREADGROUP GROUP g c COUNT 1 STREAMS x > / XCLAIM x g c 0 1-1 TIME 1000 JUSTID / XREADGROUP GROUP g d CLAIM 100000 STREAMS x >",
        "XGROUP CREATE x g 0 MKSTREAM\nXADD x 1-1 f v\nXADD x 1-2 f v\n[XCLAIM x g c 0 1-1 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1 | XGROUP SETID x g 1-1 ENTRIESREAD 1]\nXCLAIM x g c 0 1-1 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1\n[XCLAIM x g d 0 1-1 TIME T+0 RETRYCOUNT 2 FORCE JUSTID LASTID 1-2 | XCLAIM x g d 0 1-2 TIME T+0 RETRYCOUNT 1 FORCE JUSTID LASTID 1-2 | XGROUP SETID x g 1-2 ENTRIESREAD 2]",
    ),
    // Of messages that are added once: which they were; of one that was added before, nothing.
    (
        "XADD x IDMP p 1 * f v / XADD x IDMP p 1 * f v / XADD x MAXLEN ~ 5 IDMP p 2 LIMIT 9 * f v / XADD x IDMP p 3 ACKED MAXLEN 5 * f v / XCFGSET x IDMP-MAXSIZE 7 / XADD x 99999999999999-0 f v / XIDMPRECORD x p 4 99999999999999-0 / XIDMPRECORD x p 4 99999999999999-0",
        "[XADD x T-n f v | XIDMPRECORD x p 1 T-n]\n[XADD x MAXLEN = 2 T-n f v | XIDMPRECORD x p 2 T-n]\n[XADD x T-n f v | XIDMPRECORD x p 3 T-n]\nXCFGSET x IDMP-DURATION 100 IDMP-MAXSIZE 7\nXADD x 99999999999999-0 f v\nXIDMPRECORD x p 4 99999999999999-0",
    ),
    // Of documents and filters, what has changed nothing is not told.
    (
        "JSON.SET d $ [1,[2,3],true] / JSON.SET d $ 1 NX / JSON.SET e $ 1 XX / JSON.NUMINCRBY d $[0] 2 / JSON.NUMINCRBY d $[1] 2 / JSON.NUMMULTBY d $[0] 1.5 / JSON.TOGGLE d $[2] / JSON.TOGGLE d $[0]",
        "JSON.SET d $ [1,[2,3],true]\nJSON.NUMINCRBY d $[0] 2\nJSON.NUMMULTBY d $[0] 1.5\nJSON.TOGGLE d $[2]",
    ),
    (
        "JSON.SET d $ [1,[2,3],true] / JSON.ARRAPPEND d $ 4 / JSON.ARRAPPEND d $[0] 4 / JSON.ARRINSERT d $[1] 0 1 / JSON.ARRPOP d $[1] / JSON.ARRTRIM d $[1] 0 0 / JSON.ARRTRIM d $[1] 0 0",
        "JSON.SET d $ [1,[2,3],true]\nJSON.ARRAPPEND d $ 4\nJSON.ARRINSERT d $[1] 0 1\nJSON.ARRPOP d $[1]\nJSON.ARRTRIM d $[1] 0 0",
    ),
    (
        "JSON.SET d $ [1,[2,3],true] / JSON.CLEAR d $[1] / JSON.CLEAR d $[1] / JSON.DEL d $[9] / JSON.FORGET d $[2] / JSON.MERGE d $[1] {} / JSON.MSET d $ {json} e $ 1 / JSON.STRAPPEND d $ {json} / JSON.STRAPPEND e $ {json} / JSON.DEL d / JSON.DEL d",
        "JSON.SET d $ [1,[2,3],true]\nJSON.CLEAR d $[1]\nJSON.FORGET d $[2]\nJSON.MERGE d $[1] {}\nJSON.MSET d $ \\\"x\\\" e $ 1\nJSON.STRAPPEND d $ \\\"x\\\"\nJSON.DEL d",
    ),
    // Of vector sets, as they are said: equal calls make equal graphs.
    (
        "VADD v VALUES 2 1 2 a / VADD v VALUES 2 1 3 a CAS / VADD v VALUES 2 0 1 b SETATTR {json} / VSETATTR v a {json} / VSETATTR v none {json} / VSIM v ELE a / VREM v none / VREM v a / VREM v b / VREM v b",
        "VADD v VALUES 2 1 2 a\nVADD v VALUES 2 1 3 a CAS\nVADD v VALUES 2 0 1 b SETATTR \\\"x\\\"\nVSETATTR v a \\\"x\\\"\nVREM v a\nVREM v b",
    ),
    (
        "BF.RESERVE f 0.01 100 / BF.ADD f a / BF.ADD f a / BF.MADD f a b / BF.MADD f a b / BF.INSERT g ITEMS a / BF.LOADCHUNK g 145 x",
        "BF.RESERVE f 0.01 100\nBF.ADD f a\nBF.MADD f a b\nBF.INSERT g ITEMS a\nBF.LOADCHUNK g 145 x",
    ),
];
