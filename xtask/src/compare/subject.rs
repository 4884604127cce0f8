//! What is measured: named commands, started on free ports.

use std::path::Path;

use anyhow::{Context, Result};

use crate::process::{Server, free_port};

/// A server by name and command line.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) command: String,
}

/// Cores of the two sides, as `taskset` reads them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pinning {
    pub(super) server: String,
    pub(super) client: String,
}

/// Parses `NAME=COMMAND`.
pub(super) fn parse(text: &str) -> Result<Subject, String> {
    let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND")?;
    if name.is_empty() || command.trim().is_empty() {
        return Err("neither the name nor the command may be empty".to_owned());
    }
    Ok(Subject { name: name.to_owned(), command: command.to_owned() })
}

/// Parses `server=CORES,client=CORES`; the list of cores may be a range.
pub(super) fn parse_pinning(text: &str) -> Result<Pinning, String> {
    let rest = text.strip_prefix("server=");
    let (server, client) = rest.and_then(|rest| rest.split_once(",client=")).ok_or("expected server=1,client=0")?;
    Ok(Pinning { server: server.to_owned(), client: client.to_owned() })
}

/// `command`, on the given cores where there are any.
pub(super) fn pinned(cores: Option<&str>, command: Vec<String>) -> Vec<String> {
    match cores {
        Some(cores) => ["taskset", "-c", cores].map(String::from).into_iter().chain(command).collect(),
        None => command,
    }
}

/// Flags of a server that listens on the loopback interface and writes nothing to disk.
pub(crate) fn memory_only(port: u16) -> [String; 8] {
    ["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"].map(String::from)
}

impl Subject {
    /// Starts the server on a free port in a folder of its own.
    pub(super) fn start(&self, pin: Option<&Pinning>, parent: &Path) -> Result<Server> {
        let port = free_port()?;
        let command = pinned(pin.map(|pin| pin.server.as_str()), self.command_line(port)?);
        Server::start(&command, port, parent).with_context(|| format!("subject {}", self.name))
    }

    fn command_line(&self, port: u16) -> Result<Vec<String>> {
        let mut words: Vec<String> =
            self.command.split_whitespace().map(|word| word.replace("{port}", &port.to_string())).collect();
        let program = words.first_mut().context("a subject needs a command")?;
        // The server runs in another folder: a relative path means the caller's. Links stay, a name may mean a role.
        if program.contains('/') {
            *program = std::path::absolute(&*program).with_context(|| program.clone())?.display().to_string();
        }
        if !self.command.contains("{port}") {
            words.extend(memory_only(port));
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let subject = parse("ours=server --workers=1").unwrap();
        assert_eq!((subject.name.as_str(), subject.command.as_str()), ("ours", "server --workers=1"));
        assert!(parse("server").is_err());
        assert!(parse("=server").is_err());
        let pinning = Pinning { server: "1,2".to_owned(), client: "0".to_owned() };
        assert_eq!(parse_pinning("server=1,2,client=0"), Ok(pinning));
        assert!(parse_pinning("client=0").is_err());
    }

    #[test]
    fn the_port_is_appended_or_placed() {
        let line = |command: &str| parse(&format!("x={command}")).unwrap().command_line(7).unwrap().join(" ");
        assert_eq!(line("server"), "server --bind 127.0.0.1 --port 7 --save  --appendonly no");
        assert_eq!(line("server -p {port}"), "server -p 7");
    }
}
