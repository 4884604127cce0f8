//! The commands.

use super::rules::Open;

/// A command of the table.
pub(super) struct Template {
    /// Its words.
    pub(super) text: &'static str,
    /// The part of its reply that is compared.
    pub(super) open: Open,
    /// How often it is drawn.
    pub(super) weight: usize,
}

const fn t(weight: usize, open: Open, text: &'static str) -> Template {
    Template { text, open, weight }
}

const X: Open = Open::Nothing;
const FIXED: Open = Open::Fixed;
const ORDER: Open = Open::Order;
const PAIRS: Open = Open::Pairs;
const TIME: Open = Open::Time;
const RANDOM: Open = Open::Random;
const CONTENT: Open = Open::Content;
const DRAINED: Open = Open::Drained;

/// Commands, as COMMAND LIST names them, that are not sent, and why.
pub(super) const LEFT_OUT: &[(&str, &str)] = &[
    ("client|no-touch", "not in Redis 7.0"),
    ("client|setinfo", "not in Redis 7.0"),
    ("delex", "not in Redis 7.0"),
    ("delifeq", "not in Redis 7.0"),
    ("digest", "not in Redis 7.0"),
    ("hexpire", "not in Redis 7.0"),
    ("hexpireat", "not in Redis 7.0"),
    ("hexpiretime", "not in Redis 7.0"),
    ("hgetdel", "not in Redis 7.0"),
    ("hgetex", "not in Redis 7.0"),
    ("hpersist", "not in Redis 7.0"),
    ("hpexpire", "not in Redis 7.0"),
    ("hpexpireat", "not in Redis 7.0"),
    ("hpexpiretime", "not in Redis 7.0"),
    ("hpttl", "not in Redis 7.0"),
    ("hsetex", "not in Redis 7.0"),
    ("httl", "not in Redis 7.0"),
    ("increx", "not in Redis 7.0"),
    ("migrate", "needs a third server"),
    ("monitor", "what follows are no replies"),
    ("msetex", "not in Redis 7.0"),
    ("pfselftest", "takes seconds"),
    ("psubscribe", "more replies than commands"),
    ("quit", "ends the connection"),
    ("script|debug", "only outside of a pipeline"),
    ("ssubscribe", "more replies than commands"),
    ("subscribe", "more replies than commands"),
];

/// Settings that values depend on, with their defaults.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("list-max-listpack-size", "-2"),
    ("set-max-intset-entries", "512"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("stream-node-max-entries", "100"),
    ("hll-sparse-max-bytes", "3000"),
    ("lua-time-limit", "5000"),
];

/// Rules for ACL SETUSER. Not `%R~*`, which in Redis is of all keys but the empty one.
pub(super) const RULES: &[&str] = &[
    "on",
    "on",
    "off",
    "nopass",
    "resetpass",
    ">pw",
    ">pw",
    "<pw",
    "#9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "!9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "#x",
    "+@all",
    "+@all",
    "allcommands",
    "-@all",
    "nocommands",
    "+get",
    "-set",
    "+client|setname",
    "-client|list",
    "+config|get",
    "-config",
    "+@read",
    "-@write",
    "+@hash",
    "-@dangerous",
    "allkeys",
    "~*",
    "~s*",
    "%R~l*",
    "%W~h*",
    "%RW~z*",
    "%X~a",
    "resetkeys",
    "allchannels",
    "&*",
    "&c*",
    "resetchannels",
    "reset",
    "sanitize-payload",
    "skip-sanitize-payload",
    "(+get ~s*)",
    "(-@all +@list %R~l*)",
    "(",
    "clearselectors",
    "x",
    "+nonesuch",
    "+@nonesuch",
    "+get|x",
    "~",
    "",
];

/// Libraries of functions, good and bad.
pub(super) const LIBRARIES: &[&str] = &[
    "#!lua name=one\nredis.register_function('f1', function(keys, args) return redis.call('SET', keys[1], args[1] or 'x') end)",
    "#!lua name=two\nredis.register_function{function_name='f2', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}",
    "#!lua name=one\nredis.register_function('f3', function(keys, args) return {#keys, #args} end)",
    "#!lua name=four\nredis.register_function('f1', function() return 'other' end)",
    "#!lua name=five\nredis.register_function{function_name='f3', callback=function() return redis.error_reply('no') end, description='fails'}",
    "#!lua name=six\nreturn 1",
    "#!lua name=seven\nredis.call('PING')",
    "#!lua name=eight\nredis.register_function('f8', 1)",
    "#!lua name=bad-name\nredis.register_function('f9', function() end)",
    "#!lua name=a name=b\nreturn 1",
    "#!lua\nreturn 1",
    "#!js name=other\nreturn 1",
    "#!lua name=nine\nsyntax error here",
    "return 1",
    "",
];

/// Scripts, with up to two keys.
pub(super) const SCRIPTS: &[&str] = &[
    "return redis.call('GET', KEYS[1])",
    "return redis.pcall('INCR', KEYS[1])",
    "return redis.call('SET', KEYS[1], ARGV[1] or 'none')",
    "return {1, 2.9, 'three', {4, false, true}, nil, 6}",
    "return {ok = 'fine'}",
    "return {err = 'MY error'}",
    "return redis.error_reply('wrong')",
    "return redis.status_reply('fine')",
    "return redis.call('TYPE', KEYS[1])",
    "return redis.call('LRANGE', KEYS[1], 0, -1)",
    "return redis.call('ZADD', KEYS[1], 1.5, ARGV[1])",
    "return #KEYS + #ARGV",
    "return cjson.encode({KEYS, ARGV})",
    "return cmsgpack.unpack(cmsgpack.pack(ARGV))",
    "return bit.tohex(#ARGV)",
    "return tostring(struct.size('!bhid'))",
    "return redis.sha1hex(KEYS[1] or '')",
    "return redis.call('nonesuch')",
    "return unknown_variable",
    "return {redis.call('EXISTS', KEYS[1]), redis.call('STRLEN', KEYS[1])}",
    "local t = {} for i = 1, 5 do t[i] = i * i end return t",
    "syntax error here",
    "return redis.call('RPUSH', KEYS[1], unpack(ARGV))",
    "redis.setresp(3) return redis.call('ZSCORE', KEYS[1], 'a')",
    "return 3.99",
    "return nil",
    "return tostring(1e15) .. tostring(0.1) .. tostring(-0)",
];

/// Weight, open part, words. Waiting clients are not disturbed: they might wait for ever.
#[rustfmt::skip]
pub(super) const TEMPLATES: &[Template] = &[
    // strings
    t(8, X, "SET ks val [ ( NX | XX ) ] [ GET ] [ ( EX seconds | PX millis | EXAT later | PXAT laterms | KEEPTTL ) ]"),
    t(4, X, "SET ks val"),
    t(4, X, "GET ks"), t(1, X, "GETDEL ks"), t(1, X, "GETSET ks val"), t(2, X, "SETNX ks val"),
    t(2, X, "GETEX ks [ ( EX seconds | PX millis | EXAT at | PXAT atms | PERSIST ) ]"),
    t(1, X, "SETEX ks seconds val"), t(1, X, "PSETEX ks millis val"),
    t(2, X, "MGET { k* }"), t(2, X, "MSET { ks val }"), t(2, X, "MSETNX { ks val }"),
    t(3, X, "APPEND ks val"), t(2, X, "STRLEN ks"), t(2, X, "GETRANGE ks int int"), t(1, X, "SUBSTR ks int int"),
    t(3, X, "SETRANGE ks offset val"),
    t(2, X, "INCR ks"), t(2, X, "DECR ks"), t(2, X, "INCRBY ks int"), t(2, X, "DECRBY ks int"), t(4, X, "INCRBYFLOAT ks float"),
    t(3, X, "LCS ks ks [ ( LEN | IDX [ MINMATCHLEN int ] [ WITHMATCHLEN ] ) ]"),
    // bitmaps
    t(3, X, "SETBIT kb offset ( 0 | 1 | 1 | int )"), t(2, X, "GETBIT kb offset"),
    t(3, X, "BITCOUNT kb [ int int [ ( BIT | BYTE ) ] ]"), t(3, X, "BITPOS kb ( 0 | 1 | int ) [ int [ int [ ( BIT | BYTE ) ] ] ]"),
    t(2, X, "BITOP ( AND | OR | XOR ) kb { kb }"), t(1, X, "BITOP NOT kb kb [ kb ]"),
    t(4, X, "BITFIELD kb { ( GET type bitoffset | SET type bitoffset int | INCRBY type bitoffset int | OVERFLOW ( WRAP | SAT | FAIL | x ) ) }"),
    t(1, X, "BITFIELD_RO kb { GET type bitoffset }"),
    // keys
    t(3, X, "DEL { k* }"), t(1, X, "UNLINK { k* }"), t(2, X, "EXISTS { k* }"), t(2, X, "TOUCH { k* }"), t(4, X, "TYPE k*"),
    t(1, ORDER, "KEYS glob"), t(1, CONTENT, "RANDOMKEY"), t(1, X, "DBSIZE"),
    t(2, X, "RENAME k* k*"), t(2, X, "RENAMENX k* k*"),
    t(3, X, "COPY k* k* [ DB db ] [ REPLACE ]"), t(2, X, "MOVE k* db"), t(1, X, "SWAPDB db db"), t(2, X, "SELECT db"),
    t(2, X, "SELECT 0"),
    t(2, X, "EXPIRE k* seconds [ ( NX | XX | GT | LT ) ]"), t(1, X, "PEXPIRE k* millis [ ( NX | XX | GT | LT ) ]"),
    t(1, X, "EXPIREAT k* at [ ( NX | XX | GT | LT ) ]"), t(1, X, "PEXPIREAT k* atms [ ( NX | XX | GT | LT ) ]"),
    t(2, TIME, "TTL k*"), t(1, TIME, "PTTL k*"), t(1, TIME, "EXPIRETIME k*"), t(1, TIME, "PEXPIRETIME k*"), t(1, X, "PERSIST k*"),
    t(6, Open::Encoding, "OBJECT ENCODING k*"), t(1, CONTENT, "OBJECT REFCOUNT k*"), t(1, TIME, "OBJECT IDLETIME k*"), t(1, X, "OBJECT FREQ k*"),
    t(2, CONTENT, "DUMP k*"), t(3, X, "RESTORE k* ( 0 | millis ) dump [ REPLACE ] [ ABSTTL ] [ ( FREQ int | IDLETIME int ) ]"),
    t(1, Open::Scan(1), "SCAN 0 COUNT 100000 [ MATCH glob ] [ TYPE ( string | list | zset | stream | hash | set | x ) ]"),
    t(1, X, "FLUSHDB [ ( ASYNC | SYNC ) ]"),
    t(4, X, "SORT kl [ BY by ] [ LIMIT int int ] { GET by } [ ( ASC | DESC ) ]"),
    t(4, Open::Ties(1), "SORT kS [ LIMIT int int ] [ ( ASC | DESC ) ] ALPHA"),
    t(2, Open::Ties(2), "SORT k* ( BY s* GET s* | BY h*->a GET h*->a | BY h*->b GET h*->b ) GET # [ ( ASC | DESC ) ] ALPHA"),
    t(2, ORDER, "SORT kS BY nosort [ ( ASC | DESC ) ]"),
    t(2, X, "SORT kS [ ( ASC | DESC ) ] [ ALPHA ] STORE kl"), t(1, Open::Ties(1), "SORT_RO kS [ LIMIT int int ] ALPHA"),
    t(1, X, "DEBUG DIGEST"), t(1, X, "DEBUG DIGEST-VALUE { k* }"),
    // lists
    t(5, X, "RPUSH kl { val }"), t(5, X, "LPUSH kl { mem }"), t(1, X, "LPUSHX kl { mem }"), t(1, X, "RPUSHX kl { mem }"),
    t(3, X, "LPOP kl [ int ]"), t(3, X, "RPOP kl [ int ]"), t(1, X, "LLEN kl"), t(3, X, "LRANGE kl int int"), t(2, X, "LINDEX kl int"),
    t(3, X, "LSET kl int val"), t(3, X, "LINSERT kl ( BEFORE | AFTER ) mem val"), t(3, X, "LREM kl int mem"), t(1, X, "LTRIM kl int int"),
    t(3, X, "LPOS kl mem [ RANK int ] [ COUNT int ] [ MAXLEN int ]"),
    t(2, X, "RPOPLPUSH kl kl"), t(3, X, "LMOVE kl kl ( LEFT | RIGHT ) ( LEFT | RIGHT )"),
    t(2, X, "LMPOP numkeys kl kl ( LEFT | RIGHT ) [ COUNT int ]"),
    t(1, FIXED, "BLPOP kl kl 0.001"), t(1, FIXED, "BRPOP kl 0.001"), t(1, FIXED, "BLMOVE kl kl ( LEFT | RIGHT ) ( LEFT | RIGHT ) 0.001"),
    t(1, FIXED, "BRPOPLPUSH kl kl 0.001"), t(1, FIXED, "BLMPOP 0.001 numkeys kl kl ( LEFT | RIGHT ) [ COUNT int ]"),
    // sets
    t(7, X, "SADD kS { mem }"), t(3, X, "SREM kS { mem }"), t(1, X, "SCARD kS"), t(2, X, "SISMEMBER kS mem"), t(2, X, "SMISMEMBER kS { mem }"),
    t(3, ORDER, "SMEMBERS kS"), t(2, X, "SMOVE kS kS mem"), t(1, FIXED, "SPOP kS ( 0 | -1 | x )"), t(1, DRAINED, "SPOP kS 100000"), t(2, RANDOM, "SRANDMEMBER kS [ count ]"),
    t(2, ORDER, "SINTER { kS }"), t(2, ORDER, "SUNION { kS }"), t(2, ORDER, "SDIFF { kS }"),
    t(2, X, "SINTERSTORE kS { kS }"), t(2, X, "SUNIONSTORE kS { kS }"), t(2, X, "SDIFFSTORE kS { kS }"),
    t(2, X, "SINTERCARD numkeys kS kS [ LIMIT int ]"), t(1, Open::Scan(1), "SSCAN kS 0 COUNT 100000 [ MATCH glob ]"),
    // hashes
    t(7, X, "HSET kh { mem val }"), t(1, X, "HMSET kh { mem val }"), t(2, X, "HSETNX kh mem val"), t(3, X, "HGET kh mem"),
    t(2, X, "HMGET kh { mem }"), t(3, PAIRS, "HGETALL kh"), t(1, ORDER, "HKEYS kh"), t(1, ORDER, "HVALS kh"), t(3, X, "HDEL kh { mem }"),
    t(1, X, "HLEN kh"), t(1, X, "HEXISTS kh mem"), t(1, X, "HSTRLEN kh mem"), t(3, X, "HINCRBY kh mem int"), t(3, X, "HINCRBYFLOAT kh mem float"),
    t(2, RANDOM, "HRANDFIELD kh [ count [ WITHVALUES ] ]"), t(1, Open::Scan(2), "HSCAN kh 0 COUNT 100000 [ MATCH glob ]"),
    // sorted sets
    t(9, X, "ZADD kz [ ( NX | XX ) ] [ ( GT | LT ) ] [ CH ] { float mem }"), t(2, X, "ZADD kz [ ( NX | XX | GT ) ] [ CH ] INCR float mem"),
    t(4, X, "ZADD kz { 0 mem }"), t(3, X, "ZINCRBY kz float mem"), t(3, X, "ZREM kz { mem }"), t(1, X, "ZCARD kz"), t(2, X, "ZSCORE kz mem"),
    t(2, X, "ZMSCORE kz { mem }"), t(2, FIXED, "ZRANK kz mem"), t(2, FIXED, "ZREVRANK kz mem"), t(2, X, "ZCOUNT kz scorelow scorehigh"),
    t(2, X, "ZRANGE kz int int [ REV ] [ WITHSCORES ]"), t(3, X, "ZRANGE kz scorelow scorehigh BYSCORE [ LIMIT int int ] [ WITHSCORES ]"),
    t(1, X, "ZRANGE kz scorehigh scorelow BYSCORE REV [ LIMIT int int ] [ WITHSCORES ]"),
    t(2, X, "ZRANGESTORE kz kz ( int int [ REV ] | scorelow scorehigh BYSCORE [ LIMIT int int ] )"),
    t(1, X, "ZREVRANGE kz int int [ WITHSCORES ]"), t(2, X, "ZRANGEBYSCORE kz scorelow scorehigh [ WITHSCORES ] [ LIMIT int int ]"),
    t(1, X, "ZREVRANGEBYSCORE kz scorehigh scorelow [ WITHSCORES ] [ LIMIT int int ]"),
    t(1, X, "ZREMRANGEBYRANK kz int int"), t(1, X, "ZREMRANGEBYSCORE kz scorelow scorehigh"),
    t(1, X, "ZPOPMIN kz [ int ]"), t(1, X, "ZPOPMAX kz [ int ]"), t(2, X, "ZMPOP numkeys kz kz ( MIN | MAX ) [ COUNT int ]"),
    t(1, FIXED, "BZPOPMIN kz kz 0.001"), t(1, FIXED, "BZPOPMAX kz 0.001"), t(1, FIXED, "BZMPOP 0.001 numkeys kz kz ( MIN | MAX ) [ COUNT int ]"),
    t(2, X, "ZUNION numkeys kz kz [ WEIGHTS float float ] [ AGGREGATE ( SUM | MIN | MAX ) ] [ WITHSCORES ]"),
    t(2, X, "ZINTER numkeys kz kz [ WEIGHTS float float ] [ AGGREGATE ( SUM | MIN | MAX ) ] [ WITHSCORES ]"),
    t(1, X, "ZDIFF numkeys kz kz [ WITHSCORES ]"), t(1, X, "ZDIFFSTORE kz numkeys kz kz"),
    t(2, X, "ZUNIONSTORE kz numkeys kz kS [ WEIGHTS float float ] [ AGGREGATE ( SUM | MIN | MAX ) ]"),
    t(2, X, "ZINTERSTORE kz numkeys kz kz [ WEIGHTS float float ] [ AGGREGATE ( SUM | MIN | MAX ) ]"),
    t(1, X, "ZINTERCARD numkeys kz kz [ LIMIT int ]"), t(2, RANDOM, "ZRANDMEMBER kz [ count [ WITHSCORES ] ]"),
    t(1, Open::Scores, "ZSCAN kz 0 COUNT 100000 [ MATCH glob ]"),
    // By name: sorted sets whose scores are all the same, because Redis leaves open what the ranges of others are.
    t(4, FIXED, "ZADD ky { 0 mem }"), t(1, FIXED, "ZREM ky { mem }"), t(2, FIXED, "ZLEXCOUNT ky lexlow lexhigh"),
    t(2, FIXED, "ZRANGE ky lexlow lexhigh BYLEX [ LIMIT int int ]"), t(1, FIXED, "ZRANGE ky lexhigh lexlow BYLEX REV [ LIMIT int int ]"),
    t(1, FIXED, "ZRANGEBYLEX ky lexlow lexhigh [ LIMIT int int ]"), t(1, FIXED, "ZREVRANGEBYLEX ky lexhigh lexlow [ LIMIT int int ]"),
    t(1, FIXED, "ZRANGESTORE kz ky lexlow lexhigh BYLEX [ LIMIT int int ]"), t(1, FIXED, "ZREMRANGEBYLEX ky lexlow lexhigh"),
    // geo
    t(5, X, "GEOADD kg [ ( NX | XX ) ] [ CH ] { long lat mem }"), t(2, X, "GEOPOS kg { mem }"), t(2, X, "GEODIST kg mem mem [ unit ]"), t(2, X, "GEOHASH kg { mem }"),
    t(2, X, "GEOSEARCH kg ( FROMMEMBER mem | FROMLONLAT long lat ) ( BYRADIUS radius unit | BYBOX radius radius unit ) ( ASC | DESC ) [ WITHCOORD ] [ WITHDIST ] [ WITHHASH ]"),
    t(2, Open::Nearest, "GEOSEARCH kg ( FROMMEMBER mem | FROMLONLAT long lat ) ( BYRADIUS radius unit | BYBOX radius radius unit ) WITHDIST ( ASC | DESC ) COUNT int [ WITHCOORD ] [ WITHHASH ]"),
    t(1, ORDER, "GEOSEARCH kg ( FROMMEMBER mem | FROMLONLAT long lat ) ( BYRADIUS radius unit | BYBOX radius radius unit ) [ WITHCOORD ] [ WITHDIST ]"),
    t(2, X, "GEOSEARCHSTORE kg kg ( FROMMEMBER mem | FROMLONLAT long lat ) BYRADIUS radius unit ( ASC | DESC ) [ COUNT ( 0 | -1 | x | 1000 ) ] [ STOREDIST ]"),
    t(1, X, "GEORADIUS kg long lat radius unit [ WITHDIST ] ( ASC | DESC ) [ STORE kg ]"), t(1, Open::Nearest, "GEORADIUS kg long lat radius unit WITHDIST ( ASC | DESC ) COUNT int"),
    t(1, X, "GEORADIUSBYMEMBER kg mem radius unit [ WITHCOORD ] ( ASC | DESC ) [ STOREDIST kz ]"),
    t(1, X, "GEORADIUS_RO kg long lat radius unit ( ASC | DESC )"), t(1, X, "GEORADIUSBYMEMBER_RO kg mem radius unit ( ASC | DESC )"),
    // HyperLogLog
    t(4, X, "PFADD kp { mem }"), t(2, X, "PFCOUNT { kp }"), t(2, X, "PFMERGE kp { kp }"), t(1, X, "PFDEBUG ( ENCODING | DECODE | TODENSE | x ) kp"),
    // streams
    t(8, X, "XADD kx [ NOMKSTREAM ] [ ( MAXLEN | MINID ) [ ( = | ~ ) ] int [ LIMIT int ] ] newid { mem val }"), t(6, X, "XADD kx newid { mem val }"),
    t(1, X, "XLEN kx"), t(3, X, "XRANGE kx id id [ COUNT int ]"), t(2, X, "XREVRANGE kx id id [ COUNT int ]"), t(3, X, "XDEL kx { id }"),
    t(2, X, "XTRIM kx ( MAXLEN | MINID ) [ ( = | ~ ) ] int [ LIMIT int ]"), t(1, X, "XSETID kx id [ ENTRIESADDED int ] [ MAXDELETEDID id ]"),
    t(2, X, "XREAD [ COUNT int ] STREAMS ( kx id | kx kx id id | kx $ )"), t(1, FIXED, "XREAD [ COUNT int ] BLOCK 1 STREAMS kx ( id | $ )"),
    t(4, X, "XGROUP CREATE kx group ( id | $ | 0 ) [ MKSTREAM ] [ ENTRIESREAD int ]"), t(1, X, "XGROUP SETID kx group ( id | $ ) [ ENTRIESREAD int ]"),
    t(1, X, "XGROUP DESTROY kx group"), t(1, X, "XGROUP CREATECONSUMER kx group consumer"), t(1, X, "XGROUP DELCONSUMER kx group consumer"),
    t(5, X, "XREADGROUP GROUP group consumer [ COUNT int ] [ NOACK ] STREAMS ( kx > | kx id | kx kx > > )"), t(2, X, "XACK kx group { id }"),
    t(1, X, "XPENDING kx group"), t(2, TIME, "XPENDING kx group [ IDLE ( 0 | 10000000 | x ) ] id id int [ consumer ]"),
    t(2, X, "XCLAIM kx group consumer ( 0 | -1 | x | 10000000 ) { id } [ IDLE ( 0 | 1000 | x ) ] [ RETRYCOUNT int ] [ FORCE ] [ JUSTID ] [ LASTID id ]"),
    t(2, X, "XAUTOCLAIM kx group consumer ( 0 | 10000000 | x ) id [ COUNT int ] [ JUSTID ]"),
    t(2, X, "XINFO STREAM kx"), t(2, TIME, "XINFO STREAM kx FULL [ COUNT int ]"), t(1, X, "XINFO GROUPS kx"), t(1, TIME, "XINFO CONSUMERS kx group"),
    // transactions
    t(3, X, "MULTI"), t(5, X, "EXEC"), t(1, X, "DISCARD"), t(2, X, "WATCH { k* }"), t(1, X, "UNWATCH"),
    // scripts
    t(4, X, "EVAL lua 1 k* [ val ]"), t(2, X, "EVAL lua numkeys k* k* [ val ]"), t(1, X, "EVAL_RO lua 1 k*"), t(1, X, "EVALSHA junk 0"),
    t(1, X, "SCRIPT EXISTS { junk }"), t(1, X, "SCRIPT LOAD lua"), t(1, X, "FCALL junk 0"),
    // connections
    t(1, X, "ECHO val"), t(1, X, "PING [ val ]"), t(1, X, "PUBLISH junk val"), t(1, X, "PUBSUB NUMSUB { junk }"), t(1, FIXED, "WAIT 0 0"),
    t(1, CONTENT, "HELLO ( 2 | 3 | 4 | x ) junk"), t(1, FIXED, "COMMAND GETKEYS ( SET ks val | MSET ks val ks | SORT kl BY by STORE kl | ZUNION numkeys kz kz | XREAD STREAMS kx id | LMPOP numkeys kl kl LEFT | EVAL lua numkeys k* k* val | FCALL function numkeys k* | junk )"),
    t(1, CONTENT, "MEMORY USAGE k* [ SAMPLES int ]"), t(1, X, "CLIENT GETNAME"), t(1, RANDOM, "junk { junk }"),
    t(1, CONTENT, "HELLO ( 2 | 3 | 3 | 4 ) [ AUTH ( user | default ) pw ] [ SETNAME mem ]"),
];

/// All that is sent to Redis; or to a Valkey, whose words about itself are others.
pub(super) fn templates(valkey: bool) -> impl Iterator<Item = &'static Template> + Clone {
    TEMPLATES.iter().chain(if valkey { LATER } else { ADMINISTRATION })
}

/// Commands that Valkey has had since Redis 7.0.
#[rustfmt::skip]
const LATER: &[Template] = &[
    // fields that expire
    t(6, X, "HEXPIRE kh seconds [ ( NX | XX | GT | LT ) ] FIELDS numkeys mem mem"), t(3, X, "HPEXPIRE kh millis [ ( NX | XX | GT | LT ) ] FIELDS numkeys mem mem"),
    t(3, X, "HEXPIREAT kh at [ ( NX | XX | GT | LT ) ] FIELDS 1 mem"), t(3, X, "HPEXPIREAT kh atms [ ( NX | XX | GT | LT ) ] FIELDS 2 mem mem"),
    t(3, TIME, "HTTL kh FIELDS numkeys mem mem"), t(3, TIME, "HPTTL kh FIELDS numkeys mem mem"),
    t(3, TIME, "HEXPIRETIME kh FIELDS numkeys mem mem"), t(3, TIME, "HPEXPIRETIME kh FIELDS 2 mem mem"), t(4, X, "HPERSIST kh FIELDS numkeys mem mem"),
    t(6, X, "HGETEX kh [ ( EX seconds | PX millis | EXAT at | PXAT atms | PERSIST ) ] FIELDS numkeys mem mem"),
    t(8, X, "HSETEX kh [ ( FNX | FXX | NX | XX ) ] [ ( EX seconds | PX millis | EXAT at | PXAT atms | KEEPTTL ) ] FIELDS ( 1 mem val | 2 mem val mem val | numkeys mem val )"),
    t(4, X, "HGETDEL kh FIELDS numkeys mem mem"), t(3, Open::Scan(1), "HSCAN kh 0 COUNT 100000 [ MATCH glob ] NOVALUES"),
    // strings by condition
    t(5, X, "SET ks val IFEQ val [ GET ] [ ( EX seconds | PXAT laterms | KEEPTTL ) ]"), t(4, X, "DELIFEQ ks val"),
    t(4, X, "MSETEX numkeys ks val ks val [ ( NX | XX ) ] [ ( EX seconds | PX millis | EXAT later | PXAT laterms | KEEPTTL ) ]"),
    // the rest
    t(3, X, "BITCOUNT kb int"), t(3, Open::Scan(1), "ZSCAN kz 0 COUNT 100000 [ MATCH glob ] NOSCORES"),
    t(3, X, "XREAD [ COUNT int ] STREAMS ( kx + | kx kx + id )"), t(3, FIXED, "ZRANK kz mem WITHSCORE"), t(1, FIXED, "ZREVRANK kz mem WITHSCORE"),
    t(3, X, "GEOSEARCH kg BYPOLYGON 3 long lat long lat long lat ( ASC | DESC ) [ WITHCOORD ] [ WITHDIST ]"),
    t(1, X, "COMMANDLOG ( LEN | RESET ) ( slow | large-request | large-reply | x )"), t(1, X, "CLIENT IMPORT-SOURCE ( ON | OFF | x )"), t(1, X, "CLIENT CAPA ( redirect | x )"),
    t(1, X, "SCRIPT SHOW junk"), t(1, X, "CLIENT NO-TOUCH ( ON | OFF | x )"), t(1, X, "CLIENT SETINFO ( LIB-NAME | LIB-VER | x ) mem"),
];

/// Commands for the server and not its data.
#[rustfmt::skip]
pub(super) const ADMINISTRATION: &[Template] = &[
    // users: Redis puts the rules of one into words of its own, in an order of its tables; a user that may do nothing can still become the
    // default one
    t(4, X, "ACL SETUSER user { rule }"), t(1, X, "ACL DELUSER { user }"), t(2, CONTENT, "ACL GETUSER user"), t(1, CONTENT, "ACL LIST"), t(1, X, "ACL USERS"),
    t(1, X, "ACL WHOAMI"), t(1, X, "ACL CAT"), t(1, CONTENT, "ACL CAT ( read | write | string | keyspace | x )"), t(1, CONTENT, "ACL GENPASS [ int ]"),
    t(2, X, "ACL DRYRUN user ( GET ks | SET ks val | LMPOP numkeys kl kl LEFT | SORT kl BY by STORE kl | CONFIG GET junk | PUBLISH junk val | junk )"),
    t(1, CONTENT, "ACL LOG [ count ]"), t(1, FIXED, "ACL LOG RESET"), t(1, X, "ACL ( LOAD | SAVE )"), t(1, X, "ACL HELP"),
    t(1, X, "AUTH user pw"), t(3, FIXED, "AUTH default pw"), t(1, X, "AUTH junk"),
    // clients
    t(1, X, "CLIENT SETNAME mem"), t(1, CONTENT, "CLIENT ( ID | INFO | LIST )"), t(1, FIXED, "CLIENT LIST TYPE x"), t(1, X, "CLIENT ( GETREDIR | TRACKINGINFO | UNPAUSE )"), t(1, CONTENT, "CLIENT HELP"),
    t(1, FIXED, "CLIENT KILL ( ID 0 | ID x | ADDR 1.2.3.4:5 | LADDR 1.2.3.4:5 | USER nobody | USER user | TYPE pubsub | TYPE x | SKIPME x | 1.2.3.4:5 | x )"),
    t(1, X, "CLIENT NO-EVICT ( ON | OFF | x )"), t(1, FIXED, "CLIENT REPLY ( ON | x )"), t(1, FIXED, "CLIENT PAUSE ( 0 | -1 | x ) [ ( WRITE | ALL | x ) ]"),
    t(1, FIXED, "CLIENT TRACKING ( OFF | x | ON REDIRECT 999999 | ON REDIRECT x | ON PREFIX a | ON OPTIN OPTOUT | ON BCAST OPTIN )"),
    t(1, X, "CLIENT CACHING ( YES | NO | x )"), t(1, X, "CLIENT UNBLOCK ( 0 | 999999 | x ) [ ( TIMEOUT | ERROR | x ) ]"),
    // what there is to know
    t(1, CONTENT, "COMMAND ( COUNT | LIST )"), t(1, CONTENT, "COMMAND LIST FILTERBY ( PATTERN glob | ACLCAT read | MODULE x | x )"),
    t(1, FIXED, "COMMAND INFO { ( GET | MSET | ZUNION | XREAD | LMPOP | BLPOP | CONFIG|GET | x ) }"), t(1, CONTENT, "COMMAND DOCS { ( GET | SET | ZADD | x ) }"),
    t(1, FIXED, "COMMAND GETKEYSANDFLAGS ( SET ks val | SET ks val GET | MSET ks val ks | SORT kl BY by STORE kl | ZUNIONSTORE kz numkeys kz kz | XREAD STREAMS kx id | EVAL lua numkeys k* k* | BITFIELD kb GET u8 0 | COPY k* k* | junk )"),
    t(1, FIXED, "COMMAND HELP"), t(1, CONTENT, "INFO [ ( server | clients | memory | stats | commandstats | keyspace | everything | x ) ]"), t(1, CONTENT, "LASTSAVE"), t(1, CONTENT, "TIME"), t(1, X, "ROLE"),
    t(1, CONTENT, "LOLWUT"), t(1, X, "LATENCY ( LATEST | HELP | RESET )"), t(1, X, "LATENCY ( HISTORY | GRAPH | RESET ) junk"), t(1, CONTENT, "LATENCY ( DOCTOR | HISTOGRAM )"),
    t(1, CONTENT, "MEMORY ( DOCTOR | MALLOC-STATS | STATS )"), t(1, X, "MEMORY ( PURGE | HELP )"), t(1, X, "MODULE ( LIST | HELP )"), t(1, FIXED, "MODULE ( LOAD | LOADEX | UNLOAD ) nonesuch"),
    t(1, CONTENT, "SLOWLOG ( LEN | GET )"), t(1, CONTENT, "SLOWLOG GET count"), t(1, X, "SLOWLOG ( RESET | HELP )"),
    t(1, X, "OBJECT HELP"), t(1, X, "PUBSUB HELP"), t(1, X, "XGROUP HELP"), t(1, X, "XINFO HELP"), t(1, X, "SCRIPT HELP"), t(1, X, "FUNCTION HELP"), t(1, X, "CONFIG HELP"),
    // settings
    t(3, X, "CONFIG SET { setting limit }"), t(2, PAIRS, "CONFIG GET { setting }"), t(1, X, "CONFIG SET notify-keyspace-events ( KEA | Elx | Kg$ | AKEmtd | x )"),
    t(1, FIXED, "CONFIG GET notify-keyspace-events"), t(1, X, "CONFIG ( RESETSTAT | REWRITE )"), t(1, X, "CONFIG SET junk junk"),
    // functions
    t(4, X, "FUNCTION LOAD [ REPLACE ] library"), t(3, X, "FCALL function numkeys k* k* [ val ]"), t(4, X, "FCALL function 1 k* [ val ]"), t(2, X, "FCALL_RO function 1 k*"),
    t(1, X, "FUNCTION DELETE ( one | two | four | x )"), t(1, ORDER, "FUNCTION LIST [ WITHCODE ] [ LIBRARYNAME ( one | t* | * ) ]"), t(1, X, "FUNCTION ( STATS | KILL )"),
    t(1, CONTENT, "FUNCTION DUMP"), t(1, X, "FUNCTION FLUSH [ ( ASYNC | SYNC | x ) ]"), t(1, X, "FUNCTION RESTORE dump [ ( APPEND | REPLACE | FLUSH | x ) ]"),
    t(1, X, "EVALSHA_RO junk 1 k*"), t(1, X, "SCRIPT FLUSH [ ( ASYNC | SYNC | x ) ]"), t(1, X, "SCRIPT KILL"),
    // what remains
    t(1, X, "FLUSHALL [ ( ASYNC | SYNC | x ) ]"), t(1, X, "ASKING"), t(1, X, "READONLY"), t(1, X, "READWRITE"), t(1, X, "RESET"), t(1, X, "RESTORE-ASKING k* 0 dump REPLACE"),
    t(1, FIXED, "SHUTDOWN ( ABORT | x )"), t(1, X, "SPUBLISH junk val"), t(1, X, "PUBSUB ( CHANNELS | SHARDCHANNELS ) [ glob ]"), t(1, X, "PUBSUB NUMPAT"), t(1, X, "PUBSUB SHARDNUMSUB { junk }"),
    t(1, FIXED, "UNSUBSCRIBE mem"), t(1, FIXED, "PUNSUBSCRIBE mem"), t(1, FIXED, "SUNSUBSCRIBE mem"),
];
