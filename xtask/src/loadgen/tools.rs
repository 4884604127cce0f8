//! The programs: ours, built as shipped; the tools compared with, as they are installed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::contest::{Program, Target};
use crate::compare::memory_only;
use crate::process::{Server, free_port, run_quietly};
use crate::programs;

/// The core of the target; generators have [`GENERATOR_CORE`].
const TARGET_CORE: &str = "1";
const GENERATOR_CORE: &str = "0";

/// The greeter of gRPC's own examples.
const PROTO: &str = r#"syntax = "proto3";
package helloworld;
service Greeter { rpc SayHello (HelloRequest) returns (HelloReply) {} }
message HelloRequest { string name = 1; }
message HelloReply { string message = 1; }
"#;

/// A message of `HelloRequest` with the name `world`, as gRPC frames it.
const DATA: &[u8] = b"\0\0\0\0\x07\x0a\x05world";

/// Where the programs are.
pub(super) struct Tools {
    pub(super) folder: PathBuf,
}

impl Tools {
    /// Builds ours and the floor.
    pub(super) fn open() -> Result<Self> {
        let folder = crate::target_dir().join("loadgen");
        fs::create_dir_all(&folder)?;
        let mut build = crate::programs::cargo();
        build.args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "loadgen",
            "--bin",
            "loadgen",
            "--example",
            "constant",
        ]);
        run_quietly(&mut build)?;
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-Wall", "-Wextra", "-o"]).arg(folder.join("udp"));
        run_quietly(compile.arg(crate::root().join("xtask/loadgen/udp.c")))?;
        fs::write(folder.join("greeter.proto"), PROTO)?;
        fs::write(folder.join("greeting"), DATA)?;
        Ok(Self { folder })
    }

    /// The path of a program, if it is installed. ghz is fetched by its package client.
    pub(super) fn find(&self, program: Program) -> Result<String> {
        let path = match program {
            Program::Ours => crate::target_dir().join("release/loadgen"),
            Program::Floor => self.folder.join("udp"),
            Program::Ghz => programs::peer("ghz")?,
            Program::Wrk | Program::RedisBenchmark | Program::H2load => {
                run_quietly(Command::new("which").arg(program.name()))
                    .map(|path| PathBuf::from(path.trim()))
                    .with_context(|| format!("{} is not installed", program.name()))?
            }
        };
        Ok(path.display().to_string())
    }

    /// A command line on the generators' core.
    pub(super) fn command(&self, program: &str, arguments: &[String]) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", GENERATOR_CORE, program]).args(arguments);
        // Go's runtime would start threads for cores that it may not use.
        command.env("GOMAXPROCS", "1");
        command
    }
}

/// A target that runs; it ends when dropped.
pub(super) enum Running {
    Constant(Child, String),
    Redis(Server),
}

impl Running {
    pub(super) fn start(target: &Target, tools: &Tools) -> Result<Self> {
        match target {
            Target::Constant(kind, milliseconds) => {
                let program = crate::target_dir().join("release/examples/constant");
                let mut command = Command::new("taskset");
                command.args(["-c", TARGET_CORE]).arg(program).args([kind, "0", &milliseconds.to_string()]);
                let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start the constant target")?;
                let mut line = String::new();
                let output = child.stdout.take().context("its output is piped")?;
                BufReader::new(output).read_line(&mut line)?;
                let running = Self::Constant(child, line.trim().to_owned());
                if line.is_empty() {
                    bail!("the constant target ended at once");
                }
                Ok(running)
            }
            Target::RedisServer => {
                let port = free_port()?;
                let words = ["taskset", "-c", TARGET_CORE, "redis-server"].map(str::to_owned);
                let command: Vec<String> = words.into_iter().chain(memory_only(port)).collect();
                Ok(Self::Redis(Server::start(&command, port, &tools.folder)?))
            }
        }
    }

    pub(super) fn address(&self) -> String {
        match self {
            Self::Constant(_, address) => address.clone(),
            Self::Redis(server) => format!("127.0.0.1:{}", server.port()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Constant(child, _) = self {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
