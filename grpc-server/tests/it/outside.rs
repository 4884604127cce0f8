//! The README's example, built by a crate outside of the workspace.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use http::uri::PathAndQuery;
use tokio_stream::StreamExt as _;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::support::{PATIENCE, folder};

#[derive(Clone, PartialEq, prost::Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    value: u64,
}

/// A program that ends with its test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn readme_alone_makes_a_server() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let folder = folder("outside");
    let built = test_peers::outside(env!("CARGO"), &[&readme], &folder, &[("127.0.0.1:50051", "127.0.0.1:0")]);
    let mut program = Program(Command::new(built.join("outside")).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(program.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on ").unwrap();
    let channel = Endpoint::from_shared(format!("http://{addr}")).unwrap().timeout(PATIENCE).connect().await.unwrap();
    assert_eq!(square(&channel, 12, "Bearer secret").await.unwrap(), 144);
    assert_eq!(square(&channel, u64::MAX, "Bearer secret").await.unwrap_err().code(), Code::OutOfRange);
    assert_eq!(square(&channel, 12, "Bearer other").await.unwrap_err().code(), Code::Unauthenticated);
    let path = PathAndQuery::from_static("/squares.Squares/UpTo");
    let mut client = client(channel.clone()).await;
    let answer = client.server_streaming(request(3, "Bearer secret"), path, codec()).await.unwrap();
    let numbers: Vec<_> = answer.into_inner().map(|number| number.unwrap().value).collect().await;
    assert_eq!(numbers, [1, 4, 9]);
    // Health stands outside of the layer: a probe has no token.
    let status = Command::new(env!("CARGO_BIN_EXE_grpc-client"))
        .args(["health", "squares.Squares", "--address", addr])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "SERVING\n");
    drop(std::fs::remove_dir_all(&folder));
}

async fn square(channel: &Channel, value: u64, token: &str) -> Result<u64, Status> {
    let path = PathAndQuery::from_static("/squares.Squares/Square");
    let answer = client(channel.clone()).await.unary(request(value, token), path, codec()).await?;
    Ok(answer.into_inner().value)
}

async fn client(channel: Channel) -> Grpc<Channel> {
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    client
}

fn request(value: u64, token: &str) -> Request<Number> {
    let mut request = Request::new(Number { value });
    request.metadata_mut().insert("authorization", token.parse().unwrap());
    request
}

fn codec() -> ProstCodec<Number, Number> {
    ProstCodec::default()
}
