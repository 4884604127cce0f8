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

/// The server that `cargo build --release -p redis-server` builds.
pub(crate) fn release_server() -> PathBuf {
    target_dir().join("release/redis-server")
}

/// Returns true if a missing peer is a failure and not a note (`REQUIRE_PEERS=1`).
pub(crate) fn requires_peers() -> bool {
    env::var_os("REQUIRE_PEERS").is_some_and(|value| value == "1")
}
