//! Who is measured, and how each is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::sample::Shape;
use crate::compare::{Pinning, pinned};
use crate::process::{Server, free_port, run_quietly};

/// A server that answers `/` and `/json` on the port that it is told.
pub(super) struct Subject {
    pub(super) name: &'static str,
    make: Make,
}

#[derive(Clone, Copy)]
enum Make {
    /// Our own, from the workspace.
    Ours,
    /// A program of `benches/peers/http-rust`.
    Rust(&'static str),
    /// A program of `benches/peers/http-go`.
    Go(&'static str),
    /// Another, which answers `/get?key=…` from Redis.
    GoRedis(&'static str),
    /// A JavaScript runtime, by its npm package if it is not simply there.
    Script { program: &'static str, npm: Option<&'static str> },
}

/// Ours first: it is compared with each of the others.
pub(super) const SUBJECTS: [Subject; 11] = [
    Subject { name: "ours", make: Make::Ours },
    Subject { name: "floor", make: Make::Rust("floor") },
    Subject { name: "axum", make: Make::Rust("axum-default") },
    Subject { name: "actix-web", make: Make::Rust("actix") },
    Subject { name: "ntex", make: Make::Rust("ntex-tokio") },
    Subject { name: "may_minihttp", make: Make::Rust("minihttp") },
    Subject { name: "net/http", make: Make::Go("nethttp") },
    Subject { name: "fasthttp", make: Make::Go("fasthttp") },
    Subject { name: "go-redis", make: Make::GoRedis("redisproxy") },
    Subject { name: "node", make: Make::Script { program: "node", npm: None } },
    Subject { name: "bun", make: Make::Script { program: "bun", npm: Some("bun@1.3.14") } },
];

impl Subject {
    /// Whether it has something to answer.
    pub(super) fn answers(&self, shape: &Shape) -> bool {
        match self.make {
            Make::Ours => true,
            Make::GoRedis(_) => shape.needs_redis(),
            Make::Rust(_) | Make::Go(_) | Make::Script { .. } => !shape.needs_redis(),
        }
    }

    /// Builds it below `folder` if need be; its command line without the port.
    pub(super) fn build(&self, folder: &Path) -> Result<Vec<String>> {
        let peers = crate::root().join("benches/peers");
        let command = match self.make {
            Make::Ours => {
                cargo(crate::root(), &["-p", "http-server"], None)?;
                vec![text(&crate::target_dir().join("release/http-server"))]
            }
            Make::Rust(name) => {
                let target = folder.join("rust");
                cargo(&peers.join("http-rust"), &["--bin", name, "--features", name], Some(&target))?;
                vec![text(&target.join("release").join(name))]
            }
            Make::Go(name) | Make::GoRedis(name) => {
                let (source, program) = (copy(&peers.join("http-go"), folder)?, folder.join(name));
                run_quietly(Command::new("go").args(["mod", "tidy"]).current_dir(&source))?;
                let mut build = Command::new("go");
                build.args(["build", "-o"]).arg(&program).arg(format!("./{name}")).current_dir(&source);
                run_quietly(&mut build)?;
                vec![text(&program)]
            }
            Make::Script { program, npm } => {
                let script = text(&peers.join("http-js/server.mjs"));
                let Some(package) = npm else { return Ok(vec![program.to_owned(), script]) };
                let installed = folder.join("node_modules/.bin").join(program);
                if !installed.exists() {
                    let flags = ["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
                    run_quietly(Command::new("npm").args(flags).arg("--prefix").arg(folder).arg(package))?;
                }
                vec![text(&installed), script]
            }
        };
        Ok(command)
    }

    /// Starts it on a free port, with a Redis behind it if there is one.
    pub(super) fn start(
        &self,
        command: &[String],
        redis: Option<&str>,
        pin: Option<&Pinning>,
        folder: &Path,
    ) -> Result<Server> {
        let port = free_port()?;
        let mut command = command.to_vec();
        match self.make {
            Make::Ours => {
                command.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
                command.extend(redis.iter().flat_map(|place| ["--redis".to_owned(), (*place).to_owned()]));
            }
            Make::GoRedis(_) => {
                command.push(port.to_string());
                command.extend(redis.map(str::to_owned));
            }
            Make::Rust(_) | Make::Go(_) | Make::Script { .. } => command.push(port.to_string()),
        }
        let command = pinned(pin.map(Pinning::server), command);
        Server::start_when(answers, &command, port, folder).with_context(|| self.name)
    }
}

/// Whether a server on this port of the loopback interface answers `/` with 200.
pub(crate) fn answers(port: u16) -> bool {
    use std::io::{Read, Write};
    let get = || -> std::io::Result<bool> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(&status == b"HTTP/1.1 200")
    };
    get().unwrap_or(false)
}

fn cargo(folder: &Path, arguments: &[&str], target: Option<&Path>) -> Result<()> {
    let mut build = Command::new("cargo");
    build.args(["build", "--release"]).args(arguments).current_dir(folder);
    if let Some(target) = target {
        build.env("CARGO_TARGET_DIR", target);
    }
    run_quietly(&mut build).map(drop)
}

/// A copy for a tool that writes beside its sources.
fn copy(source: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join(source.file_name().context("a folder has a name")?);
    fs::create_dir_all(&copy)?;
    run_quietly(Command::new("cp").arg("-r").arg(source.join(".")).arg(&copy))?;
    Ok(copy)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
