//! As much of RESP2 as the oracle's client needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Text(String),
    Number(i64),
    Error(String),
    List(Vec<Self>),
    Nothing,
}

pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn connect(path: &str) -> std::io::Result<Self> {
        Ok(Self(BufReader::new(UnixStream::connect(path)?)))
    }

    pub(crate) fn call(&mut self, words: &[&str]) -> Reply {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(request.as_bytes()).expect("the server reads");
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server answers");
        let (kind, rest) = line.trim_end().split_at(1);
        let length = || rest.parse::<i64>().expect("a number");
        match kind {
            "+" => Reply::Text(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(length()),
            "*" => Reply::List((0..length()).map(|_| self.reply()).collect()),
            _ if length() < 0 => Reply::Nothing,
            _ => {
                let mut bytes = vec![0; length() as usize + 2];
                self.0.read_exact(&mut bytes).expect("the server answers whole");
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }
}
