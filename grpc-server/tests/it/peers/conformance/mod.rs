//! Connect's conformance suite: its runner starts servers of ours, calls them by its reference client, and judges the answers.

mod service;

use std::env;
use std::fs::File;
use std::io::{Read as _, Write as _, stdin};
use std::process::Command;

use grpc_server::{Options, Web, serve};
use prost::Message;
use server_runtime::{ClientAuth, Listen, TlsOptions};
use test_peers::run_within;

use self::service::pb::{ServerCompatRequest, ServerCompatResponse};
use super::folder;
use super::install::CONFORMANCE;

/// Seconds for all cases; several of them wait for their time-out.
const PATIENCE: u32 = 400;

/// Where the server below is to write; the runner starts it.
const OUTPUT: &str = "CONFORMANCE_OUTPUT";

/// How the runner starts a server: libtest's output goes nowhere, and the server's output takes its place.
const SERVER: &str =
    r#"exec 3>&1 >/dev/null; exec "$0" --exact peers::conformance::server --include-ignored --nocapture"#;

/// Messages, and the service's definition, which calls in JSON need.
static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tests.bin"));

#[test]
fn of_connect() {
    check("connect");
}

#[test]
fn of_grpc_and_grpc_web() {
    check("grpc");
}

/// All cases of what `tests/peers/conformance/{name}.yaml` claims, but for those that are known to fail: these have to.
fn check(name: &str) {
    let Some(kit) = CONFORMANCE.installed() else { return };
    let mut runner = Command::new(kit.join("bin/connectconformance"));
    runner.args(["--mode", "server", "--conf"]).arg(kit.join(format!("{name}.yaml")));
    let known = kit.join(format!("{name}-known-failing.txt"));
    if known.exists() {
        runner.arg("--known-failing").arg(format!("@{}", known.display()));
    }
    runner.args(["-v", "--", "sh", "-c", SERVER]).arg(env::current_exe().unwrap());
    let output = run_within(PATIENCE, runner.env(OUTPUT, "/dev/fd/3")).unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let summary = said.rfind("Total cases: ").map_or("", |at| &said[at..]);
    eprintln!("conformance, {name}: {summary}");
    assert!(output.status.success() && summary.contains(" passed, 0 failed"), "{said}");
}

/// No test, but the server of those above: it does as it is told on its standard input, until it is ended.
#[test]
#[ignore = "the suite's runner starts it"]
fn server() {
    let Some(output) = env::var_os(OUTPUT) else { return };
    let mut length = [0; 4];
    stdin().read_exact(&mut length).unwrap();
    let mut request = vec![0; u32::from_be_bytes(length) as usize];
    stdin().read_exact(&mut request).unwrap();
    let request = ServerCompatRequest::decode(&request[..]).unwrap();
    let limit = request.message_receive_limit as usize;
    let mut options = Options::listening(place(&request));
    options.runtime.workers = 1;
    options.runtime.tls = tls(&request);
    options.descriptors = vec![DESCRIPTORS];
    options.connect = true;
    options.web = Some(Web::default());
    if limit > 0 {
        options.limits.message = limit;
    }
    let running = serve(service::routes((limit > 0).then_some(limit)), options).unwrap();
    let response = ServerCompatResponse {
        host: "127.0.0.1".to_owned(),
        port: running.local_addrs()[0].port().into(),
        pem_cert: request.server_creds.map(|pair| pair.cert).unwrap_or_default(),
    }
    .encode_to_vec();
    let length = u32::try_from(response.len()).unwrap().to_be_bytes();
    File::options().write(true).open(output).unwrap().write_all(&[&length[..], &response].concat()).unwrap();
    running.wait();
}

fn place(request: &ServerCompatRequest) -> Listen {
    if request.use_tls { "tls:127.0.0.1:0" } else { "127.0.0.1:0" }.parse().unwrap()
}

/// The files of what the runner has sent.
fn tls(request: &ServerCompatRequest) -> Option<TlsOptions> {
    let pair = request.server_creds.as_ref().filter(|_| request.use_tls)?;
    let folder = folder("conformance");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut tls = TlsOptions::new(file("cert.pem", &pair.cert), file("key.pem", &pair.key));
    if !request.client_tls_cert.is_empty() {
        tls.client_ca = Some(file("client.pem", &request.client_tls_cert));
        tls.client_auth = ClientAuth::Required;
    }
    Some(tls)
}
