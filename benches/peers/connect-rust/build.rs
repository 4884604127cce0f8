fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FOLDER: &str = "../../../grpc-server/proto";
    println!("cargo::rerun-if-changed={FOLDER}");
    connectrpc_build::Config::new()
        .files(&[format!("{FOLDER}/helloworld.proto")])
        .includes(&[FOLDER])
        .include_file("_connectrpc.rs")
        .compile()?;
    Ok(())
}
