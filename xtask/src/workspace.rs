//! Where this workspace is, and what its environment asks for.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The folder of build output, and of everything that this program makes.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The profile of the programs that are shipped and measured, and its folder in [`target_dir`]. `release` is for quick builds.
pub(crate) const SHIPPED: &str = "dist";

/// A program as `cargo build --profile dist` leaves it; `""` is the folder of all of them.
pub(crate) fn shipped(program: &str) -> PathBuf {
    target_dir().join(SHIPPED).join(program)
}

/// Our server, as `cargo build --profile dist -p redis-server` leaves it.
pub(crate) fn shipped_server() -> PathBuf {
    shipped("redis-server")
}

/// Returns true if a missing peer is a failure and not a note (`REQUIRE_PEERS=1`).
pub(crate) fn requires_peers() -> bool {
    env::var_os("REQUIRE_PEERS").is_some_and(|value| value == "1")
}
