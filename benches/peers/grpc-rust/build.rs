fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../../../grpc-server/proto");
    let files = protox::compile(["helloworld.proto"], ["../../../grpc-server/proto"])?;
    tonic_prost_build::configure().emit_rerun_if_changed(false).compile_fds(files)?;
    Ok(())
}
