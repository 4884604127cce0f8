//! Who is measured, and how each is built.

use std::path::Path;

use anyhow::Result;

use crate::compare::{Pinning, pinned};
use crate::process::{Server, free_port, words};
use crate::programs;

/// A greeter that listens where `--listen` says.
pub(super) struct Subject {
    pub(super) name: &'static str,
    make: Make,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Make {
    /// Our own, from the workspace.
    Ours,
    /// A peer, by its name in `benches/peers/install`.
    Peer(&'static str),
}

/// Ours first: it is compared with each of the others.
pub(super) const SUBJECTS: [Subject; 5] = [
    Subject { name: "ours", make: Make::Ours },
    Subject { name: "tonic", make: Make::Peer("tonic") },
    Subject { name: "grpc-go", make: Make::Peer("grpc-go") },
    Subject { name: "grpc-c++", make: Make::Peer("grpc-cpp") },
    Subject { name: "grpc-js", make: Make::Peer("grpc-js") },
];

impl Subject {
    pub(super) fn is_ours(&self) -> bool {
        self.make == Make::Ours
    }

    /// Builds or fetches it if need be, ours unless there is a command for it; its command line without the address.
    pub(super) fn build(&self, ours: Option<&str>) -> Result<Vec<String>> {
        let program = match (self.make, ours) {
            (Make::Ours, Some(command)) => return Ok(words(command)),
            (Make::Ours, None) => programs::ours("grpc-server")?,
            (Make::Peer(name), _) => programs::peer(name)?,
        };
        Ok(vec![program.display().to_string()])
    }
}

/// Starts a command on a free port.
pub(super) fn start(mut command: Vec<String>, pin: Option<&Pinning>, folder: &Path) -> Result<Server> {
    let port = free_port()?;
    command.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
    Server::start_when(answers, &pinned(pin.map(Pinning::server), command), port, folder)
}

/// Whether a server on this port of the loopback interface speaks HTTP/2: its first frame is SETTINGS.
pub(crate) fn answers(port: u16) -> bool {
    use std::io::{Read, Write};
    let hello = || -> std::io::Result<bool> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        Ok(head[3] == 4)
    };
    hello().unwrap_or(false)
}
