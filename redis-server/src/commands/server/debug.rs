//! `DEBUG`: the subcommands that test suites of clients, and Redis' own, use.

use std::time::Duration;

use super::config::caller;
use super::digest::Digest;
use super::flags::ADMIN;
use crate::cluster::packet::Kind;
use crate::command::{Args, Footprint, Result, Weight};
use crate::commands::definition::{Definition, cmd};
use crate::commands::help::help;
use crate::config::{Caller, settings};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{self, Entry, StrRef, Value, ValueRef};
use crate::persistence::rdb;
use crate::protocol::error::{Error, shown};
use crate::threads;

/// Longest `DEBUG SLEEP`, in seconds.
const MAX_SLEEP: f64 = 3600.0;
/// Largest value that `DEBUG POPULATE` makes.
const MAX_POPULATE_VALUE: usize = 512 * 1024 * 1024;

const NOT_ALLOWED: Error = Error::Static(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
     you can run it from a local connection, otherwise you need to set this option in the \
     configuration file, and then restart the server.",
);

/// `DEBUG subcommand [argument …]`
///
/// Holds every lock: while it sleeps nobody else gets on, as in a server with one thread.
fn debug(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if !is_allowed(cx) {
        return Err(NOT_ALLOWED);
    }
    let name = args.at(1).to_ascii_lowercase();
    match (name.as_slice(), args.len()) {
        (b"change-repl-id" | b"client-eviction" | b"stringmatch-test", 2) | (b"leak", 3) => cx.reply.ok(),
        (b"replicate", 3..) => {
            cx.instance().journal.tell_replicas(&args.iter().skip(2).collect::<Vec<_>>());
            cx.reply.ok();
        }
        (b"aof-flush-sleep", 3) => {
            cx.instance.aof.set_delay(leading_number(args.at(2)) as u64);
            cx.reply.ok();
        }
        (b"replybuffer", 4) if args.is(2, "peak-reset-time") || args.is(2, "resizing") => cx.reply.ok(),
        (b"clusterlink", 5) if args.is(2, "kill") => kill_links(cx, args)?,
        (b"config-rewrite-force-all", 2) => {
            let users = cx.instance().acl.config_lines(cx.config());
            cx.config().rewrite_all(&users).map_err(|error| Error::Message(format!("ERR {error}")))?;
            cx.reply.ok();
        }
        (b"digest", 2) => digest(cx),
        (b"digest-value", _) => digest_values(cx, args),
        (b"drop-cluster-packet-filter", 3) => drop_packets(cx, args.at(2)),
        (b"error", 3) => return Err(Error::Message(shown(args.at(2)).into_owned())),
        (b"help", 2) => help(cx, "DEBUG", HELP),
        (b"htstats", 3) => table_stats(cx, args)?,
        (b"htstats-key", 3) => value_table_stats(cx, args)?,
        (b"loadaof", 2) => super::snapshot::load_aof(cx)?,
        (b"pause-cron", 3) => {
            cx.instance().ending.hold(leading_number(args.at(2)) as i64 != 0);
            cx.reply.ok();
        }
        (b"listpack", 3) => describe(cx, args, "Listpack", "listpack")?,
        (b"locks", 2 | 3) => lock_times(cx, args)?,
        (b"log", 3) => {
            tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args.at(2)));
            cx.reply.ok();
        }
        (b"object", 3 | 4) => object(cx, args)?,
        (b"panic", 2 | 3) => cause_panic(cx, args)?,
        (b"populate", 3..=5) => populate(cx, args)?,
        (b"protocol", 3) => protocol(cx, args)?,
        (b"quicklist", 3 | 4) => describe(cx, args, "Quicklist", "quicklist")?,
        (b"quicklist-packed-threshold", 3) => packed_threshold(cx, args)?,
        (b"reload", _) => super::snapshot::reload(cx, args)?,
        (b"sdslen", 3) => string_lengths(cx, args)?,
        (b"set-disable-deny-scripts", 3) => {
            cx.instance().scripts.set_allow_all(leading_number(args.at(2)) as i64 != 0);
            cx.reply.ok();
        }
        (b"set-active-expire", 3) => {
            cx.instance().set_active_expire(leading_number(args.at(2)) as i64 != 0);
            cx.reply.ok();
        }
        (b"set-skip-checksum-validation", 3) => {
            cx.instance().snapshots.set_skips_sums(leading_number(args.at(2)) as i64 != 0);
            cx.reply.ok();
        }
        (b"sleep", 3) => {
            let seconds = leading_number(args.at(2)).clamp(0.0, MAX_SLEEP);
            std::thread::sleep(Duration::from_secs_f64(seconds));
            cx.reply.ok();
        }
        _ => return Err(Error::subcommand_syntax(args)),
    }
    Ok(())
}

/// `DEBUG LOCKS [RESET]`: for how many microseconds a lock of the keyspace was held at most.
fn lock_times(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let longest = keyspace::longest_hold();
    let longest = longest.ok_or(Error::Static("ERR Only builds with the feature lock-times measure locks"))?;
    match args.get(2) {
        None => cx.reply.int(longest.as_micros() as i64),
        Some(word) if word.eq_ignore_ascii_case(b"reset") => {
            keyspace::forget_holds();
            cx.reply.ok();
        }
        Some(_) => return Err(Error::subcommand_syntax(args)),
    }
    Ok(())
}

/// `DEBUG PANIC [thread]`: this thread panics, or the next one of that name at work.
fn cause_panic(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    assert!(args.len() > 2, "DEBUG PANIC called at Unix time {}", cx.now() / 1000);
    let name = args.at(2);
    let Some(known) = threads::NAMES.iter().find(|known| known.as_bytes() == name) else {
        let names = threads::NAMES.join(", ");
        return Err(Error::Message(format!("ERR There is no thread `{}`. Threads: {names}", shown(name))));
    };
    threads::ask_for_panic(known);
    cx.reply.ok();
    Ok(())
}

/// Of the cluster bus; -1, or what is no type, has all packets read.
fn drop_packets(cx: &mut Ctx<'_>, kind: &[u8]) {
    let kind = usize::try_from(leading_number(kind) as i64).ok();
    let kind = kind.and_then(|kind| Kind::ALL.get(kind).copied());
    cx.instance().cluster.with(cx.instance(), |machine, _| machine.drop_packets(kind));
    cx.reply.ok();
}

/// `DEBUG CLUSTERLINK KILL to|from|all id`
fn kill_links(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (is_to, is_from) = (args.is(3, "to"), args.is(3, "from"));
    let is_all = args.is(3, "all");
    if !is_to && !is_from && !is_all {
        return Err(Error::Message(format!("ERR Unknown direction {}", shown(args.at(3)))));
    }
    let killed = cx
        .instance()
        .cluster
        .with(cx.instance(), |machine, now| machine.kill_links(args.at(4), is_to || is_all, is_from || is_all, now));
    const DISABLED: Error = Error::Static("ERR Debug option only available for cluster mode enabled setup!");
    killed.ok_or(DISABLED)??;
    cx.reply.ok();
    Ok(())
}

/// SLEEP is there to see what a server looks like from outside that answers nobody. LOADAOF runs commands.
fn locks(args: Args<'_>) -> Footprint {
    match () {
        () if args.len() > 1 && args.is(1, "sleep") => Footprint::Alone,
        () if args.len() > 1 && args.is(1, "loadaof") => Footprint::Still,
        () if looks_at_data(args) => Footprint::Everything,
        () => Footprint::Keys,
    }
}

/// Whether it has to do with keys; the others are answered at once, also while data is loaded.
fn looks_at_data(args: Args<'_>) -> bool {
    const OTHERS: [&str; 11] = [
        "aof-flush-sleep",
        "clusterlink",
        "drop-cluster-packet-filter",
        "error",
        "help",
        "leak",
        "locks",
        "log",
        "pause-cron",
        "set-active-expire",
        "set-skip-checksum-validation",
    ];
    let is_for_another_thread = args.len() > 2 && args.is(1, "panic");
    !is_for_another_thread && !OTHERS.iter().any(|name| args.len() > 1 && args.is(1, name))
}

fn is_allowed(cx: &Ctx<'_>) -> bool {
    const YES: i64 = 1;
    const LOCAL: i64 = 2;
    match cx.config().int(settings::ENABLE_DEBUG_COMMAND) {
        YES => true,
        LOCAL => caller(cx) == Caller::Local,
        _ => false,
    }
}

/// The number that a text begins with, like C's `atof`; 0 without one.
fn leading_number(text: &[u8]) -> f64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || b".-+".contains(byte)).count();
    std::str::from_utf8(&text[..digits]).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// DEBUG DIGEST: of all databases.
fn digest(cx: &mut Ctx<'_>) {
    let (level, mut digest) = (cx.config().level(), Digest::default());
    for db in 0..cx.instance().databases().len() {
        let view = cx.view(db).expect("DEBUG has locked everything");
        let mut is_empty = true;
        view.for_each(|entry| {
            if std::mem::take(&mut is_empty) {
                digest.begin_database(db);
            }
            digest.add_entry(entry, cx.db.over_by(), level);
            true
        });
    }
    cx.reply.simple(&digest.hex());
}

/// `DEBUG DIGEST-VALUE [key …]`
fn digest_values(cx: &mut Ctx<'_>, args: Args<'_>) {
    cx.reply.array(args.len() - 2);
    let level = cx.config().level();
    for key in args.from(2).iter() {
        let entry = cx.db.peek(&cx.db.key(key));
        let digest = entry.map(|entry| Digest::value(entry, cx.db.over_by(), level)).unwrap_or_default();
        cx.reply.simple(&digest.hex());
    }
}

/// Looks up argument 2, a key that the row does not declare. An expired key is there until it is removed.
fn entry<'a>(cx: &'a Ctx<'_>, args: Args<'_>) -> Result<&'a Entry> {
    cx.db.stored(&cx.db.key(args.at(2))).ok_or(Error::NoSuchKey)
}

/// DEBUG OBJECT key
fn object(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let entry = entry(cx, args)?;
    let value = entry.value();
    let clock = (cx.now() / 1000) as u32 & 0xff_ffff;
    let idle = clock.wrapping_sub(entry.access()) & 0xff_ffff;
    let mut text = format!(
        "Value at:{:p} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{idle}",
        std::ptr::from_ref(entry),
        value.encoding(),
        rdb::saved_len(value),
        entry.access(),
    );
    if let ValueRef::List(list) = value
        && list.encoding() == "quicklist"
    {
        let limit = cx.config().int(settings::LIST_MAX_LISTPACK_SIZE);
        text.push_str(&format!(
            " ql_nodes:1 ql_avg_node:{}.00 ql_listpack_max:{limit} ql_compressed:0 ql_uncompressed_size:{}",
            list.len(),
            list.memory(),
        ));
    }
    cx.reply.simple(&text);
    Ok(())
}

/// DEBUG LISTPACK key, DEBUG QUICKLIST key: the genuine server prints the structure to its standard output.
fn describe(cx: &mut Ctx<'_>, args: Args<'_>, title: &str, encoding: &str) -> Result {
    let value = entry(cx, args)?.value();
    if value.encoding() != encoding {
        return Err(Error::Message(format!("ERR Not a {encoding} encoded object.")));
    }
    tracing::info!("{title} of {} bytes", value.payload());
    cx.reply.simple(&format!("{title} structure printed on stdout"));
    Ok(())
}

/// DEBUG SDSLEN key
fn string_lengths(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let entry = entry(cx, args)?;
    let ValueRef::Str(StrRef::Bytes { bytes, .. }) = entry.value() else {
        return Err(Error::Static("ERR Not an sds encoded string."));
    };
    let (key, value, block) = (entry.key().len(), bytes.len(), entry.block_size());
    cx.reply.simple(&format!(
        "key_sds_len:{key}, key_sds_avail:0, key_zmalloc: {block}, val_sds_len:{value}, val_sds_avail:0, val_zmalloc: {value}"
    ));
    Ok(())
}

/// DEBUG HTSTATS dbid
fn table_stats(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let db = usize::try_from(args.int(2)?).ok().filter(|&db| db < cx.instance().databases().len());
    let db = db.ok_or(Error::Static("ERR Out of range database"))?;
    let view = cx.view(db).expect("DEBUG has locked everything");
    let section = |elements: usize| match elements {
        0 => "No stats available for empty dictionaries\n".to_owned(),
        _ => format!(" table size: {}\n number of elements: {elements}\n", elements.next_power_of_two()),
    };
    let text = format!(
        "[Dictionary HT]\nHash table 0 stats (main hash table):\n{}[Expires HT]\nHash table 0 stats (main hash table):\n{}",
        section(view.len()),
        section(view.database().expiring()),
    );
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// DEBUG HTSTATS-KEY key
fn value_table_stats(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let value = entry(cx, args)?.value();
    let elements = match value {
        ValueRef::Hash(hash) if hash.encoding() == "hashtable" => hash.len(),
        ValueRef::Set(set) if set.encoding() == "hashtable" => set.len(),
        ValueRef::SortedSet(set) if set.encoding() == "skiplist" => set.len(),
        _ => {
            return Err(Error::Static(
                "ERR The value stored at the specified key is not represented using an hash table",
            ));
        }
    };
    let size = elements.next_power_of_two();
    let text = format!("Hash table 0 stats (main hash table):\n table size: {size}\n number of elements: {elements}\n");
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// `DEBUG POPULATE count [prefix] [size]`: keys `prefix:0` … with values `value:0` …
fn populate(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let positive = |at: usize| {
        let number = args.int(at).ok().and_then(|number| u32::try_from(number).ok());
        number.ok_or(Error::Static("ERR value is out of range, must be positive"))
    };
    let count = positive(2)?;
    let prefix = args.get(3).unwrap_or(b"key");
    let size = if args.len() == 5 { positive(4)? as usize } else { 0 };
    if size > MAX_POPULATE_VALUE {
        return Err(Error::OutOfRange);
    }
    // As in the genuine server neither replicas nor the append-only file get it: they may not let it through.
    cx.instead_nothing();
    let mut value = Vec::new();
    for number in 0..count {
        let name = [prefix, format!(":{number}").as_bytes()].concat();
        let key = cx.db.key(&name);
        if cx.db.peek(&key).is_some() {
            continue;
        }
        value.clear();
        value.extend_from_slice(format!("value:{number}").as_bytes());
        if size > 0 {
            value.resize(size, 0);
        }
        cx.db.set(&key, Value::Bytes(&value), None);
        cx.changed(&key, Event::SET);
    }
    cx.reply.ok();
    Ok(())
}

/// DEBUG PROTOCOL type: a reply of each type, the same as the genuine server's.
fn protocol(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let resp3 = cx.reply.is_resp3();
    let reply = &mut *cx.reply;
    match args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        b"double" => reply.double(f64::from(3141) / 1000.0),
        b"bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.int(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.int(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.int(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.int(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if !resp3 => return Err(Error::Static("ERR RESP2 is not supported by this command")),
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.int(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        b"verbatim" => reply.verbatim(*b"txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => {
            return Err(Error::Static(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

/// DEBUG QUICKLIST-PACKED-THRESHOLD size: lists here keep elements of every size in the same way.
fn packed_threshold(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let text = String::from_utf8_lossy(args.at(2)).to_ascii_lowercase();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text[..text.len() - unit.len()].parse::<u64>().ok();
    let scale = match unit {
        "" | "b" => Some(1),
        "k" => Some(1000),
        "kb" => Some(1 << 10),
        "m" => Some(1_000_000),
        "mb" => Some(1 << 20),
        "g" => Some(1_000_000_000),
        "gb" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.zip(scale).and_then(|(number, scale): (u64, u64)| number.checked_mul(scale));
    if bytes.is_none_or(|bytes| bytes >= 4 << 30) {
        return Err(Error::Static("ERR argument must be a memory value bigger than 1 and smaller than 4gb"));
    }
    cx.reply.ok();
    Ok(())
}

const HELP: &[&str] = &[
    "AOF-FLUSH-SLEEP <microseconds>",
    "    Every write to the append-only file takes so much longer.",
    "CHANGE-REPL-ID, REPLYBUFFER <option> <value>, STRINGMATCH-TEST",
    "    Accepted without effect.",
    "CLUSTERLINK KILL <to|from|all> <node-id>",
    "    Kills the link based on the direction to/from (both) with the provided node.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    Rewrite all configuration options, default ones included.",
    "DIGEST",
    "    Output a hex signature representing the current DB content.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Output a hex signature of the values of all the specified keys.",
    "DROP-CLUSTER-PACKET-FILTER <packet-type>",
    "    Drop all cluster bus packets of this type. -1 reads all packets again.",
    "ERROR <string>",
    "    Return a protocol error with <string> as message.",
    "HTSTATS <dbid>",
    "    Return hash table statistics of the specified database.",
    "HTSTATS-KEY <key>",
    "    Like HTSTATS but for the hash table stored at <key>'s value.",
    "LISTPACK <key>",
    "    Whether the value at <key> is a listpack.",
    "LOADAOF",
    "    Load the AOF files in the place of all data.",
    "LOCKS [RESET]",
    "    For how many microseconds a part of the keyspace was locked at most (builds with the feature lock-times).",
    "LOG <message>",
    "    Write <message> to the server log.",
    "OBJECT <key>",
    "    Show low level info about `key` and associated value.",
    "PANIC [<thread>]",
    "    Crash the server simulating a panic, or have the next thread of this name panic.",
    "PAUSE-CRON <0|1>",
    "    1 has SIGTERM and SIGINT wait, so that SHUTDOWN ABORT can take them back.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create <count> string keys named key:<num>, or <prefix>:<num>.",
    "PROTOCOL <type>",
    "    Reply with a test value of the specified type. <type> can be: string,",
    "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
    "    true, false.",
    "QUICKLIST <key> [<0|1>]",
    "    Whether the value at <key> is a quicklist.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Accepted without effect: elements of every size are kept in the same way.",
    "RELOAD [option ...]",
    "    Save the RDB on disk and reload it back to memory. Valid <option> values:",
    "    * MERGE: conflicting keys will be loaded from RDB.",
    "    * NOFLUSH: the existing database will not be removed before load, but",
    "      conflicting keys end the load with an error.",
    "    * NOSAVE: the database will be loaded from an existing RDB file.",
    "SDSLEN <key>",
    "    Show the lengths of `key` and of the string stored at it.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Setting it to 0 leaves expired keys that nobody asks for in memory.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Enables or disables checksum checks for RDB files and RESTORE's payload",
    "SLEEP <seconds>",
    "    Stop the server for <seconds>. Decimals allowed.",
];

/// The row.
pub(super) const COMMAND: Definition =
    cmd("debug", -2, debug, ADMIN, &[]).locks(Footprint::Depends(locks)).weighs(Weight::MuchIf(looks_at_data));
