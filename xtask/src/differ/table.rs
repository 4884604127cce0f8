//! The commands.

use super::grammar::Template;
use super::rules::Open;

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

/// Weight, what is open, words. What waits is not spoilt: it might wait for ever.
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
    t(6, X, "OBJECT ENCODING k*"), t(1, CONTENT, "OBJECT REFCOUNT k*"), t(1, TIME, "OBJECT IDLETIME k*"), t(1, X, "OBJECT FREQ k*"),
    t(2, CONTENT, "DUMP k*"), t(3, X, "RESTORE k* ( 0 | millis ) dump [ REPLACE ] [ ABSTTL ] [ ( FREQ int | IDLETIME int ) ]"),
    t(1, Open::Scan(1), "SCAN 0 COUNT 100000 [ MATCH glob ] [ TYPE ( string | list | zset | stream | hash | set | x ) ]"),
    t(1, X, "FLUSHDB [ ( ASYNC | SYNC ) ]"),
    t(4, X, "SORT kl [ BY by ] [ LIMIT int int ] { GET by } [ ( ASC | DESC ) ] [ ALPHA ]"),
    t(4, X, "SORT kS [ LIMIT int int ] [ ( ASC | DESC ) ] ALPHA"), t(2, ORDER, "SORT kS BY nosort [ ( ASC | DESC ) ]"),
    t(2, X, "SORT kS [ ( ASC | DESC ) ] [ ALPHA ] STORE kl"), t(1, X, "SORT_RO kS [ LIMIT int int ] ALPHA"),
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
    t(3, ORDER, "SMEMBERS kS"), t(2, X, "SMOVE kS kS mem"), t(1, ORDER, "SPOP kS 100000"), t(2, RANDOM, "SRANDMEMBER kS [ count ]"),
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
    t(1, Open::Scan(2), "ZSCAN kz 0 COUNT 100000 [ MATCH glob ]"),
    // By name: sorted sets whose scores are all the same, because Redis leaves open what the ranges of others are.
    t(4, FIXED, "ZADD ky { 0 mem }"), t(1, FIXED, "ZREM ky { mem }"), t(2, FIXED, "ZLEXCOUNT ky lexlow lexhigh"),
    t(2, FIXED, "ZRANGE ky lexlow lexhigh BYLEX [ LIMIT int int ]"), t(1, FIXED, "ZRANGE ky lexhigh lexlow BYLEX REV [ LIMIT int int ]"),
    t(1, FIXED, "ZRANGEBYLEX ky lexlow lexhigh [ LIMIT int int ]"), t(1, FIXED, "ZREVRANGEBYLEX ky lexhigh lexlow [ LIMIT int int ]"),
    t(1, FIXED, "ZRANGESTORE kz ky lexlow lexhigh BYLEX [ LIMIT int int ]"), t(1, FIXED, "ZREMRANGEBYLEX ky lexlow lexhigh"),
    // geo
    t(5, X, "GEOADD kg [ ( NX | XX ) ] [ CH ] { long lat mem }"), t(2, X, "GEOPOS kg { mem }"), t(2, X, "GEODIST kg mem mem [ unit ]"), t(2, X, "GEOHASH kg { mem }"),
    t(4, X, "GEOSEARCH kg ( FROMMEMBER mem | FROMLONLAT long lat ) ( BYRADIUS radius unit | BYBOX radius radius unit ) ( ASC | DESC ) [ COUNT int ] [ WITHCOORD ] [ WITHDIST ] [ WITHHASH ]"),
    t(1, ORDER, "GEOSEARCH kg ( FROMMEMBER mem | FROMLONLAT long lat ) ( BYRADIUS radius unit | BYBOX radius radius unit ) [ WITHCOORD ] [ WITHDIST ]"),
    t(2, X, "GEOSEARCHSTORE kg kg ( FROMMEMBER mem | FROMLONLAT long lat ) BYRADIUS radius unit ( ASC | DESC ) [ COUNT int ] [ STOREDIST ]"),
    t(1, X, "GEORADIUS kg long lat radius unit [ WITHDIST ] ( ASC | DESC ) [ COUNT int ] [ STORE kg ]"),
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
    t(1, CONTENT, "HELLO ( 2 | 3 | 4 | x ) junk"), t(1, FIXED, "COMMAND GETKEYS ( SET ks val | MSET ks val ks | SORT kl BY by STORE kl | ZUNION numkeys kz kz | XREAD STREAMS kx id | LMPOP numkeys kl kl LEFT | junk )"),
    t(1, CONTENT, "MEMORY USAGE k* [ SAMPLES int ]"), t(1, X, "CLIENT GETNAME"), t(1, RANDOM, "junk { junk }"),
];
