//! Redis Cluster: each request goes to the server that has its key's slot, and on from there as servers say.
//!
//! ```text
//! drawn ──▶ placed ──▶ sent ──▶ answered
//!             ▲                  │ MOVED: the map learns      (again `MOST_REDIRECTS` times at most)
//!             └──────────────────┤ ASK: with ASKING before it
//! ```

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use rand::Rng as _;

use super::reply::{Reader, Reply};
use super::slot::{SLOTS, slot};
use super::standalone::Redis;
use super::topology::{Place, SlotRange, redirection};
use crate::clock::Nanos;
use crate::codec::fifo::Asked;
use crate::codec::{Broken, Drawn, Protocol, Received, Routes, shown};
use crate::record::{Failure, Tally};
use crate::workload::Source;

/// How often a request is sent on before it counts as failed; clients' libraries have five to sixteen.
const MOST_REDIRECTS: u8 = 16;

/// The command before a request that ASK redirected.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// Errors that tell of a map which has changed, besides MOVED.
const SIGNS: [&[u8]; 3] = [b"CLUSTERDOWN", b"READONLY", b"MASTERDOWN"];

/// Commands on a cluster.
#[derive(Clone, Debug)]
pub struct RedisCluster {
    redis: Redis,
    /// By command, which of its words is the key; one without can run on any server.
    keys: Vec<Option<usize>>,
    map: Arc<Map>,
}

/// The owners of slots, and the addresses of host names.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) routes: Routes,
    /// Names are looked up before a run and beside it, never within.
    names: RwLock<HashMap<String, IpAddr>>,
}

impl Map {
    pub(crate) fn new() -> Self {
        Self { routes: Routes::new(SLOTS), names: RwLock::default() }
    }

    /// Learns what a cluster said when the server at `asked` was asked; `resolve` looks names up.
    ///
    /// # Errors
    /// When a name leads nowhere, or there are too many servers.
    pub(crate) fn install(
        &self,
        ranges: &[SlotRange],
        asked: SocketAddr,
        resolve: impl Fn(&str) -> Option<IpAddr>,
    ) -> Result<(), String> {
        for SlotRange { first, last, primary } in ranges {
            if let Some(host) = primary.host.as_deref().filter(|host| host.parse::<IpAddr>().is_err()) {
                let ip = resolve(host).ok_or_else(|| format!("the cluster names {host}, which has no address here"))?;
                self.names.write().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), ip);
            }
            let server = self.address(primary, asked).and_then(|address| self.routes.number(address));
            let server = server.ok_or("the cluster has too many servers")?;
            (*first..=*last).for_each(|slot| self.routes.learn(slot, server));
        }
        Ok(())
    }

    /// The address of a place that was named by the server at `from`.
    fn address(&self, place: &Place, from: SocketAddr) -> Option<SocketAddr> {
        let ip = match place.host.as_deref() {
            None => from.ip(),
            Some(host) => match host.parse() {
                Ok(ip) => ip,
                Err(_) => *self.names.read().unwrap_or_else(PoisonError::into_inner).get(host)?,
            },
        };
        Some(SocketAddr::new(ip, place.port))
    }
}

/// One connection's state.
#[derive(Clone, Debug)]
pub struct ClusterConnection {
    server: usize,
    /// Requests in flight, oldest first; the last `unsent` of them are still to be sent.
    flights: VecDeque<Flight>,
    unsent: usize,
    /// The bytes of all requests in flight, in their order: what is sent on is sent again.
    bytes: VecDeque<u8>,
    sent_on: VecDeque<(usize, Drawn)>,
    reader: Reader,
    greeted: bool,
    login_left: u32,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    asked: Asked,
    length: u32,
    redirects: u8,
    /// Whether an answer to ASKING comes first.
    asking: bool,
}

/// How a server sends a request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirection {
    Moved,
    Ask,
}

impl RedisCluster {
    /// The commands of `redis`, whose keys are these words, on the servers of a map.
    pub(crate) fn new(redis: Redis, keys: Vec<Option<usize>>, map: Arc<Map>) -> Self {
        Self { redis, keys, map }
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    /// Judges a reply that is complete.
    fn account(&self, connection: &mut ClusterConnection, reply: &Reply<'_>, tally: &mut Tally) -> Result<(), Broken> {
        if connection.login_left > 0 {
            connection.login_left -= 1;
            return reply.check_login();
        }
        let is_sent = connection.flights.len() > connection.unsent;
        let Some(first) = connection.flights.front_mut().filter(|_| is_sent) else {
            return Err(reply.unasked());
        };
        if first.asking {
            first.asking = false;
            return Ok(());
        }
        let Flight { asked, length, redirects, .. } = *first;
        connection.flights.pop_front();
        let request = connection.bytes.drain(..length as usize);
        if let Reply::Error(text) = reply {
            if SIGNS.iter().any(|sign| text.starts_with(sign)) {
                self.map.routes.distrust();
            }
            if let Some((server, kind)) = self.redirection(text, connection.server) {
                match kind {
                    Redirection::Moved => tally.moved(asked.intended),
                    Redirection::Ask => tally.asked(asked.intended),
                }
                if redirects < MOST_REDIRECTS {
                    let Asked { intended, key, operation } = asked;
                    let (redirects, asking) = (redirects + 1, kind == Redirection::Ask);
                    let drawn = Drawn { intended, operation, key, redirects, asking, bytes: request.collect() };
                    connection.sent_on.push_back((server, drawn));
                    return Ok(());
                }
                let example = || format!("sent on {MOST_REDIRECTS} times, at last by `{}`", shown(text));
                tally.failed(asked.intended, Failure::Rejected, example);
                return Ok(());
            }
        }
        drop(request);
        self.redis.judge(&asked, reply, tally);
        Ok(())
    }

    /// Where an error sends its request, if it does; the map learns it.
    fn redirection(&self, text: &[u8], from: usize) -> Option<(usize, Redirection)> {
        let kind = match text.split(|byte| *byte == b' ').next()? {
            b"MOVED" => Redirection::Moved,
            b"ASK" => Redirection::Ask,
            _ => return None,
        };
        let routes = &self.map.routes;
        if kind == Redirection::Moved {
            // Where one slot has moved, others have.
            routes.distrust();
        }
        let (slot, place) = redirection(text)?;
        let server = routes.number(self.map.address(&place, routes.address(from)?)?)?;
        if kind == Redirection::Moved {
            routes.learn(slot, server);
        }
        Some((server, kind))
    }
}

impl Protocol for RedisCluster {
    type Connection = ClusterConnection;

    const ROUTED: bool = true;

    fn operations(&self) -> Vec<String> {
        self.redis.operations()
    }

    fn connect(&self, seat: usize) -> ClusterConnection {
        self.connect_to(seat, 0)
    }

    fn routes(&self) -> Option<&Routes> {
        Some(&self.map.routes)
    }

    fn connect_to(&self, _seat: usize, server: usize) -> ClusterConnection {
        ClusterConnection {
            server,
            flights: VecDeque::new(),
            unsent: 0,
            bytes: VecDeque::new(),
            sent_on: VecDeque::new(),
            reader: Reader::default(),
            greeted: self.redis.login_replies == 0,
            login_left: self.redis.login_replies,
        }
    }

    fn draw(&self, source: &mut Source, drawn: &mut Drawn) -> usize {
        let redis = &self.redis;
        let operation = redis.mix.next(source);
        let command = &redis.commands()[operation];
        drawn.operation = operation as u32;
        drawn.key = if command.has_key() { redis.subjects.keys.next(source) } else { 0 };
        (drawn.redirects, drawn.asking) = (0, false);
        drawn.bytes.clear();
        command.append(drawn.key, &redis.subjects, source, &mut drawn.bytes);
        let slot = match self.keys[operation] {
            Some(number) => slot(word(&drawn.bytes, number)),
            None => source.rng.random_range(0..SLOTS),
        };
        // Some server answers for slots without an owner.
        self.map.routes.owner(slot).unwrap_or(0)
    }

    fn place(&self, connection: &mut ClusterConnection, drawn: &Drawn) {
        let asked = Asked { intended: drawn.intended, key: drawn.key, operation: drawn.operation };
        let length = drawn.bytes.len() as u32;
        connection.flights.push_back(Flight { asked, length, redirects: drawn.redirects, asking: drawn.asking });
        connection.bytes.extend(&drawn.bytes);
        connection.unsent += 1;
    }

    fn redirected(&self, connection: &mut ClusterConnection, drawn: &mut Drawn) -> Option<usize> {
        let (server, sent_on) = connection.sent_on.pop_front()?;
        *drawn = sent_on;
        Some(server)
    }

    fn control(&self, connection: &mut ClusterConnection, out: &mut Vec<u8>) {
        if !connection.greeted {
            connection.greeted = true;
            out.extend_from_slice(&self.redis.login);
        }
        if connection.login_left > 0 || connection.unsent == 0 {
            return;
        }
        let unsent = connection.flights.len() - connection.unsent..;
        let mut rest: usize = connection.flights.range(unsent.clone()).map(|flight| flight.length as usize).sum();
        let (before, behind) = connection.bytes.as_slices();
        for flight in connection.flights.range(unsent) {
            if flight.asking {
                out.extend_from_slice(ASKING);
            }
            // From the end, because what has been sent stands before.
            let start = before.len() + behind.len() - rest;
            rest -= flight.length as usize;
            let end = before.len() + behind.len() - rest;
            out.extend_from_slice(&before[start.min(before.len())..end.min(before.len())]);
            out.extend_from_slice(&behind[start.saturating_sub(before.len())..end.saturating_sub(before.len())]);
        }
        connection.unsent = 0;
    }

    fn room(&self, connection: &ClusterConnection) -> usize {
        if connection.login_left == 0 { usize::MAX } else { 0 }
    }

    fn in_flight(&self, connection: &ClusterConnection) -> usize {
        connection.flights.len() + connection.sent_on.len()
    }

    fn begin(&self, connection: &mut ClusterConnection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let mut drawn = Drawn { intended, ..Drawn::default() };
        self.draw(source, &mut drawn);
        drawn.intended = intended;
        self.place(connection, &drawn);
        self.control(connection, out);
    }

    fn receive(&self, connection: &mut ClusterConnection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut consumed = 0;
        loop {
            let first = connection.flights.front().filter(|first| !first.asking);
            let whole = first.is_some_and(|first| self.redis.looks_at_all(first.asked.operation));
            let (read, reply) = connection.reader.read(&input[consumed..], whole)?;
            consumed += read;
            let Some(reply) = reply else {
                return Ok(Received { consumed, close: false });
            };
            self.account(connection, &reply, tally)?;
        }
    }

    fn expire(&self, connection: &mut ClusterConnection, before: Nanos, tally: &mut Tally) -> bool {
        // One that was sent on is older than those before it.
        let is_late = connection.flights.iter().any(|flight| flight.asked.intended < before);
        if is_late {
            // A server that does not answer may have been replaced.
            self.map.routes.distrust();
            tally.explain(Failure::TimedOut, "no answer within the time-out".to_owned());
            self.abandon(connection, Failure::TimedOut, tally);
        }
        is_late
    }

    fn abandon(&self, connection: &mut ClusterConnection, failure: Failure, tally: &mut Tally) {
        let flights = connection.flights.drain(..).map(|flight| flight.asked.intended);
        let sent_on = connection.sent_on.drain(..).map(|(_, drawn)| drawn.intended);
        flights.chain(sent_on).for_each(|intended| tally.failed(intended, failure, String::new));
        connection.bytes.clear();
        connection.unsent = 0;
    }
}

/// A word of a request in RESP that was made here.
fn word(request: &[u8], number: usize) -> &[u8] {
    let mut rest = behind_line(request);
    for _ in 0..number {
        rest = behind_line(rest).get(length(rest) + 2..).unwrap_or_default();
    }
    let length = length(rest);
    behind_line(rest).get(..length).unwrap_or_default()
}

fn behind_line(text: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', text).map_or(&[], |end| &text[end + 1..])
}

/// The length of a word, by the line before it.
fn length(word: &[u8]) -> usize {
    let digits = word.iter().skip(1).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Login, RedisCommand};
    use crate::record::{Redirects, Window};
    use crate::workload::{Distribution, Keys, Sizes, Subjects, Values};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// A cluster of two servers, each with half of the slots, and a SET of one key, whose slot is 12,182: the second's.
    fn cluster(login: &Login) -> RedisCluster {
        let subjects = Subjects {
            keys: Keys::new(1, Distribution::Uniform).unwrap(),
            values: Values::new(Sizes::Fixed(3), 0).unwrap(),
        };
        let set = RedisCommand::new(["SET", "foo", "{value}"]).unwrap();
        let redis = Redis::new(vec![(set, 1)], subjects, login, true).unwrap();
        let map = Map::new();
        let range = |first, last, port| SlotRange { first, last, primary: Place { host: None, port } };
        map.install(&[range(0, 8191, 1), range(8192, 16_383, 2)], address(1), |_| None).unwrap();
        RedisCluster::new(redis, vec![Some(1)], Arc::new(map))
    }

    const SET: &str = "*3\r\n$3\r\nSET\r\n$3\r\nfoo\r\n$3\r\n000\r\n";

    fn drawn(cluster: &RedisCluster) -> (usize, Drawn) {
        let mut drawn = Drawn::default();
        let server = cluster.draw(&mut Source::new(0, 0, 1), &mut drawn);
        drawn.intended = 1;
        (server, drawn)
    }

    fn tally() -> Tally {
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 0, until: 9 });
        tally
    }

    /// The next bytes to send.
    fn said(cluster: &RedisCluster, connection: &mut ClusterConnection) -> String {
        let mut out = Vec::new();
        cluster.control(connection, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_are_found_in_requests() {
        for (number, expected) in ["SET", "foo", "000", ""].into_iter().enumerate() {
            assert_eq!(word(SET.as_bytes(), number), expected.as_bytes());
        }
        assert_eq!(word(b"", 1), b"");
    }

    #[test]
    fn a_request_goes_to_the_server_that_has_its_slot() {
        let cluster = cluster(&Login::default());
        let (server, drawn) = drawn(&cluster);
        assert_eq!((server, &drawn.bytes[..]), (1, SET.as_bytes()));
        let (mut connection, mut tally) = (cluster.connect_to(0, 1), tally());
        cluster.place(&mut connection, &drawn);
        cluster.place(&mut connection, &drawn);
        assert_eq!((said(&cluster, &mut connection), said(&cluster, &mut connection)), (SET.repeat(2), String::new()));
        assert_eq!(cluster.in_flight(&connection), 2);
        cluster.receive(&mut connection, b"+OK\r\n+OK\r\n", &mut tally).unwrap();
        assert_eq!((cluster.in_flight(&connection), tally.latencies()[0].count()), (0, 2));
        let broken = cluster.receive(&mut connection, b"+OK\r\n", &mut tally).unwrap_err();
        assert_eq!(broken.example, "a reply that nobody asked for: `OK`");
    }

    #[test]
    fn requests_wait_for_the_login_reply() {
        let cluster = cluster(&Login { resp3: true, ..Login::default() });
        let mut connection = cluster.connect_to(0, 1);
        cluster.place(&mut connection, &drawn(&cluster).1);
        assert_eq!(said(&cluster, &mut connection), "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
        assert_eq!(said(&cluster, &mut connection), "");
        cluster.receive(&mut connection, b"%0\r\n", &mut tally()).unwrap();
        assert_eq!(said(&cluster, &mut connection), SET);
    }

    #[test]
    fn a_slot_that_has_moved_is_learnt_and_its_request_sent_again() {
        let cluster = cluster(&Login::default());
        let (mut connection, mut tally) = (cluster.connect_to(0, 1), tally());
        cluster.place(&mut connection, &drawn(&cluster).1);
        said(&cluster, &mut connection);
        cluster.receive(&mut connection, b"-MOVED 12182 :3\r\n", &mut tally).unwrap();
        assert_eq!(tally.redirects(), Redirects { moved: 1, asked: 0, slots: 0 });
        let mut again = Drawn::default();
        assert_eq!((cluster.in_flight(&connection), cluster.redirected(&mut connection, &mut again)), (1, Some(2)));
        assert_eq!((&again.bytes[..], again.intended, again.redirects, again.asking), (SET.as_bytes(), 1, 1, false));
        assert_eq!((drawn(&cluster).0, cluster.map().routes.address(2)), (2, Some(address(3))));
        assert_eq!((cluster.in_flight(&connection), tally.failures().total()), (0, 0));
        assert!(cluster.map().routes.wait(), "the map is asked for anew");
    }

    #[test]
    fn a_key_that_is_already_elsewhere_is_asked_for_there() {
        let cluster = cluster(&Login::default());
        let (mut connection, mut tally) = (cluster.connect_to(0, 1), tally());
        cluster.place(&mut connection, &drawn(&cluster).1);
        said(&cluster, &mut connection);
        cluster.receive(&mut connection, b"-ASK 12182 127.0.0.1:1\r\n", &mut tally).unwrap();
        let mut again = Drawn::default();
        assert_eq!((cluster.redirected(&mut connection, &mut again), drawn(&cluster).0), (Some(0), 1));
        let mut other = cluster.connect_to(0, 0);
        cluster.place(&mut other, &again);
        assert_eq!(said(&cluster, &mut other), format!("*1\r\n$6\r\nASKING\r\n{SET}"));
        cluster.receive(&mut other, b"+OK\r\n+OK\r\n", &mut tally).unwrap();
        assert_eq!((tally.latencies()[0].count(), tally.redirects()), (1, Redirects { moved: 0, asked: 1, slots: 0 }));
    }

    #[test]
    fn a_request_is_not_sent_on_for_ever() {
        let cluster = cluster(&Login::default());
        let (mut connection, mut tally, mut again) = (cluster.connect_to(0, 1), tally(), drawn(&cluster).1);
        for _ in 0..=MOST_REDIRECTS {
            cluster.place(&mut connection, &again);
            said(&cluster, &mut connection);
            cluster.receive(&mut connection, b"-MOVED 12182 127.0.0.1:2\r\n", &mut tally).unwrap();
            cluster.redirected(&mut connection, &mut again);
        }
        let failures = tally.failures().list();
        assert_eq!(failures[0].examples, ["sent on 16 times, at last by `MOVED 12182 127.0.0.1:2`"]);
        assert_eq!((failures[0].count, failures[0].kind, cluster.in_flight(&connection)), (1, Failure::Rejected, 0));
    }

    #[test]
    fn a_lost_connection_fails_all_that_was_on_it() {
        let cluster = cluster(&Login::default());
        let (mut connection, mut tally) = (cluster.connect_to(0, 1), tally());
        for _ in 0..3 {
            cluster.place(&mut connection, &drawn(&cluster).1);
        }
        said(&cluster, &mut connection);
        cluster.receive(&mut connection, b"-MOVED 12182 127.0.0.1:1\r\n", &mut tally).unwrap();
        assert!(!cluster.expire(&mut connection, 1, &mut tally));
        assert!(cluster.expire(&mut connection, 2, &mut tally));
        assert_eq!((tally.failures().count(Failure::TimedOut), cluster.in_flight(&connection)), (3, 0));
    }

    /// Pieces of replies in any order: nothing panics, and what is in flight ends once.
    #[test]
    fn no_answer_is_too_strange() {
        const PIECES: [&str; 14] = [
            "+OK\r\n",
            "-MOVED 12182 127.0.0.1:2\r\n",
            "-ASK 12182 :1\r\n",
            "-ASK 1 [::1]:9\r\n",
            "-MOVED\r\n",
            "-MOVED 99999 a:b\r\n",
            "-CLUSTERDOWN x\r\n",
            "*2\r\n",
            "$3\r\nabc\r\n",
            "$-1\r\n",
            ":1\r\n",
            "%1\r\n",
            "\r\n",
            "x",
        ];
        let cluster = cluster(&Login::default());
        for seed in 0..2000 {
            let (mut source, mut tally) = (Source::new(seed, 0, 1), Tally::new(1));
            let (mut connection, mut again) = (cluster.connect_to(0, 1), drawn(&cluster).1);
            let mut sent_on = 0;
            for _ in 0..3 {
                cluster.place(&mut connection, &drawn(&cluster).1);
            }
            said(&cluster, &mut connection);
            let pieces = (0..6).map(|_| PIECES[source.rng.random_range(0..PIECES.len())]).collect::<String>();
            let _ = cluster.receive(&mut connection, pieces.as_bytes(), &mut tally);
            let _ = super::super::value::Value::parse(pieces.as_bytes());
            while cluster.redirected(&mut connection, &mut again).is_some() {
                sent_on += 1;
            }
            cluster.abandon(&mut connection, Failure::Closed, &mut tally);
            assert_eq!((tally.ended() + sent_on, cluster.in_flight(&connection)), (3, 0), "{pieces}");
        }
    }
}
