//! Makes Rust of the services' definitions, without protoc.

use std::path::PathBuf;

use prost::Message as _;

fn main() -> anyhow::Result<()> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["helloworld.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Reflection serves these definitions to clients.
    std::fs::write(out.join("helloworld.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().emit_rerun_if_changed(false).compile_fds(files)?;
    let files = protox::compile(["health.proto"], ["proto"])?;
    std::fs::write(out.join("health.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().emit_rerun_if_changed(false).build_client(false).compile_fds(files)?;
    // Services for the tests alone; the crate itself has none of them.
    println!("cargo::rerun-if-changed=tests/proto");
    let files = protox::compile(["conformance.proto", "interop.proto", "orca.proto"], ["tests/proto"])?;
    std::fs::write(out.join("tests.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().emit_rerun_if_changed(false).build_client(false).compile_fds(files)?;
    Ok(())
}
