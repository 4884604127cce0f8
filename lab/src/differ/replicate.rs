//! Whether the replicas of a chain, ours and genuine ones, have what their primary has.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::process::Server;
use xtask::reply::Reply;

use super::grammar::Request;
use super::pair::{Connection, Program, start, words};
use super::state::{self, State};

/// From the primary on (ours): each follows the one before it.
const CHAINS: [[bool; 3]; 3] = [[true, false, true], [false, true, true], [true, true, false]];

/// How long a replica may take to have everything.
const PATIENCE: Duration = Duration::from_secs(30);
const NAP: Duration = Duration::from_millis(20);

/// Commands that are not sent: settings are no data, and roles are given here.
const LEFT_OUT: [&str; 5] = ["CONFIG", "FAILOVER", "REPLICAOF", "SHUTDOWN", "SLAVEOF"];

/// Runs the commands on the primary of each chain. Says what a replica has otherwise.
///
/// # Errors
/// A server cannot be reached, or does not follow.
pub(super) fn check(ours: &Program, genuine: &Program, requests: &[Request]) -> Result<Option<String>> {
    let is_sent =
        |request: &&Request| !LEFT_OUT.iter().any(|name| request.words[0].eq_ignore_ascii_case(name.as_bytes()));
    let requests: Vec<_> = requests.iter().filter(is_sent).cloned().collect();
    let name = |is_ours: bool| if is_ours { "ours" } else { "genuine" };
    for chain in CHAINS {
        let programs = chain.map(|is_ours| if is_ours { ours } else { genuine });
        let names = chain.map(name).join(" <- ");
        let states = states(&programs, &requests).with_context(|| names.clone())?;
        for (place, state) in states.iter().enumerate().skip(1) {
            if let Some(difference) = states[0].differs(state) {
                // Changes that a genuine primary does not send even to its own kind (Valkey: of a new consumer that was given nothing) is
                // no fault of ours.
                if !chain[0] && own_difference(genuine, &requests)?.is_some_and(|own| own == difference) {
                    continue;
                }
                return Ok(Some(format!(
                    "{names}, replica {place} (before: its primary; afterwards: itself): {difference}"
                )));
            }
        }
    }
    Ok(None)
}

/// The difference of a genuine replica from its genuine primary.
fn own_difference(genuine: &Program, requests: &[Request]) -> Result<Option<String>> {
    let states = states(&[genuine, genuine], requests).context("genuine <- genuine")?;
    Ok(states[0].differs(&states[1]))
}

/// The data of each server of a chain behind these commands.
fn states(programs: &[&Program], requests: &[Request]) -> Result<Vec<State>> {
    let mut servers: Vec<Server> = Vec::new();
    for program in programs {
        let port = servers.last().map(|primary| primary.port().to_string());
        let mut more = vec!["--repl-diskless-sync-delay", "0"];
        if let Some(port) = &port {
            more.extend(["--replicaof", "127.0.0.1", port]);
        }
        servers.push(start(program, &more)?);
    }
    let mut connections = servers.iter().map(|server| Connection::open(server.port())).collect::<Result<Vec<_>>>()?;
    until("follows its primary", || {
        Ok(connections[1..].iter_mut().map(is_up).collect::<Result<Vec<_>>>()?.into_iter().all(|is_up| is_up))
    })?;
    Connection::prepared(servers[0].port(), false)?.run(requests)?;
    connections[0].ask(&state::settle())?;
    until("has the whole stream", || {
        let offsets = connections.iter_mut().map(offset).collect::<Result<Vec<_>>>()?;
        Ok(offsets.iter().all(|offset| *offset == offsets[0]))
    })?;
    connections.iter_mut().map(State::of).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !holds()? {
        ensure!(began.elapsed() < PATIENCE, "no replica {what} within {} s", PATIENCE.as_secs());
        thread::sleep(NAP);
    }
    Ok(())
}

fn is_up(connection: &mut Connection) -> Result<bool> {
    Ok(field(connection, "master_link_status")? == "up")
}

fn offset(connection: &mut Connection) -> Result<String> {
    field(connection, "master_repl_offset")
}

/// A field of `INFO replication`.
fn field(connection: &mut Connection, name: &str) -> Result<String> {
    let Reply::Bulk(text) = connection.ask(&words("INFO replication"))? else { bail!("INFO is no text") };
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(str::to_owned).with_context(|| format!("INFO replication has no {name}"))
}
