//! Starts with data: how long they take, as the servers say in their logs.

use std::fs;

use anyhow::{Result, ensure};
use xtask::process::Server;

use super::prober::Plot;
use super::subject::{Figures, Subject};
use crate::isolation::Client;

const APPEND: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "no"];

pub(super) fn measure(subject: &Subject, _: &mut Plot) -> Result<Figures> {
    let keys = subject.keys.to_string();
    let snapshot = |words: &[&str]| -> Result<f64> {
        let server = subject.start(&[])?;
        Client::connect(server.port())?.ask(&[&["DEBUG", "POPULATE", &keys], words].concat())?;
        again(subject, server, "SAVE", &[])
    };
    let (small, large) = (snapshot(&[])?, snapshot(&["key", "1000"])?);
    let server = subject.start(&APPEND)?;
    let element = |number: usize| vec![format!("key:{number}").into_bytes(), format!("value:{number}").into_bytes()];
    let mut client = Client::connect(server.port())?;
    client.each("SET", subject.keys, element)?;
    let append = again(subject, server, "NOSAVE", &APPEND)?;
    Ok(vec![
        ("load of small keys, s", small),
        ("load of keys of 1,000 bytes, s", large),
        ("replay of an append-only file of small SETs, s", append),
    ])
}

/// Starts it again; what its log says of the time.
fn again(subject: &Subject, mut server: Server, leave: &str, more: &[&str]) -> Result<f64> {
    let mut client = Client::connect(server.port())?;
    client.send(&["SHUTDOWN", leave])?;
    let port = test_peers::free_port();
    server.start_again(&subject.command(port, more), port)?;
    let log = fs::read_to_string(server.folder().join("log"))?;
    let of = |line: &str| -> Option<f64> {
        let (_, what) = line.split_once("DB loaded from ")?;
        // The sum of the others.
        let seconds = what.strip_suffix(" seconds").filter(|what| !what.starts_with("append only file"))?;
        seconds.rsplit_once(' ')?.1.parse().ok()
    };
    let times: Vec<f64> = log.lines().filter_map(of).collect();
    ensure!(!times.is_empty(), "the log does not say how long loading took:\n{log}");
    Ok(times.iter().sum())
}
