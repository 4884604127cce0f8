//! The two servers, and sending both the same.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use xtask::process::Server;
use xtask::reply::Reply;

use super::grammar::Request;
use super::rules::Follower;
use super::table::SETTINGS;

/// Commands sent at once: enough to hide the way there and back, few enough for the sockets to hold their replies.
const BATCH: usize = 64;

/// A server that does not answer for this long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of both servers: nothing is written to disk; strings stay so small that a run of millions of commands does not consist of
/// copying them; the digest may be asked for.
const ARGUMENTS: &[&str] = &[
    "--save",
    "",
    "--appendonly",
    "no",
    "--proto-max-bulk-len",
    "1mb",
    "--enable-debug-command",
    "yes",
    "--enable-module-command",
    "yes",
];

/// The genuine server looks at its timer when it has something to do, or this often a second: most of a run with 10, the
/// default, would be waiting for timeouts of a millisecond.
const GENUINE_ARGUMENTS: &[&str] = &["--hz", "500", "--dynamic-hz", "no"];

/// A server as it is started everywhere.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: PathBuf,
    settings: &'static [&'static str],
}

impl Program {
    /// Ours, whose replies are Valkey's where that is the other one.
    pub(super) fn ours(path: PathBuf, valkey: bool) -> Self {
        Self { path, settings: if valkey { &["--compatibility", "valkey-9"] } else { &[] } }
    }

    /// The genuine one.
    pub(super) fn genuine(path: PathBuf) -> Self {
        Self { path, settings: GENUINE_ARGUMENTS }
    }
}

/// Ours and a genuine one.
pub(super) struct Pair {
    ours: Server,
    genuine: Server,
}

/// Two replies to the same command that do not agree.
#[derive(Clone)]
pub(super) struct Difference {
    /// Which of the commands it was.
    pub(super) at: usize,
    /// Our server's answer; nothing if it went away or stayed silent.
    pub(super) ours: Option<Reply>,
    /// The genuine server's answer.
    pub(super) genuine: Option<Reply>,
}

/// How a server is started, and on which port.
///
/// # Errors
/// There is no free port.
pub(super) fn command(program: &Program, more: &[&str]) -> Result<(Vec<String>, u16)> {
    let port = test_peers::free_port();
    let mut command = vec![program.path.display().to_string(), "--bind".to_owned(), "127.0.0.1".to_owned()];
    command.extend(["--port".to_owned(), port.to_string()]);
    command.extend(ARGUMENTS.iter().chain(program.settings).chain(more).map(|word| (*word).to_owned()));
    Ok((command, port))
}

/// Starts one.
///
/// # Errors
/// When it cannot be started.
pub(super) fn start(program: &Program, more: &[&str]) -> Result<Server> {
    let (command, port) = command(program, more)?;
    Server::start(&command, port, &xtask::workspace::target_dir().join("differ"))
}

impl Pair {
    /// Starts both.
    ///
    /// # Errors
    /// When one cannot be started.
    pub(super) fn start(ours: &Program, genuine: &Program) -> Result<Self> {
        Ok(Self { ours: start(ours, &[])?, genuine: start(genuine, &[])? })
    }

    /// Which of these commands both have.
    ///
    /// # Errors
    /// When one does not answer.
    pub(super) fn known(&self, names: &[&str]) -> Result<Vec<bool>> {
        let mut words: Vec<Vec<u8>> = vec![b"COMMAND".to_vec(), b"INFO".to_vec()];
        words.extend(names.iter().map(|name| name.as_bytes().to_vec()));
        let ask = |server: &Server| -> Result<Vec<bool>> {
            let reply = Connection::open(server.port())?.ask(&words)?;
            Ok(reply.elements().iter().map(|row| !matches!(row, Reply::Null(_))).collect())
        };
        Ok(ask(&self.ours)?.into_iter().zip(ask(&self.genuine)?).map(|(one, other)| one && other).collect())
    }

    /// All commands and subcommands that ours has.
    ///
    /// # Errors
    /// When ours does not answer.
    pub(super) fn commands(&self) -> Result<Vec<String>> {
        let mut connection = Connection::open(self.ours.port())?;
        connection.send(&[&words("COMMAND LIST")])?;
        let name = |reply: &Reply| match reply {
            Reply::Bulk(name) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        Ok(Reply::read(&mut connection.stream)?.elements().iter().map(name).collect())
    }

    /// The genuine server's answers to `words`, one command after the other.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn ask_genuine(&self, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Reply>> {
        let mut connection = Connection::open(self.genuine.port())?;
        connection.send(&commands.iter().collect::<Vec<_>>())?;
        commands.iter().map(|_| Ok(Reply::read(&mut connection.stream)?)).collect()
    }

    /// Runs the commands on both, from an empty state, until replies do not agree that `is_known` does not excuse.
    ///
    /// # Errors
    /// When a connection cannot be made.
    pub(super) fn run(
        &self,
        requests: &[Request],
        resp3: bool,
        mut is_known: impl FnMut(&Request, &Difference) -> bool,
    ) -> Result<Option<Difference>> {
        let mut ours = Connection::prepared(self.ours.port(), resp3).context("our server")?;
        let mut genuine = Connection::prepared(self.genuine.port(), resp3).context("the genuine server")?;
        let mut follower = Follower::default();
        for (batch, chunk) in requests.chunks(BATCH).enumerate() {
            let words: Vec<_> = chunk.iter().map(|request| &request.words).collect();
            // A server that is gone shows when its reply does not come.
            let _ = (ours.send(&words), genuine.send(&words));
            for (index, request) in chunk.iter().enumerate() {
                let (a, b) = (Reply::read(&mut ours.stream).ok(), Reply::read(&mut genuine.stream).ok());
                if a.is_none() && b.is_none() {
                    // Both have closed the connection: whose user is deleted, for example.
                    return Ok(None);
                }
                let difference = |ours, genuine| Difference { at: batch * BATCH + index, ours, genuine };
                let (Some(a), Some(b)) = (&a, &b) else { return Ok(Some(difference(a, b))) };
                if !follower.agree(&request.words, request.open, a, b) {
                    let difference = difference(Some(a.clone()), Some(b.clone()));
                    if !is_known(request, &difference) {
                        return Ok(Some(difference));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// A command whose words have no spaces.
pub(super) fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A connection to one of them.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// To the server on this port.
    ///
    /// # Errors
    /// It cannot be reached.
    pub(super) fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::with_capacity(64 * 1024, stream) })
    }

    /// A connection of this protocol to a server that holds nothing.
    ///
    /// # Errors
    /// It cannot be reached.
    pub(super) fn prepared(port: u16, resp3: bool) -> Result<Self> {
        let mut connection = Self::open(port)?;
        let settings = SETTINGS.iter().map(|(name, value)| format!(" {name} {value}")).collect::<String>();
        let commands = [
            words("FLUSHALL"),
            words("FUNCTION FLUSH"),
            words("SCRIPT FLUSH"),
            words("ACL DELUSER u1 u2 u3"),
            words(&format!("CONFIG SET{settings} notify-keyspace-events")).into_iter().chain([Vec::new()]).collect(),
            words(if resp3 { "HELLO 3" } else { "HELLO 2" }),
        ];
        connection.send(&commands.iter().collect::<Vec<_>>())?;
        for _ in commands {
            Reply::read(&mut connection.stream)?;
        }
        Ok(connection)
    }

    /// Asks, and waits for the reply.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn ask(&mut self, words: &Vec<Vec<u8>>) -> Result<Reply> {
        self.send(&[words])?;
        Ok(Reply::read(&mut self.stream)?)
    }

    /// Runs commands, whatever they answer, up to one that ends the connection.
    ///
    /// # Errors
    /// They cannot be sent.
    pub(super) fn run(&mut self, requests: &[Request]) -> Result<()> {
        for chunk in requests.chunks(BATCH) {
            self.send(&chunk.iter().map(|request| &request.words).collect::<Vec<_>>())?;
            if chunk.iter().any(|_| Reply::read(&mut self.stream).is_err()) {
                break;
            }
        }
        Ok(())
    }

    /// Sends commands.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn send(&mut self, commands: &[&Vec<Vec<u8>>]) -> Result<()> {
        let mut bytes = Vec::new();
        for words in commands {
            write!(bytes, "*{}\r\n", words.len())?;
            for word in *words {
                write!(bytes, "${}\r\n", word.len())?;
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        Ok(self.stream.get_mut().write_all(&bytes)?)
    }
}
