//! The peers, by the package clients of their languages.

use test_peers::{Kit, kit};

pub(super) const GO: Kit = kit! {
    name: "echonet-go",
    sources: &["tests/peers/go"],
    programs: &["go"],
    install: "go build -o peer .",
};
pub(super) const PYTHON: Kit = kit! {
    name: "echonet-python",
    sources: &["tests/peers/python"],
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
};
pub(super) const JS: Kit = kit! {
    name: "echonet-js",
    sources: &["tests/peers/js"],
    programs: &["node", "npm"],
    // The scripts of packages build serial ports, which no machine here has.
    install: "npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error",
};
pub(super) const RUST: Kit = kit! {
    name: "echonet-rust",
    sources: &["tests/peers/rust"],
    programs: &["cargo"],
    install: "cargo build --quiet --target-dir target",
};
