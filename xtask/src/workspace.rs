//! Where this workspace is, and what its environment asks for.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The folder of build output, and of everything that this program makes.
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The profile of the programs that are shipped and measured, and its folder in [`target_dir`]. `release` is for quick builds.
pub const SHIPPED: &str = "dist";

/// A program as `cargo build --profile dist` leaves it; `""` is the folder of all of them.
pub fn shipped(program: &str) -> PathBuf {
    target_dir().join(SHIPPED).join(program)
}

/// Our server, as `cargo build --profile dist -p redis-server` leaves it.
pub fn shipped_server() -> PathBuf {
    shipped("redis-server")
}

/// Returns true if a missing peer is a failure and not a note (`REQUIRE_PEERS=1`).
pub fn requires_peers() -> bool {
    env::var_os("REQUIRE_PEERS").is_some_and(|value| value == "1")
}

/// The cargo that runs this program, in the workspace, as its users call it. Without the variables that `cargo run` sets: build scripts
/// look at them (ring's does), and would build half of the libraries anew whenever the caller has changed.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| SET_BY_RUN.iter().any(|set| name.starts_with(set))) {
            command.env_remove(name);
        }
    }
    command.current_dir(root());
    command
}

/// How the names of variables begin that `cargo run` sets for the program.
const SET_BY_RUN: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];
