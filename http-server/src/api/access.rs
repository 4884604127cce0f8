//! The rights of callers: allow-lists of commands, and prefixes of keys and channels, by token. Read-only without one.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use http::header::AUTHORIZATION;
use http::{HeaderMap, header};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use super::commands::{self, Kind, Touched};

/// The rights of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    kinds: Vec<Kind>,
    named: HashSet<String>,
    refused: HashSet<String>,
    keys: Prefixes,
    channels: Prefixes,
    /// Whether GET is allowed, which is asked most often.
    gets: bool,
}

/// Prefixes of which a name must have one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Prefixes {
    Any,
    OneOf(Vec<Vec<u8>>),
}

/// Why a call is refused. Nothing of it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// A token is needed, or another one.
    Token(&'static str),
    /// The command is not allowed to this caller, or not known.
    Command(String),
    /// The command would change or block the connection that all callers share.
    Connection(String),
    /// A key without any of the caller's prefixes.
    Key,
    /// The keys of the command cannot be told from its arguments, and the caller is limited by prefixes.
    Unlimited(String),
    /// A channel without any of the caller's prefixes.
    Channel,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(what) => f.write_str(what),
            Self::Command(name) => write!(f, "the command {} is not allowed here", Shown(name)),
            Self::Connection(name) => write!(
                f,
                "the command {} is never sent, because it would change or block a connection that is shared",
                Shown(name)
            ),
            Self::Key => f.write_str("a key has none of the prefixes that are allowed here"),
            Self::Unlimited(name) => {
                write!(f, "the command {} may touch keys without the prefixes that are allowed here", Shown(name))
            }
            Self::Channel => f.write_str("a channel has none of the prefixes that are allowed here"),
        }
    }
}

/// A command's name as it may stand in an answer and in a log: on one line and short.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upper = self.0.to_uppercase();
        write!(f, "{}", upper.chars().take(40).flat_map(char::escape_debug).collect::<String>())
    }
}

impl Rules {
    /// `commands` are names (`set`, `config|get`), groups (`@read`, `@write`, `@publish`, `@script`, `@admin`, `@all`), and
    /// either with `-` before it to take it away; `keys` and `channels` are prefixes, each with `*` at its end or not, and
    /// `*` is all. A caller that may touch every key may use every channel, unless `channels` says otherwise; others
    /// none.
    pub(crate) fn parse<S: AsRef<str>>(commands: &[S], keys: &[S], channels: Option<&[S]>) -> Result<Self, String> {
        let keys = Prefixes::parse(keys);
        let channels = match channels {
            Some(channels) => Prefixes::parse(channels),
            None if keys == Prefixes::Any => Prefixes::Any,
            None => Prefixes::OneOf(Vec::new()),
        };
        let mut rules =
            Self { kinds: Vec::new(), named: HashSet::new(), refused: HashSet::new(), keys, channels, gets: false };
        for command in commands {
            rules.command(&command.as_ref().to_ascii_lowercase())?;
        }
        rules.gets = rules.allows("get", Kind::Read);
        Ok(rules)
    }

    fn command(&mut self, entry: &str) -> Result<(), String> {
        let (allowed, name) = entry.strip_prefix('-').map_or((true, entry), |name| (false, name));
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(format!("{entry:?} names no command"));
        }
        match group(name) {
            Some(kinds) if allowed => self.kinds.extend(kinds),
            Some(kinds) => self.kinds.retain(|kind| !kinds.contains(kind)),
            None if name.starts_with('@') => return Err(format!("{name:?} is no group of commands")),
            None if allowed => {
                self.refused.remove(name);
                self.named.insert(name.to_owned());
            }
            None => {
                self.named.remove(name);
                self.refused.insert(name.to_owned());
            }
        }
        Ok(())
    }

    /// Whether a command may be sent; its kind, if so.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn check<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Kind, Denied> {
        let (name, row) = commands::find(args);
        let Some(row) = row else {
            // Not known: its keys cannot be told, nor what it does.
            if !self.names(&name) {
                return Err(Denied::Command(name));
            }
            return if self.keys == Prefixes::Any { Ok(Kind::Admin) } else { Err(Denied::Unlimited(name)) };
        };
        if row.kind == Kind::Connection || commands::blocks(row, args) {
            return Err(Denied::Connection(name));
        }
        if !self.allows(&name, row.kind) {
            return Err(Denied::Command(name));
        }
        match commands::touched(row, args) {
            Touched::Keys(keys) if keys.iter().all(|key| self.keys.take(key)) => Ok(row.kind),
            Touched::Keys(_) => Err(Denied::Key),
            Touched::Channel(channel) if self.channels.take(channel) => Ok(row.kind),
            Touched::Channel(_) => Err(Denied::Channel),
            Touched::Any if self.keys == Prefixes::Any && self.channels == Prefixes::Any => Ok(row.kind),
            Touched::Any => Err(Denied::Unlimited(name)),
        }
    }

    /// Whether a GET of this key may be sent, as [`Rules::check`] says.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn check_get(&self, key: &[u8]) -> Result<(), Denied> {
        match (self.gets, self.keys.take(key)) {
            (true, true) => Ok(()),
            (true, false) => Err(Denied::Key),
            (false, _) => Err(Denied::Command("get".to_owned())),
        }
    }

    /// Whether a subscription to a channel is allowed, or to a pattern.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn check_channel(&self, channel: &[u8], is_pattern: bool) -> Result<(), Denied> {
        let command = if is_pattern { "psubscribe" } else { "subscribe" };
        if !self.allows(command, Kind::Read) {
            return Err(Denied::Command(command.to_owned()));
        }
        let literal = if is_pattern { literal_prefix(channel) } else { channel };
        if self.channels.take(literal) { Ok(()) } else { Err(Denied::Channel) }
    }

    /// The nearest entry decides: the full name's, then its parent's, then the group's.
    fn allows(&self, name: &str, kind: Kind) -> bool {
        let parent = name.split('|').next().unwrap_or(name);
        for name in [name, parent] {
            if self.named.contains(name) || self.refused.contains(name) {
                return self.named.contains(name);
            }
        }
        self.kinds.contains(&kind)
    }

    fn names(&self, name: &str) -> bool {
        self.named.contains(name) || self.named.contains(name.split('|').next().unwrap_or(name))
    }
}

fn group(name: &str) -> Option<&'static [Kind]> {
    Some(match name {
        "@read" => &[Kind::Read],
        "@write" => &[Kind::Write],
        "@publish" => &[Kind::Publish],
        "@script" => &[Kind::Script],
        "@admin" => &[Kind::Admin],
        "@all" => &[Kind::Read, Kind::Write, Kind::Publish, Kind::Script, Kind::Admin],
        _ => return None,
    })
}

/// The common beginning of all names that a pattern matches.
fn literal_prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len());
    &pattern[..end]
}

impl Prefixes {
    fn parse<S: AsRef<str>>(prefixes: &[S]) -> Self {
        let prefixes = prefixes.iter().map(|prefix| prefix.as_ref());
        let prefixes: Vec<_> =
            prefixes.map(|prefix| prefix.strip_suffix('*').unwrap_or(prefix).as_bytes().to_vec()).collect();
        if prefixes.iter().any(Vec::is_empty) { Self::Any } else { Self::OneOf(prefixes) }
    }

    fn take(&self, name: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(prefixes) => prefixes.iter().any(|prefix| name.starts_with(prefix)),
        }
    }
}

/// All rules of a server.
#[derive(Debug)]
pub(crate) struct Access {
    /// Without a token; `None` if one is needed.
    anonymous: Option<Rules>,
    tokens: Vec<Token>,
}

#[derive(Debug)]
struct Token {
    digest: [u8; 32],
    rules: Rules,
}

/// The file of rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    anonymous: Option<Entry>,
    #[serde(default)]
    token: Vec<TokenEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    commands: Vec<String>,
    keys: Option<Vec<String>>,
    channels: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    /// For people and messages; the server has no use for it.
    name: String,
    /// The token itself, or
    secret: Option<String>,
    /// its SHA-256 in hexadecimal digits, so that the file need not be a secret.
    sha256: Option<String>,
    commands: Vec<String>,
    keys: Option<Vec<String>>,
    channels: Option<Vec<String>>,
}

/// Shortest token that is taken: shorter ones can be guessed.
const MIN_SECRET: usize = 16;

impl Access {
    /// Every caller may do what `anonymous` allows; there are no tokens.
    pub(crate) fn open(anonymous: Rules) -> Self {
        Self { anonymous: Some(anonymous), tokens: Vec::new() }
    }

    /// Reads a file of rules.
    ///
    /// # Errors
    /// The fault in the file, in one line or a few; it never repeats a secret.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        // The parser's own message would quote the line, which may hold a secret.
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            format!("line {line}: {}", error.message())
        })?;
        let anonymous = match &file.anonymous {
            Some(entry) => Some(
                rules(&entry.commands, entry.keys.as_deref(), entry.channels.as_deref())
                    .map_err(|error| format!("[anonymous]: {error}"))?,
            ),
            None => None,
        };
        let tokens = file.token.iter().map(Token::new).collect::<Result<_, _>>()?;
        Ok(Self { anonymous, tokens })
    }

    /// The rights of the sender of these headers.
    ///
    /// # Errors
    /// When the token is unknown, or there is none and one is needed.
    pub(crate) fn rules(&self, headers: &HeaderMap) -> Result<&Rules, Denied> {
        match token(headers)? {
            Some(token) => self.of_token(token).ok_or(Denied::Token("this token is not known")),
            None => self.anonymous.as_ref().ok_or(Denied::Token("a token is needed: Authorization: Bearer TOKEN")),
        }
    }

    /// The rights of a caller that shows no token.
    pub(crate) fn anonymous(&self) -> Option<&Rules> {
        self.anonymous.as_ref()
    }

    /// Every token is compared, each in a time that does not depend on how much of it is right.
    fn of_token(&self, token: &[u8]) -> Option<&Rules> {
        let shown = digest(&SHA256, token);
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.digest.as_slice().ct_eq(shown.as_ref())) {
                found = Some(&token.rules);
            }
        }
        found
    }
}

fn rules(commands: &[String], keys: Option<&[String]>, channels: Option<&[String]>) -> Result<Rules, String> {
    let all = [String::from("*")];
    Rules::parse(commands, keys.unwrap_or(&all), channels)
}

impl Token {
    fn new(entry: &TokenEntry) -> Result<Self, String> {
        let wrong = |what: &str| format!("token {:?}: {what}", entry.name);
        let digest = match (&entry.secret, &entry.sha256) {
            (Some(secret), None) if secret.len() < MIN_SECRET => {
                return Err(wrong(&format!("its secret has less than {MIN_SECRET} characters")));
            }
            (Some(secret), None) => digest(&SHA256, secret.as_bytes()).as_ref().try_into().ok(),
            (None, Some(hex)) => from_hex(hex),
            _ => return Err(wrong("it needs either secret or sha256")),
        };
        let digest = digest.ok_or_else(|| wrong("sha256 is not 64 hexadecimal digits"))?;
        let rules =
            rules(&entry.commands, entry.keys.as_deref(), entry.channels.as_deref()).map_err(|error| wrong(&error))?;
        Ok(Self { digest, rules })
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let bytes: Option<Vec<u8>> =
        text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect();
    bytes?.try_into().ok()
}

/// The prefix of a token in a subprotocol, for a WebSocket client that cannot set headers, such as a browser.
pub(crate) const BEARER_PROTOCOL: &str = "bearer.";

/// The token that is shown, if any. Two of them, or another scheme, are refused rather than passed over.
fn token(headers: &HeaderMap) -> Result<Option<&[u8]>, Denied> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = shown.next() else { return Ok(token_of_socket(headers)) };
    let bearer = value.as_bytes().split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    match bearer {
        Some((_, token)) if shown.next().is_none() => Ok(Some(token.trim_ascii())),
        _ => Err(Denied::Token("one token is expected: Authorization: Bearer TOKEN")),
    }
}

fn token_of_socket(headers: &HeaderMap) -> Option<&[u8]> {
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.as_bytes();
    protocols
        .split(|byte| *byte == b',')
        .find_map(|protocol| protocol.trim_ascii().strip_prefix(BEARER_PROTOCOL.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token for everything but the administration, one for a shop, and read-only without a token.
    const FILE: &str = r#"
        [anonymous]
        commands = ["@read", "-dump"]

        [[token]]
        name = "all"
        secret = "0123456789abcdef"
        commands = ["@all", "-config", "config|get"]

        [[token]]
        name = "shop"
        # printf %s fedcba9876543210 | sha256sum
        sha256 = "D37B02B7AC8246C2A3AE5EF0EDD0DE4A1AE1A9CB6FE4EA9BD7D1D9C7F8F0A3A9"
        commands = ["@read", "@write", "@publish", "eval", "module.get"]
        keys = ["shop:*", "cart:"]
        channels = ["news:"]
    "#;

    fn access() -> Access {
        let digest = digest(&SHA256, b"fedcba9876543210");
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let at = FILE.find("D37B02").unwrap();
        Access::parse(&FILE.replace(&FILE[at..at + 64], &hex)).unwrap()
    }

    fn shown(result: Result<Kind, Denied>) -> &'static str {
        match result {
            Ok(_) => "ok",
            Err(Denied::Token(_)) => "token",
            Err(Denied::Command(_)) => "command",
            Err(Denied::Connection(_)) => "connection",
            Err(Denied::Key) => "key",
            Err(Denied::Unlimited(_)) => "unlimited",
            Err(Denied::Channel) => "channel",
        }
    }

    const ALL: &str = "0123456789abcdef";
    const SHOP: &str = "fedcba9876543210";

    /// Every attempt to get past the rules: its token, its command, and the answer.
    const ATTEMPTS: &[(&str, &[&str], &str)] = &[
        ("", &["GET", "k"], "ok"),
        ("", &["gEt", "k"], "ok"),
        ("", &["SET", "k", "v"], "command"),
        ("", &["sEt", "k", "v"], "command"),
        ("", &["dump", "k"], "command"),
        ("", &["KEYS", "*"], "command"),
        ("", &["EVAL", "return 1", "0"], "command"),
        ("", &["EVAL_RO", "return redis.call('GET', 'k')", "0"], "command"),
        ("", &["FCALL", "f", "0"], "command"),
        ("", &["SCRIPT", "LOAD", "return 1"], "command"),
        ("", &["CONFIG", "GET", "*"], "command"),
        ("", &["config", "set", "dir", "/"], "command"),
        ("", &["DEBUG", "SLEEP", "1"], "command"),
        ("", &["SHUTDOWN"], "command"),
        ("", &["MIGRATE", "h", "1", "k", "0", "1"], "command"),
        ("", &["REPLICAOF", "h", "1"], "command"),
        ("", &["PUBLISH", "c", "m"], "command"),
        ("", &["GETDEL", "k"], "command"),
        ("", &["GETEX", "k"], "command"),
        ("", &["SORT", "k", "STORE", "d"], "command"),
        ("", &["GEORADIUS", "k", "0", "0", "1", "m", "STORE", "d"], "command"),
        ("", &["BITFIELD", "k", "SET", "u8", "0", "1"], "command"),
        ("", &["XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"], "command"),
        // Names that only look like an allowed one.
        ("", &["GET ", "k"], "command"),
        ("", &[" GET", "k"], "command"),
        ("", &["GET\r\nFLUSHALL", "k"], "command"),
        ("", &["GET\0", "k"], "command"),
        ("", &["GET k"], "command"),
        ("", &["ＧＥＴ", "k"], "command"),
        ("", &["ſet", "k", "v"], "command"),
        ("", &["", "GET", "k"], "command"),
        ("", &["MODULE.GET", "k"], "command"),
        ("", &["JSON.GET", "k"], "ok"),
        ("", &["JSON.SET", "k", "$", "1"], "command"),
        ("", &["FT.SEARCH", "index", "*"], "ok"),
        ("", &["FT.CREATE", "index"], "command"),
        ("", &["CLIENT", "LIST"], "command"),
        ("", &["object|encoding", "k"], "command"),
        ("", &["MEMORY", "PURGE"], "command"),
        ("", &["XGROUP", "DESTROY", "s", "g"], "command"),
        // Commands that would reach other callers through the connection.
        (ALL, &["CLIENT", "REPLY", "OFF"], "connection"),
        (ALL, &["SCRIPT", "DEBUG", "YES"], "connection"),
        (ALL, &["XREAD", "BLOCK", "0", "STREAMS", "k", "$"], "connection"),
        (ALL, &["XREAD", "count", "1", "bLoCk", "0", "STREAMS", "k", "$"], "connection"),
        // Entries for parents and subcommands.
        (ALL, &["CONFIG", "GET", "dir"], "ok"),
        (ALL, &["CONFIG", "SET", "dir", "/"], "command"),
        (ALL, &["FLUSHALL"], "ok"),
        (ALL, &["EVAL", "return 1", "0"], "ok"),
        (ALL, &["MODULE.GET", "k"], "command"),
        (ALL, &["CLIENT", "LIST"], "ok"),
        (ALL, &["CLIENT", "KILL", "TYPE", "normal"], "connection"),
        // Prefixes.
        (SHOP, &["GET", "shop:1"], "ok"),
        (SHOP, &["MGET", "shop:1", "cart:2"], "ok"),
        (SHOP, &["MGET", "shop:1", "other"], "key"),
        (SHOP, &["GET", "Shop:1"], "key"),
        (SHOP, &["GET", " shop:1"], "key"),
        (SHOP, &["GET", "shop"], "key"),
        (SHOP, &["MSET", "shop:1", "v", "other", "v"], "key"),
        (SHOP, &["RENAME", "shop:1", "other"], "key"),
        (SHOP, &["COPY", "shop:1", "shop:2", "DB", "1"], "unlimited"),
        (SHOP, &["MOVE", "shop:1", "1"], "unlimited"),
        (SHOP, &["LMOVE", "other", "shop:1", "LEFT", "LEFT"], "key"),
        (SHOP, &["ZUNIONSTORE", "shop:d", "2", "shop:a", "other"], "key"),
        (SHOP, &["ZUNIONSTORE", "shop:d", "1", "shop:a", "other"], "ok"),
        (SHOP, &["ZUNIONSTORE", "other", "1", "shop:a"], "key"),
        (SHOP, &["ZUNIONSTORE", "shop:d", "-1", "other"], "unlimited"),
        (SHOP, &["SINTERCARD", "1", "other"], "key"),
        (SHOP, &["XREAD", "STREAMS", "shop:1", "other", "0", "0"], "key"),
        (SHOP, &["XREADGROUP", "GROUP", "STREAMS", "shop:1", "STREAMS", "other", ">"], "key"),
        (SHOP, &["BITOP", "AND", "shop:d", "other"], "key"),
        (SHOP, &["OBJECT", "ENCODING", "other"], "key"),
        (SHOP, &["SORT", "shop:1", "BY", "nosort", "GET", "other"], "command"),
        (SHOP, &["GEORADIUS", "shop:1", "0", "0", "1", "m", "STORE", "other"], "unlimited"),
        (SHOP, &["SCAN", "0"], "unlimited"),
        (SHOP, &["RANDOMKEY"], "unlimited"),
        (SHOP, &["DBSIZE"], "unlimited"),
        (SHOP, &["EVAL", "return redis.call('GET', 'other')", "1", "shop:1"], "unlimited"),
        (SHOP, &["MODULE.GET", "shop:1"], "unlimited"),
        (SHOP, &["JSON.GET", "shop:1"], "ok"),
        (SHOP, &["JSON.MGET", "shop:1", "other", "$"], "key"),
        (SHOP, &["JSON.SET", "other", "$", "1"], "key"),
        (SHOP, &["FT.SEARCH", "index", "*"], "unlimited"),
        (SHOP, &["PUBLISH", "news:1", "m"], "ok"),
        (SHOP, &["PUBLISH", "other", "m"], "channel"),
        (SHOP, &["PING"], "ok"),
    ];

    #[test]
    fn attempts() {
        let access = access();
        let check = |token: &str, command: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            if !token.is_empty() {
                headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            }
            let rules = access.rules(&headers).unwrap();
            assert_eq!(shown(rules.check(command)), expected, "{token} {command:?}");
            if let ["GET", key] = command {
                let get = rules.check_get(key.as_bytes()).map(|()| Kind::Read);
                assert_eq!(shown(get), expected, "{token} /get?key={key}");
            }
        };
        for (token, command, expected) in ATTEMPTS {
            check(token, command, expected);
        }
        // Commands that would reach other callers through the connection.
        for command in ["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "SELECT", "AUTH", "HELLO", "RESET", "QUIT"] {
            check("", &[command, "1"], "connection");
            check(ALL, &[command, "1"], "connection");
        }
        for command in ["SUBSCRIBE", "PSUBSCRIBE", "MONITOR", "SYNC", "PSYNC", "CLIENT", "BLPOP", "WAIT", "READONLY"] {
            check(ALL, &[command, "k", "0"], "connection");
        }
    }

    #[test]
    fn channels() {
        let access = access();
        let shop = access.of_token(b"fedcba9876543210").unwrap();
        let check = |channel: &[u8], is_pattern, expected| {
            assert_eq!(shop.check_channel(channel, is_pattern).is_ok(), expected, "{}", channel.escape_ascii());
        };
        check(b"news:1", false, true);
        check(b"news:*", true, true);
        check(b"other", false, false);
        check(b"*", true, false);
        check(b"new[s]:", true, false);
        check(b"news\\:", true, false);
        check(b"__keyspace@0__:other", false, false);
        let unlimited = access.rules(&HeaderMap::new()).unwrap();
        assert!(unlimited.check_channel(b"*", true).is_ok());
        let named = Rules::parse(&["get"], &["*"], None).unwrap();
        assert!(named.check_channel(b"news", false).is_err(), "not among the commands");
    }

    #[test]
    fn tokens() {
        let access = access();
        let check = |header: &str, value: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.append(http::HeaderName::from_bytes(header.as_bytes()).unwrap(), value.parse().unwrap());
            assert_eq!(access.rules(&headers).is_ok(), expected, "{header}: {value}");
        };
        check("authorization", "Bearer 0123456789abcdef", true);
        check("authorization", "bearer  0123456789abcdef", true);
        check("authorization", "Bearer 0123456789abcde", false);
        check("authorization", "Bearer 0123456789abcdefg", false);
        check("authorization", "Bearer ", false);
        check("authorization", "Bearer", false);
        check("authorization", "Basic 0123456789abcdef", false);
        check("authorization", "0123456789abcdef", false);
        check("sec-websocket-protocol", "redis, bearer.0123456789abcdef", true);
        check("sec-websocket-protocol", "redis, bearer.x", false);
        check("sec-websocket-protocol", "redis", true);
        let mut two = HeaderMap::new();
        two.append(AUTHORIZATION, "Bearer 0123456789abcdef".parse().unwrap());
        two.append(AUTHORIZATION, "Bearer x".parse().unwrap());
        assert!(access.rules(&two).is_err());
        assert!(
            Access::parse("").unwrap().rules(&HeaderMap::new()).is_err(),
            "nobody is anonymous where nobody is named"
        );
    }

    #[test]
    fn files() {
        fn check(text: &str, expected: &str) {
            assert_eq!(Access::parse(text).unwrap_err(), expected);
        }
        check("[anonymous]\ncommands = [\"@none\"]", "[anonymous]: \"@none\" is no group of commands");
        check("[anonymous]\ncommands = [\"get set\"]", "[anonymous]: \"get set\" names no command");
        check("[[token]]\nname = \"a\"\ncommands = []", "token \"a\": it needs either secret or sha256");
        check(
            "[[token]]\nname = \"a\"\nsecret = \"short\"\ncommands = []",
            "token \"a\": its secret has less than 16 characters",
        );
        check(
            "[[token]]\nname = \"a\"\nsha256 = \"xyz\"\ncommands = []",
            "token \"a\": sha256 is not 64 hexadecimal digits",
        );
        let error = Access::parse("[[token]]\nname = \"a\"\nsecrets = \"0123456789abcdef\"\n").unwrap_err();
        assert!(error.starts_with("line ") && !error.contains("0123456789abcdef"), "{error}");
    }
}
