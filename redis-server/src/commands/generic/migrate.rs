//! MIGRATE: keys that go to another server.
//!
//! The keys stay marked from the first look at them until the target has said that it has each, so nobody
//! can change a key that is on its way. Its worker waits meanwhile, where the genuine server waits as a whole; `timeout`
//! is the limit of each step.

use std::io::ErrorKind;
use std::ops::Range;
use std::time::Duration;

use smallvec::SmallVec;

use crate::command::{Args, KeyPositions, Result};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::exec::core::clock::now_ms;
use crate::exec::core::peers::{Address, Peer};
use crate::keyspace::{Access, Key};
use crate::persistence::rdb::{self, Fork};
use crate::protocol::error::{self, Error};

/// Where the only key stands.
const KEY: usize = 3;
/// Where the options begin.
const OPTIONS: usize = 6;
/// The time limit where none is given.
const TIMEOUT_MS: u64 = 1000;

/// The options of MIGRATE.
#[derive(Debug)]
struct Options {
    copy: bool,
    replace: bool,
    /// Where the words stand that AUTH is sent with.
    login: Range<usize>,
    /// How many keys there are; none if nothing follows KEYS.
    keys: usize,
    db: i64,
    timeout: Duration,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self> {
        let (mut copy, mut replace, mut login, mut keys) = (false, false, 0..0, 1);
        let mut at = OPTIONS;
        while at < args.len() {
            let more = args.len() - 1 - at;
            if args.is(at, "COPY") {
                copy = true;
            } else if args.is(at, "REPLACE") {
                replace = true;
            } else if args.is(at, "AUTH") && more >= 1 {
                login = at + 1..at + 2;
                at += 1;
            } else if args.is(at, "AUTH2") && more >= 2 {
                login = at + 1..at + 3;
                at += 2;
            } else if args.is(at, "KEYS") {
                if !args.at(KEY).is_empty() {
                    let text = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string";
                    return Err(Error::Static(text));
                }
                keys = more;
                break;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        let timeout = u64::try_from(args.int(5)?).ok().filter(|&ms| ms > 0).unwrap_or(TIMEOUT_MS);
        Ok(Self { copy, replace, login, keys, db: args.int(4)?, timeout: Duration::from_millis(timeout) })
    }

    /// The key of a cached connection. It includes the login, so that a connection serves only calls with the same login.
    fn address(&self, args: Args<'_>) -> Address {
        let login = self.login.clone().map(|at| args.at(at));
        [args.at(1), args.at(2)].into_iter().chain(login).map(Into::into).collect()
    }
}

/// Positions of the keys: behind KEYS, if that word is there and no password.
pub(super) fn migrate_keys(args: Args<'_>) -> KeyPositions {
    let mut at = OPTIONS;
    while at < args.len() {
        if args.is(at, "KEYS") {
            let has_key = args.get(KEY).is_some_and(|key| !key.is_empty());
            let (first, last) = if has_key { (0, 0) } else { (at + 1, args.len()) };
            if first < last || has_key {
                return (first..last).map(|at| (at, Access::Write)).collect();
            }
            break;
        }
        at += match () {
            () if args.is(at, "AUTH") => 2,
            () if args.is(at, "AUTH2") => 3,
            () => 1,
        };
    }
    SmallVec::from_slice(&[(KEY, Access::Write)])
}

/// Where a conversation has broken off.
#[derive(Clone, Copy, Debug)]
struct Broken {
    doing: &'static str,
    /// Whether the target has done nothing yet, and answers at all: a connection that was kept may just be too old.
    may_retry: bool,
}

impl Broken {
    fn new(doing: &'static str, kind: ErrorKind, is_first: bool) -> Self {
        Self { doing, may_retry: is_first && kind != ErrorKind::TimedOut }
    }
}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::Message(format!("IOERR error or timeout {} to target instance", broken.doing))
    }
}

/// The error reply of the target.
type Refusal = Option<Vec<u8>>;

/// `MIGRATE host port key|"" destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username password]
/// [KEYS key [key …]]`
pub(super) fn migrate(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args)?;
    let keys: Vec<&Key<'_>> = args.keys()[..options.keys].iter().filter(|key| cx.db.value(key).is_some()).collect();
    if keys.is_empty() {
        cx.reply.simple("NOKEY");
        return Ok(());
    }
    let address = options.address(args);
    let mut may_retry = true;
    let refusal = loop {
        let kept = cx.instance().peers.take(&address);
        let mut peer = kept.map_or_else(|| connect(args, &options), Ok)?;
        let mut refusal = None;
        match converse(cx, &mut peer, args, &options, &keys, &mut refusal) {
            Ok(()) => {
                // After an error reply, the connection's database is unknown.
                peer.db = refusal.is_none().then_some(options.db);
                cx.instance().peers.put(address, peer, now_ms());
                break refusal;
            }
            Err(_) if refusal.is_some() => break refusal,
            Err(broken) if broken.may_retry && may_retry => may_retry = false,
            Err(broken) => return Err(broken.into()),
        }
    };
    match refusal {
        Some(text) => {
            let text = error::shown(&text);
            Err(Error::Message(format!("ERR Target instance replied with error: {text}").replace(['\r', '\n'], " ")))
        }
        None => {
            cx.reply.ok();
            Ok(())
        }
    }
}

fn connect(args: Args<'_>, options: &Options) -> Result<Peer> {
    const FAILED: Error = Error::Static("IOERR error or timeout connecting to the client");
    let host = std::str::from_utf8(args.at(1)).map_err(|_| FAILED)?;
    let port = std::str::from_utf8(args.at(2)).ok().and_then(|port| port.parse().ok()).unwrap_or(0);
    Peer::connect(host, port, options.timeout).map_err(|error| match error.kind() {
        // The genuine server learns of it when it sends.
        ErrorKind::ConnectionRefused => Broken::new("writing", error.kind(), true).into(),
        _ => FAILED,
    })
}

/// Has the target take the keys over; those that it has taken are deleted. `refusal`: the first thing that it refused.
fn converse(
    cx: &mut Ctx<'_>,
    peer: &mut Peer,
    args: Args<'_>,
    options: &Options,
    keys: &[&Key<'_>],
    refusal: &mut Refusal,
) -> std::result::Result<(), Broken> {
    let mut request = Vec::new();
    let mut greetings = 0;
    if !options.login.is_empty() {
        let words = options.login.clone().map(|at| args.at(at));
        write_command(&mut request, [b"AUTH".as_slice()].into_iter().chain(words));
        greetings += 1;
    }
    if peer.db != Some(options.db) {
        let db = options.db.to_string();
        write_command(&mut request, [b"SELECT".as_slice(), db.as_bytes()].into_iter());
        greetings += 1;
    }
    if greetings > 0 {
        // No key leaves before it is certain where it will be.
        peer.send(&request, options.timeout).map_err(|error| Broken::new("writing", error.kind(), true))?;
        for index in 0..greetings {
            answer(peer, options, index == 0, refusal)?;
        }
        if refusal.is_some() {
            return Ok(());
        }
    }
    let sent = send_keys(cx, peer, options, keys).map_err(|kind| Broken::new("writing", kind, greetings == 0))?;
    cx.instead_nothing();
    for (index, key) in sent.iter().enumerate() {
        let is_taken = answer(peer, options, index == 0 && greetings == 0, refusal)?;
        if is_taken && !options.copy {
            delete(cx, key);
        }
    }
    Ok(())
}

/// Sends the keys that have not expired meanwhile, and returns them.
fn send_keys<'k>(
    cx: &Ctx<'_>,
    peer: &mut Peer,
    options: &Options,
    keys: &[&'k Key<'k>],
) -> std::result::Result<Vec<&'k Key<'k>>, ErrorKind> {
    let mut sent = Vec::new();
    let mut request = Vec::new();
    let now = now_ms();
    // The slot may be on its way there.
    let name: &[u8] = if cx.instance().cluster.is_enabled() { b"RESTORE-ASKING" } else { b"RESTORE" };
    for key in keys {
        let Some(entry) = cx.db.peek(key) else { continue };
        let ttl = match entry.expire_at() {
            None => 0,
            Some(at) if at < now => continue,
            Some(at) => (at - now).max(1),
        };
        let (ttl, payload) = (ttl.to_string(), rdb::dump(entry.value(), Fork::of(&cx.instance.config)));
        let words = [name, key.bytes, ttl.as_bytes(), &payload, b"REPLACE"];
        let count = words.len() - usize::from(!options.replace);
        write_command(&mut request, words[..count].iter().copied());
        sent.push(*key);
    }
    peer.send(&request, options.timeout).map_err(|error| error.kind())?;
    Ok(sent)
}

/// Whether the next answer is good; the first one that is not is remembered.
fn answer(
    peer: &mut Peer,
    options: &Options,
    is_first: bool,
    refusal: &mut Refusal,
) -> std::result::Result<bool, Broken> {
    let line = peer.line(options.timeout).map_err(|error| Broken::new("reading", error.kind(), is_first))?;
    let Some(text) = line.strip_prefix(b"-") else { return Ok(true) };
    refusal.get_or_insert_with(|| text.to_vec());
    Ok(false)
}

fn delete(cx: &mut Ctx<'_>, key: &Key<'_>) {
    if let Some(entry) = cx.db.remove(key) {
        let in_background = cx.config().is_on(settings::LAZYFREE_LAZY_SERVER_DEL);
        cx.discard(entry, in_background);
        cx.changed(key, Event::DEL);
        cx.instead(&[b"DEL", key.bytes]);
    }
}

/// Appends a command as clients send it.
fn write_command<'w>(request: &mut Vec<u8>, words: impl Iterator<Item = &'w [u8]> + Clone) {
    let header = |request: &mut Vec<u8>, mark: u8, len: usize| {
        request.push(mark);
        request.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        request.extend_from_slice(b"\r\n");
    };
    header(request, b'*', words.clone().count());
    for word in words {
        header(request, b'$', word.len());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
}
