//! A genuine server for tests to compare with, where one is installed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) struct Oracle {
    server: Child,
    folder: PathBuf,
    stream: BufReader<UnixStream>,
}

/// A reply, as far as the tests need it.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Text(Vec<u8>),
    Error(String),
    Nil,
    Array(Vec<Self>),
}

impl Oracle {
    /// Starts `redis-server`, reached by a socket in a directory of its own; prints why not if there is none.
    pub(crate) fn start(name: &str) -> Option<Self> {
        Self::with(name, &["--save", ""])
    }

    /// [`Oracle::start`] with these settings and its own defaults otherwise.
    pub(crate) fn with(name: &str, settings: &[&str]) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("oracle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let server = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", "socket", "--appendonly", "no", "--daemonize", "no"])
            .args(settings)
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn();
        let Ok(server) = server else {
            test_peers::skip("there is no redis-server to compare with");
            return None;
        };
        let connect = || UnixStream::connect(folder.join("socket")).ok();
        let wait = || std::thread::sleep(Duration::from_millis(20));
        let stream = (0..1500).find_map(|_| connect().or_else(|| (wait(), None).1)).unwrap();
        Some(Self { server, folder, stream: BufReader::new(stream) })
    }

    /// Sends all commands at once and returns their replies.
    pub(crate) fn run(&mut self, commands: &[Vec<&[u8]>]) -> Vec<Reply> {
        let mut request = Vec::new();
        for command in commands {
            write!(request, "*{}\r\n", command.len()).unwrap();
            for argument in command {
                write!(request, "${}\r\n", argument.len()).unwrap();
                request.extend_from_slice(argument);
                request.extend_from_slice(b"\r\n");
            }
        }
        let mut writer = self.stream.get_ref().try_clone().unwrap();
        let sender = std::thread::spawn(move || writer.write_all(&request).unwrap());
        let replies = commands.iter().map(|_| self.reply()).collect();
        sender.join().unwrap();
        replies
    }

    fn reply(&mut self) -> Reply {
        Reply::read(&mut self.stream)
    }
}

impl Reply {
    /// Reads one RESP2 reply.
    pub(crate) fn read(stream: &mut impl BufRead) -> Self {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match (kind, rest) {
            ("-", text) => Self::Error(text.to_owned()),
            ("$" | "*", "-1") => Self::Nil,
            ("$", len) => {
                let mut text = vec![0; len.parse::<usize>().unwrap() + 2];
                stream.read_exact(&mut text).unwrap();
                text.truncate(text.len() - 2);
                Self::Text(text)
            }
            ("*", len) => Self::Array((0..len.parse().unwrap()).map(|_| Self::read(stream)).collect()),
            (_, text) => Self::Text(text.as_bytes().to_vec()),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
