//! Whether data is the same when it has been loaded again: from a snapshot by the server that has written it, and by one that starts
//! from its append-only file, or from its snapshot.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::grammar::Request;
use super::pair::{ARGUMENTS, Connection, words};
use super::reply::{Reply, short};
use crate::process::{Server, free_port};

/// Removes what expires within an hour: it would be there before, and not be there afterwards.
const SETTLE: &str = "for db = 0, 15 do redis.call('SELECT', db) \
                      for _, key in ipairs(redis.call('KEYS', '*')) do \
                        local left = redis.call('PTTL', key) \
                        if left >= 0 and left < 3600000 then redis.call('DEL', key) end \
                      end end";

/// What the digest does not see: when keys expire, and what streams know beside their entries. Not how long ago something was.
const HIDDEN: &str = "local all = {} \
                      for db = 0, 15 do redis.call('SELECT', db) \
                      for _, key in ipairs(redis.call('KEYS', '*')) do \
                        local about = {db, key, redis.call('PEXPIRETIME', key)} \
                        local function add(values) for _, value in ipairs(values) do table.insert(about, tostring(value)) end end \
                        if redis.call('TYPE', key).ok == 'stream' then \
                          local info = redis.call('XINFO', 'STREAM', key) \
                          for i = 1, #info, 2 do \
                            if info[i] == 'last-generated-id' or info[i] == 'max-deleted-entry-id' or info[i] == 'entries-added' \
                            then add({info[i + 1]}) end \
                          end \
                          for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do \
                            for i = 2, #group, 2 do add({group[i]}) end \
                            for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, group[2])) do \
                              add({consumer[2], consumer[4]}) end \
                            for _, pending in ipairs(redis.call('XPENDING', key, group[2], '-', '+', 1000)) do \
                              add({pending[1], pending[2], pending[4]}) end \
                          end \
                        end \
                        table.insert(all, table.concat(about, ' ')) \
                      end end \
                      table.sort(all) return all";

/// How often a state is taken before and behind a DEBUG RELOAD until both agree: something may expire between them.
const TRIES: usize = 3;

/// All that a server has, in three replies: the digest, what it does not see, and the function libraries.
#[derive(PartialEq, Eq)]
struct State([Reply; 3]);

/// What is loaded, in the order in which it is.
const WAYS: [&str; 3] = ["DEBUG RELOAD", "a start from the append-only file", "a start from the snapshot"];

/// Runs the commands on both servers and has them load what came of it. Says what ours has lost by that, or the genuine one has not.
///
/// # Errors
/// A server cannot be reached.
pub(super) fn check(ours: &Path, genuine: &Path, requests: &[Request]) -> Result<Option<String>> {
    let (before, loaded) = states(ours, requests).context("our server")?;
    let (expected, reference) = states(genuine, requests).context("the genuine server")?;
    for ((way, state), reference) in WAYS.iter().zip(&loaded).zip(&reference) {
        if let Some(difference) = before.differs(state) {
            return Ok(Some(format!("{way} changes what ours has: {difference}")));
        }
        // Where the genuine one changes its own data, it is no reference.
        if *reference == expected && reference.0[0] != state.0[0] {
            return Ok(Some(format!("behind {way} the digests differ")));
        }
    }
    Ok(None)
}

impl State {
    fn of(connection: &mut Connection) -> Result<Self> {
        let hidden = [&b"EVAL"[..], HIDDEN.as_bytes(), b"0"].map(<[u8]>::to_vec).to_vec();
        let functions = connection.ask(&words("FUNCTION LIST WITHCODE"))?.sorted(1);
        Ok(Self([connection.ask(&words("DEBUG DIGEST"))?, connection.ask(&hidden)?, functions]))
    }

    /// The first thing that is not the same.
    fn differs(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let (ours, others) = (self.0[1].elements(), other.0[1].elements());
        let lines = ours.iter().filter(|line| !others.contains(line)).map(|line| ("before", line));
        let mut lines = lines.chain(others.iter().filter(|line| !ours.contains(line)).map(|line| ("afterwards", line)));
        Some(match lines.next() {
            Some((when, Reply::Bulk(line))) => format!("{when} there is {}", short(line)),
            Some((when, line)) => format!("{when} there is\n{}", line.show()),
            None if self.0[0] != other.0[0] => "the digest".to_owned(),
            None => "the function libraries".to_owned(),
        })
    }
}

/// What a server has behind these commands, and behind each way to load it again.
fn states(program: &Path, requests: &[Request]) -> Result<(State, Vec<State>)> {
    let start = |appendonly: &str| -> Result<(Vec<String>, u16)> {
        let port = free_port()?;
        let mut command = vec![program.display().to_string(), "--bind".to_owned(), "127.0.0.1".to_owned()];
        command.extend(["--port".to_owned(), port.to_string()]);
        command.extend(ARGUMENTS.iter().map(|word| (*word).to_owned()));
        command.extend(["--appendonly", appendonly].map(str::to_owned));
        Ok((command, port))
    };
    let (command, port) = start("yes")?;
    let mut server = Server::start(&command, port, &crate::target_dir().join("differ"))?;
    let mut connection = Connection::prepared(port, false)?;
    // Settings are not kept: a HyperLogLog, say, takes another form where the same is said under others.
    let kept = requests.iter().filter(|request| !request.words[0].eq_ignore_ascii_case(b"CONFIG"));
    connection.run(&kept.cloned().collect::<Vec<_>>())?;
    let mut connection = Connection::open(port)?;
    let settle = [&b"EVAL"[..], SETTLE.as_bytes(), b"0"].map(<[u8]>::to_vec).to_vec();
    connection.ask(&settle)?;
    let mut before = State::of(&mut connection)?;
    let mut reloaded = None;
    for _ in 0..TRIES {
        succeed(&mut connection, "DEBUG RELOAD")?;
        let state = reloaded.insert(State::of(&mut connection)?);
        if *state == before {
            break;
        }
        before = State::of(&mut connection)?;
    }
    succeed(&mut connection, "SAVE")?;
    let mut loaded: Vec<_> = reloaded.into_iter().collect();
    for appendonly in ["yes", "no"] {
        connection.send(&[&words("SHUTDOWN NOSAVE")])?;
        drop(connection);
        let (command, port) = start(appendonly)?;
        server.start_again(&command, port)?;
        connection = Connection::open(port)?;
        loaded.push(State::of(&mut connection)?);
    }
    Ok((before, loaded))
}

fn succeed(connection: &mut Connection, line: &str) -> Result<()> {
    let reply = connection.ask(&words(line))?;
    if reply.is_status("OK") { Ok(()) } else { bail!("{line}: {}", reply.show()) }
}
