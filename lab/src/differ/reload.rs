//! Whether data is the same when it has been loaded again: from a snapshot by the server that has written it, and by one that starts
//! from its append-only file, or from its snapshot.

use anyhow::{Context, Result, bail};

use super::grammar::Request;
use super::pair::{Connection, Program, command, start, words};
use super::state::{self, State};

/// How often a state is taken before and behind a DEBUG RELOAD until both agree: something may expire between them.
const TRIES: usize = 3;

/// The ways to load, in their order.
const WAYS: [&str; 3] = ["DEBUG RELOAD", "a start from the append-only file", "a start from the snapshot"];

/// Runs the commands on both servers and has them load what came of it. Says what ours has lost by that, or the genuine one has not.
///
/// # Errors
/// A server cannot be reached.
pub(super) fn check(ours: &Program, genuine: &Program, requests: &[Request]) -> Result<Option<String>> {
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

/// The data of a server behind these commands, and behind each way to load it again.
fn states(program: &Program, requests: &[Request]) -> Result<(State, Vec<State>)> {
    let mut server = start(program, &["--appendonly", "yes"])?;
    let port = server.port();
    let mut connection = Connection::prepared(port, false)?;
    // Settings are not kept: a HyperLogLog, say, takes another form where the same is said under others.
    let kept = requests.iter().filter(|request| !request.words[0].eq_ignore_ascii_case(b"CONFIG"));
    connection.run(&kept.cloned().collect::<Vec<_>>())?;
    let mut connection = Connection::open(port)?;
    connection.ask(&state::settle())?;
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
        let (command, port) = command(program, &["--appendonly", appendonly])?;
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
