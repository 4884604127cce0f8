//! Genuine clients and tools, unmodified, over cleartext and TLS.

mod browser;
mod conformance;
mod extremes;
mod h2spec;
mod install;
pub(crate) mod interop;
mod languages;
mod tools;
mod trailers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::Parser as _;
use grpc_server::{Args, Routes, serve};
use server_runtime::Running;

/// A server at two places, for as long as this lives.
struct Both {
    plain: SocketAddr,
    tls: SocketAddr,
    /// The certificate that clients trust.
    certificate: PathBuf,
    _running: Running,
}

impl Both {
    /// The services that the program serves by its flags.
    fn greeter() -> Self {
        Self::start(&[], Args::routes)
    }

    /// Other services, served as the program does it with these flags too.
    fn start(more: &[&str], routes: impl Fn(&Args) -> Routes) -> Self {
        let folder = folder("both");
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&certificate, certified.cert.pem()).unwrap();
        std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        let flags = ["grpc-server", "--listen", "127.0.0.1:0", "--listen", "tls:127.0.0.1:0", "--workers", "2"];
        let files = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        let args = Args::parse_from([&flags[..], &files, more].concat());
        let running = serve(routes(&args), args.options().unwrap()).unwrap();
        let [plain, tls] = running.local_addrs()[..] else { panic!("two places are expected") };
        Self { plain, tls, certificate, _running: running }
    }
}

/// A fresh folder below the target folder.
fn folder(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
