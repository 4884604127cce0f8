//! Load on one Redis server.

use super::command::RedisCommand;
use super::login::Login;
use super::reply::{Reader, Reply};
use crate::clock::Nanos;
use crate::codec::fifo::{Asked, InFlight};
use crate::codec::operations::Operations;
use crate::codec::{Broken, Protocol, Received, shown};
use crate::record::{Failure, Tally};
use crate::workload::{Mix, Source, Subjects};

/// A mix of commands on a Redis server.
#[derive(Clone, Debug)]
pub struct Redis {
    commands: Vec<RedisCommand>,
    pub(super) mix: Mix,
    operations: Operations,
    pub(super) subjects: Subjects,
    pub(super) login: Vec<u8>,
    pub(super) login_replies: u32,
    verify: bool,
    connection_per_batch: bool,
}

/// One connection's state.
#[derive(Clone, Debug)]
pub struct RedisConnection {
    in_flight: InFlight,
    reader: Reader,
    greeted: bool,
    login_left: u32,
    answered: bool,
}

impl Redis {
    /// Commands by their weights, filled with subjects.
    ///
    /// # Errors
    /// When there is no command, or a weight is 0.
    pub fn new(
        commands: Vec<(RedisCommand, u32)>,
        subjects: Subjects,
        login: &Login,
        verify: bool,
    ) -> Result<Self, String> {
        let (commands, weights): (Vec<_>, Vec<_>) = commands.into_iter().unzip();
        let operations = Operations::each(commands.iter().map(RedisCommand::name));
        Ok(Self::with(commands, Mix::new(&weights)?, operations, subjects, login, verify))
    }

    /// Commands in this order, over and over again; those of one name are one operation.
    ///
    /// # Errors
    /// When there is no command.
    pub fn in_turn(
        commands: Vec<RedisCommand>,
        order: Vec<u32>,
        subjects: Subjects,
        login: &Login,
        verify: bool,
    ) -> Result<Self, String> {
        let operations = Operations::by_name(commands.iter().map(RedisCommand::name));
        Ok(Self::with(commands, Mix::in_turn(order)?, operations, subjects, login, verify))
    }

    fn with(
        mut commands: Vec<RedisCommand>,
        mix: Mix,
        operations: Operations,
        subjects: Subjects,
        login: &Login,
        verify: bool,
    ) -> Self {
        for command in &mut commands {
            command.compile(&subjects);
        }
        let (login, login_replies) = login.encode();
        Self { commands, mix, operations, subjects, login, login_replies, verify, connection_per_batch: false }
    }

    /// Opens a new connection for every request, or for every batch where several are in flight.
    #[must_use]
    pub fn with_connection_per_batch(mut self, yes: bool) -> Self {
        self.connection_per_batch = yes;
        self
    }

    /// Its commands, in the order of the mix.
    pub(crate) fn commands(&self) -> &[RedisCommand] {
        &self.commands
    }

    /// Judges a reply that is complete.
    fn account(&self, connection: &mut RedisConnection, reply: &Reply<'_>, tally: &mut Tally) -> Result<(), Broken> {
        if connection.login_left > 0 {
            connection.login_left -= 1;
            return reply.check_login();
        }
        let Some(asked) = connection.in_flight.pop() else {
            return Err(reply.unasked());
        };
        connection.answered = true;
        self.judge(&asked, reply, tally);
        Ok(())
    }

    /// Accounts a request by its reply.
    #[inline]
    pub(super) fn judge(&self, asked: &Asked, reply: &Reply<'_>, tally: &mut Tally) {
        let operation = asked.operation as usize;
        if let Reply::Error(text) = reply {
            tally.failed(asked.intended, Failure::Rejected, || shown(text));
        } else if self.verify && !self.commands[operation].accepts(asked.key, reply, &self.subjects) {
            tally.failed(asked.intended, Failure::Wrong, || {
                self.commands[operation].describe_wrong(asked.key, reply, &self.subjects)
            });
        } else {
            tally.finished(self.operations.of(operation), asked.intended);
        }
    }

    /// Whether a reply to this request is looked at as a whole: a value. Everything else may be read as it comes.
    #[inline]
    pub(super) fn looks_at_all(&self, operation: u32) -> bool {
        self.verify && self.commands[operation as usize].checks_value()
    }
}

impl Protocol for Redis {
    type Connection = RedisConnection;

    fn operations(&self) -> Vec<String> {
        self.operations.names().to_vec()
    }

    fn connect(&self, _seat: usize) -> RedisConnection {
        RedisConnection {
            in_flight: InFlight::default(),
            reader: Reader::default(),
            greeted: self.login_replies == 0,
            login_left: self.login_replies,
            answered: false,
        }
    }

    fn control(&self, connection: &mut RedisConnection, out: &mut Vec<u8>) {
        if !connection.greeted {
            connection.greeted = true;
            out.extend_from_slice(&self.login);
        }
    }

    fn room(&self, connection: &RedisConnection) -> usize {
        let is_spent = self.connection_per_batch && connection.answered;
        if connection.login_left == 0 && !is_spent { usize::MAX } else { 0 }
    }

    fn is_prepared(&self, connection: &RedisConnection) -> bool {
        connection.login_left == 0
    }

    fn requests_per_connection(&self) -> Option<usize> {
        // A batch, which the load's depth limits.
        self.connection_per_batch.then_some(usize::MAX)
    }

    fn in_flight(&self, connection: &RedisConnection) -> usize {
        connection.in_flight.len()
    }

    #[inline]
    fn begin(&self, connection: &mut RedisConnection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let operation = self.mix.next(source);
        let command = &self.commands[operation];
        let key = if command.has_key() { self.subjects.keys.next(source) } else { 0 };
        command.append(key, &self.subjects, source, out);
        connection.in_flight.push(Asked { intended, key, operation: operation as u32 });
    }

    #[inline]
    fn receive(&self, connection: &mut RedisConnection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut consumed = 0;
        loop {
            let whole = connection.in_flight.first().is_some_and(|asked| self.looks_at_all(asked.operation));
            match connection.reader.read(&input[consumed..], whole)? {
                (read, Some(reply)) => {
                    consumed += read;
                    self.account(connection, &reply, tally)?;
                }
                (read, None) => {
                    let is_spent = self.connection_per_batch && connection.answered;
                    let close = is_spent && connection.in_flight.len() == 0;
                    return Ok(Received { consumed: consumed + read, close });
                }
            }
        }
    }

    fn expire(&self, connection: &mut RedisConnection, before: Nanos, tally: &mut Tally) -> bool {
        connection.in_flight.expire(before, tally)
    }

    fn abandon(&self, connection: &mut RedisConnection, failure: Failure, tally: &mut Tally) {
        connection.in_flight.abandon(failure, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Window;
    use crate::workload::{Distribution, Keys, Sizes, Values};

    fn redis(command: &[&str], verify: bool) -> Redis {
        let subjects = Subjects {
            keys: Keys::new(1, Distribution::Uniform).unwrap(),
            values: Values::new(Sizes::Fixed(5), 0).unwrap(),
        };
        let command = RedisCommand::new(command.iter().copied()).unwrap();
        Redis::new(vec![(command, 1)], subjects, &Login::default(), verify).unwrap()
    }

    /// Accounts what a server says to three requests, cut at every byte: right answers, and failures in words.
    fn outcome(redis: &Redis, answer: &[u8], cut: usize) -> Result<(u64, Vec<String>), Broken> {
        let mut connection = redis.connect(0);
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 0, until: 9 });
        let (mut source, mut out) = (Source::new(0, 0, 1), Vec::new());
        for _ in 0..3 {
            redis.begin(&mut connection, 1, &mut source, &mut out);
        }
        let mut unread = Vec::new();
        for piece in [&answer[..cut], &answer[cut..]] {
            unread.extend_from_slice(piece);
            let received = redis.receive(&mut connection, &unread, &mut tally)?;
            unread.drain(..received.consumed);
        }
        let failures = tally.failures().list();
        Ok((tally.latencies()[0].count(), failures.into_iter().flat_map(|failure| failure.examples).collect()))
    }

    #[track_caller]
    fn check(command: &[&str], verify: bool, answer: &str, right: u64, failures: &[&str]) {
        let redis = redis(command, verify);
        for cut in 0..=answer.len() {
            let (found, examples) = outcome(&redis, answer.as_bytes(), cut).unwrap();
            assert_eq!((found, examples), (right, failures.iter().map(ToString::to_string).collect()), "{cut}");
        }
    }

    #[test]
    fn replies_of_every_type_are_read() {
        let get: &[&str] = &["GET", "key:{key}"];
        check(get, false, "+OK\r\n:1\r\n$3\r\nabc\r\n", 3, &[]);
        check(get, false, "$-1\r\n*-1\r\n*0\r\n", 3, &[]);
        check(get, false, "*2\r\n*2\r\n+a\r\n$1\r\nb\r\n:1\r\n+OK\r\n", 2, &[]);
        check(get, false, "%1\r\n+a\r\n~1\r\n:1\r\n_\r\n#t\r\n", 3, &[]);
        check(get, false, ",1.5\r\n(123\r\n=7\r\ntxt:abc\r\n", 3, &[]);
        check(get, false, ">2\r\n+message\r\n+x\r\n|1\r\n+a\r\n+b\r\n+OK\r\n", 1, &[]);
        check(get, false, "*?\r\n:1\r\n*?\r\n+a\r\n.\r\n$1\r\nb\r\n.\r\n+OK\r\n%?\r\n+a\r\n:1\r\n.\r\n", 3, &[]);
        check(
            get,
            false,
            "$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n*2\r\n$?\r\n;0\r\n:1\r\n>?\r\n+x\r\n.\r\n+OK\r\n",
            3,
            &[],
        );
        check(get, false, "-ERR no\r\n!5\r\nERR x\r\n+OK\r\n", 1, &["ERR no", "ERR x"]);
    }

    #[test]
    fn a_connection_per_batch_ends_with_its_last_answer() {
        let redis = redis(&["PING"], false).with_connection_per_batch(true);
        let mut connection = redis.connect(0);
        let mut tally = Tally::new(1);
        let (mut source, mut out) = (Source::new(0, 0, 1), Vec::new());
        for _ in 0..2 {
            assert!(redis.room(&connection) > 0);
            redis.begin(&mut connection, 1, &mut source, &mut out);
        }
        for (closes, room) in [(false, 0), (true, 0)] {
            let received = redis.receive(&mut connection, b"+PONG\r\n", &mut tally).unwrap();
            assert_eq!((received.close, redis.room(&connection)), (closes, room));
        }
    }

    #[test]
    fn answers_are_checked() {
        check(&["SET", "{key}", "{value}"], true, "+OK\r\n+QUEUED\r\n", 1, &["SET: expected OK, read `QUEUED`"]);
        check(
            &["GET", "{key}"],
            true,
            "$5\r\n00000\r\n$5\r\n10000\r\n",
            1,
            &["GET of key 000000000000: expected `00000`, read `10000`"],
        );
        check(
            &["GET", "{key}"],
            true,
            "$-1\r\n$4\r\n0000\r\n",
            1,
            &["GET of key 000000000000: expected `00000`, read `0000`"],
        );
        check(&["INCR", "{key}"], true, ":1\r\n+OK\r\n", 1, &["INCR: expected an integer, read `OK`"]);
        check(&["PING"], true, "+PONG\r\n+PANG\r\n", 1, &["PING: expected PONG, read `PANG`"]);
    }

    #[test]
    fn resp_protocol_errors_end_the_connection() {
        #[track_caller]
        fn check(answer: &str, example: &str) {
            let redis = redis(&["PING"], false);
            let broken = outcome(&redis, answer.as_bytes(), 0).unwrap_err();
            assert_eq!(broken, Broken { failure: Failure::Protocol, example: example.to_owned() });
        }
        check("HTTP/1.1 400\r\n", "expected a reply of RESP, read `HTTP/1.1 400`");
        check("$x\r\n", "expected a length, read `$x`");
        check(".\r\n", "expected a reply of RESP, read `.`");
        check(";1\r\n", "expected a reply of RESP, read `;1`");
        check("$?\r\n+OK\r\n", "expected a chunk of a string, read `+OK`");
        check(&"*?\r\n".repeat(65), "expected a reply of RESP, read `*?`");
        check("$-2\r\n", "expected a length, read `$-2`");
        check("*99999999999999999999\r\n", "expected a length, read `*99999999999999999999`");
        check("$3\r\nabcde", "expected the end of a bulk string, read `de`");
        check("+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "a reply that nobody asked for: `OK`");
    }

    #[test]
    fn a_login_comes_first_and_its_refusal_is_told() {
        let subjects = redis(&["PING"], false).subjects;
        let login = Login { resp3: true, password: Some("pw".to_owned()), database: 3, ..Login::default() };
        let ping = RedisCommand::new(["PING"]).unwrap();
        let redis = Redis::new(vec![(ping, 1)], subjects, &login, false).unwrap();
        let (mut connection, mut out) = (redis.connect(0), Vec::new());
        let mut tally = Tally::new(1);
        redis.control(&mut connection, &mut out);
        let expected =
            "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(redis.room(&connection), 0);
        redis.receive(&mut connection, b"+OK\r\n%0\r\n+OK\r\n", &mut tally).unwrap();
        assert!(redis.room(&connection) > 0);
        let refused = redis.receive(&mut redis.connect(0), b"-WRONGPASS x\r\n", &mut tally).unwrap_err();
        assert_eq!(refused.example, "login: WRONGPASS x");
    }
}
