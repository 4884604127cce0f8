//! Who is measured, and how each is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::compare::{Pinning, pinned};
use crate::process::{Server, free_port, run_quietly, words};

/// A greeter that listens where `--listen` says.
pub(super) struct Subject {
    pub(super) name: &'static str,
    make: Make,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Make {
    /// Our own, from the workspace.
    Ours,
    /// `benches/peers/grpc-rust`.
    Rust,
    /// `benches/peers/grpc-go`.
    Go,
    /// `benches/peers/grpc-cpp`.
    Cpp,
}

/// Ours first: it is compared with each of the others.
pub(super) const SUBJECTS: [Subject; 4] = [
    Subject { name: "ours", make: Make::Ours },
    Subject { name: "tonic", make: Make::Rust },
    Subject { name: "grpc-go", make: Make::Go },
    Subject { name: "grpc-c++", make: Make::Cpp },
];

/// Makes Go of the definition by Go's own plugins, which the module names as its tools.
const GO: &str = "\
export PATH=\"$PWD/bin:$PATH\" && mkdir -p bin helloworld && go mod tidy && \
go build -o bin/ google.golang.org/grpc/cmd/protoc-gen-go-grpc google.golang.org/protobuf/cmd/protoc-gen-go && \
protoc --proto_path=\"$PROTO\" --go_out=. --go_opt=module=peers,Mhelloworld.proto=peers/helloworld \
--go-grpc_out=. --go-grpc_opt=module=peers,Mhelloworld.proto=peers/helloworld helloworld.proto && \
go build -o greeter .";

/// The same of C++, by Debian's compiler and libraries.
const CPP: &str = "\
protoc --proto_path=\"$PROTO\" --cpp_out=. --grpc_out=. \
--plugin=protoc-gen-grpc=\"$(command -v grpc_cpp_plugin)\" helloworld.proto && \
g++ -O2 -std=c++17 -o greeter *.cc $(pkg-config --cflags --libs grpc++ protobuf)";

impl Subject {
    pub(super) fn is_ours(&self) -> bool {
        self.make == Make::Ours
    }

    /// Builds it below `folder` if need be, ours unless there is a command for it; its command line without the address.
    pub(super) fn build(&self, folder: &Path, ours: Option<&str>) -> Result<Vec<String>> {
        let peers = crate::root().join("benches/peers");
        match (self.make, ours) {
            (Make::Ours, Some(command)) => Ok(words(command)),
            (Make::Ours, None) => {
                cargo(crate::root(), &["--package", "grpc-server"], None)?;
                Ok(vec![text(&crate::target_dir().join("release/grpc-server"))])
            }
            (Make::Rust, _) => Ok(vec![text(&tonic(folder)?)]),
            (Make::Go, _) => script(&peers.join("grpc-go"), GO, folder),
            (Make::Cpp, _) => script(&peers.join("grpc-cpp"), CPP, folder),
        }
    }
}

/// Builds the default tonic greeter below `folder`; where it is.
pub(crate) fn tonic(folder: &Path) -> Result<PathBuf> {
    let target = folder.join("rust");
    cargo(&crate::root().join("benches/peers/grpc-rust"), &[], Some(&target))?;
    Ok(target.join("release/grpc-rust"))
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

/// Runs a script in a copy of the folder, for tools that write beside their sources; it leaves a program `greeter`.
fn script(source: &Path, script: &str, folder: &Path) -> Result<Vec<String>> {
    let copy = folder.join(source.file_name().context("a folder has a name")?);
    fs::create_dir_all(&copy)?;
    run_quietly(Command::new("cp").arg("-r").arg(source.join(".")).arg(&copy))?;
    let proto = crate::root().join("grpc-server/proto");
    run_quietly(Command::new("sh").args(["-c", script]).env("PROTO", proto).current_dir(&copy))?;
    Ok(vec![text(&copy.join("greeter"))])
}

fn cargo(folder: &Path, arguments: &[&str], target: Option<&Path>) -> Result<()> {
    let mut build = Command::new("cargo");
    build.args(["build", "--release"]).args(arguments).current_dir(folder);
    if let Some(target) = target {
        build.env("CARGO_TARGET_DIR", target);
    }
    run_quietly(&mut build).map(drop)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
