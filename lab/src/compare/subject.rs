//! The measured subjects: named commands, started on free ports.

use std::path::Path;

use anyhow::{Context, Result};
use xtask::process::Server;

/// A server by name and command line.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) command: String,
}

/// Cores of the servers, as `taskset` reads them.
#[derive(Clone, Debug)]
pub(super) struct Pinning(String);

/// Parses `NAME=COMMAND`.
pub(super) fn parse(text: &str) -> Result<Subject, String> {
    let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND")?;
    if name.is_empty() || command.trim().is_empty() {
        return Err("neither the name nor the command may be empty".to_owned());
    }
    Ok(Subject { name: name.to_owned(), command: command.to_owned() })
}

/// Parses a list of cores.
pub(super) fn parse_pinning(text: &str) -> Result<Pinning, String> {
    let is_list = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '-');
    is_list.then(|| Pinning(text.to_owned())).ok_or_else(|| "expected cores, such as 1 or 0-1".to_owned())
}

/// Flags of a server that listens on the loopback interface and writes nothing to disk.
pub(crate) fn memory_only(port: u16) -> [String; 8] {
    ["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"].map(String::from)
}

impl Subject {
    /// Starts the server on a free port in a folder of its own.
    pub(super) fn start(&self, pin: Option<&Pinning>, parent: &Path) -> Result<Server> {
        let port = test_peers::free_port();
        let pinned = pin.into_iter().flat_map(|Pinning(cores)| ["taskset", "-c", cores].map(str::to_owned));
        let command: Vec<String> = pinned.chain(self.command_line(port)?).collect();
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
        assert_eq!(parse_pinning("0-1").unwrap().0, "0-1");
        assert!(parse_pinning("server=1").is_err());
    }

    #[test]
    fn the_port_is_appended_or_placed() {
        let line = |command: &str| parse(&format!("x={command}")).unwrap().command_line(7).unwrap().join(" ");
        assert_eq!(line("server"), "server --bind 127.0.0.1 --port 7 --save  --appendonly no");
        assert_eq!(line("server -p {port}"), "server -p 7");
    }
}
