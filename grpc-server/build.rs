//! Makes Rust of the service's definition, without protoc.

use std::path::PathBuf;

use prost::Message as _;

fn main() -> anyhow::Result<()> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["helloworld.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // What reflection tells clients.
    std::fs::write(out.join("helloworld.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().emit_rerun_if_changed(false).compile_fds(files)?;
    Ok(())
}
