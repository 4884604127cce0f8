//! A run on Redis Cluster: the map is asked for before it, and again beside it whenever something does not fit.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::{Stream, connect, explained};
use crate::codec::{
    Login, Map, Redis, RedisCluster, RedisCommand, SlotRange, Value, append_request, of_shards, of_slots,
};
use crate::load::{Endpoint, Load, Tls};
use crate::record::{Ending, Outcome, Redirects};
use crate::scenario::Workload;
use crate::session;
use crate::watch::{Progress, Watch};
use crate::workload::Subjects;

/// The map is asked for no more often than this.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// How long a server may take to say what it knows, beside a run: another one is asked then.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest reply that is read: the map of a thousand nodes has a few hundred thousand bytes.
const LONGEST_REPLY: usize = 16 << 20;

/// Commands on a cluster, and the thread that asks for its map.
pub(crate) struct Cluster {
    protocol: RedisCluster,
    preload: Option<(RedisCluster, Load)>,
    asker: Asker,
}

impl Cluster {
    /// Asks the server of `load` for its cluster's map, and which words of the commands are keys.
    ///
    /// # Errors
    /// When it cannot be reached, or is no node of a cluster.
    pub(crate) fn new(
        load: &Load,
        login: &Login,
        redis: Redis,
        preload: Option<(Redis, Load)>,
        subjects: &Subjects,
    ) -> Result<Self, String> {
        let asker = Asker { tls: load.endpoint.tls().cloned(), login: login.clone() };
        let map = Arc::new(Map::new());
        let mut known = Err("there is no address to ask".to_owned());
        for address in load.endpoints().flat_map(Endpoint::addresses) {
            known = asker.prepare(*address, &map, &redis, subjects, load.timeout);
            if known.is_ok() {
                break;
            }
        }
        let keys = known?;
        if map.routes.servers() == 0 {
            return Err("no server of the cluster has a slot".to_owned());
        }
        let preload = preload.map(|(redis, load)| (RedisCluster::new(redis, vec![Some(1)], Arc::clone(&map)), load));
        Ok(Self { protocol: RedisCluster::new(redis, keys, map), preload, asker })
    }

    fn measure(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        if let Some((preload, preload_load)) = &self.preload {
            let outcome = session::run(preload, preload_load, watch);
            if outcome.ending != Ending::Complete || outcome.failed() > 0 {
                return not_preloaded(outcome);
            }
        }
        let before = self.protocol.map().routes.changes();
        let outcome = session::run(&self.protocol, load, watch);
        let slots = self.protocol.map().routes.changes() - before;
        let redirects = outcome.redirects.map(|found| Redirects { slots, ..found });
        Outcome { redirects, ..outcome }
    }

    /// Asks for the map whenever it is distrusted, until the run is over.
    fn follow(&self) {
        let map = self.protocol.map();
        while map.routes.wait() {
            // Any server knows it, but one that has just died does not answer.
            let is_known =
                map.routes.owners().into_iter().any(|address| self.asker.learn(address, map, PATIENCE).is_ok());
            if !is_known {
                map.routes.distrust();
            }
            map.routes.pause(LEAST_PAUSE);
        }
    }
}

impl Workload for Cluster {
    fn run(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        /// Waiting threads must not wait for ever at the run's end, however it ends.
        struct Over<'a>(&'a Map);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.routes.end();
            }
        }
        self.protocol.map().routes.begin();
        std::thread::scope(|scope| {
            let _over = Over(self.protocol.map());
            scope.spawn(|| self.follow());
            self.measure(load, watch)
        })
    }

    fn servers(&self, _load: &Load) -> Vec<Vec<SocketAddr>> {
        self.protocol.map().routes.owners().into_iter().map(|address| vec![address]).collect()
    }

    fn connections(&self, load: &Load) -> usize {
        load.connections.saturating_mul(self.protocol.map().routes.owners().len())
    }
}

/// The result of a run that was to store the keys, and did not.
pub(crate) fn not_preloaded(outcome: Outcome) -> Outcome {
    let note = "the keys could not all be stored before the run: this is that attempt's result".to_owned();
    Outcome { notes: [vec![note], outcome.notes].concat(), ..outcome }
}

/// The thread that asks servers of a cluster for the map.
struct Asker {
    tls: Option<Tls>,
    login: Login,
}

impl Asker {
    /// Learns the map from the server at an address, and which word of each command is its key.
    fn prepare(
        &self,
        address: SocketAddr,
        map: &Map,
        redis: &Redis,
        subjects: &Subjects,
        timeout: Duration,
    ) -> Result<Vec<Option<usize>>, String> {
        let mut client = self.client(address, timeout)?;
        client.learn(map)?;
        redis.commands().iter().map(|command| client.key_of(command, subjects)).collect()
    }

    fn learn(&self, address: SocketAddr, map: &Map, timeout: Duration) -> Result<(), String> {
        self.client(address, timeout)?.learn(map)
    }

    fn client(&self, address: SocketAddr, timeout: Duration) -> Result<Client, String> {
        let endpoint = Endpoint::Tcp(vec![address], self.tls.clone());
        let stream = connect(&endpoint, timeout).map_err(|error| format!("{address}: {}", explained(&error)))?;
        let mut client = Client { address, is_tls: self.tls.is_some(), stream, unread: Vec::new() };
        let (commands, replies) = self.login.encode();
        client.send(&commands)?;
        for _ in 0..replies {
            if let Value::Error(text) = client.receive()? {
                return Err(format!("{address}: login: {}", String::from_utf8_lossy(&text)));
            }
        }
        Ok(client)
    }
}

/// A connection for one question at a time.
struct Client {
    address: SocketAddr,
    is_tls: bool,
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

impl Client {
    /// Asks for the map.
    fn learn(&mut self, map: &Map) -> Result<(), String> {
        let ranges = self.ranges().map_err(|error| format!("{}: {error}", self.address))?;
        let resolve =
            |host: &str| -> Option<IpAddr> { (host, 0).to_socket_addrs().ok()?.next().map(|found| found.ip()) };
        map.install(&ranges, self.address, resolve)
    }

    /// CLUSTER SHARDS, or CLUSTER SLOTS where that is not known yet (before 7.0).
    fn ranges(&mut self) -> Result<Vec<SlotRange>, String> {
        let shards = self.ask(&[b"CLUSTER", b"SHARDS"])?;
        let is_unknown = matches!(&shards, Value::Error(text) if text.to_ascii_lowercase().starts_with(b"err unknown"));
        if is_unknown { of_slots(&self.ask(&[b"CLUSTER", b"SLOTS"])?) } else { of_shards(&shards, self.is_tls) }
    }

    /// Which word of a command is its key; none if it has none.
    fn key_of(&mut self, command: &RedisCommand, subjects: &Subjects) -> Result<Option<usize>, String> {
        let words = command.example(subjects);
        if words.len() == 1 {
            // COMMAND GETKEYS wants an argument.
            return Ok(None);
        }
        let question: Vec<&[u8]> =
            [&b"COMMAND"[..], b"GETKEYS"].into_iter().chain(words.iter().map(Vec::as_slice)).collect();
        match self.ask(&question)? {
            Value::List(keys) => match keys.first() {
                Some(Value::Text(key)) => Ok(words.iter().skip(1).position(|word| word == key).map(|place| place + 1)),
                _ => Ok(None),
            },
            Value::Error(text) if text.ends_with(b"no key arguments") => Ok(None),
            Value::Error(text) => Err(format!("{}: {}", command.name(), String::from_utf8_lossy(&text))),
            other => Err(format!("COMMAND GETKEYS: expected keys, read {other:?}")),
        }
    }

    fn ask(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let mut request = Vec::new();
        append_request(words.iter().copied(), &mut request);
        self.send(&request)?;
        self.receive()
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
        sent.map_err(|error| format!("{}: {}", self.address, explained(&error)))
    }

    fn receive(&mut self) -> Result<Value, String> {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some((value, length)) = Value::parse(&self.unread).map_err(|broken| broken.example)? {
                self.unread.drain(..length);
                return Ok(value);
            }
            if self.unread.len() > LONGEST_REPLY {
                return Err(format!("{}: a reply of more than {LONGEST_REPLY} bytes", self.address));
            }
            match self.stream.receive(&mut buffer) {
                Ok(0) => return Err(format!("{}: the server closed the connection", self.address)),
                Ok(length) => self.unread.extend_from_slice(&buffer[..length]),
                Err(error) => return Err(format!("{}: {}", self.address, explained(&error))),
            }
        }
    }
}
