//! An echo server, and ways to talk to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use server_runtime::{Connection, Options, Running, Service, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longer than anything here takes, shorter than a person waits for a hung test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Echoes. `who` answers with worker, peer and local address, `hold` goes on until the connection is cut,
/// `shutdown` answers when the server shuts down.
pub(crate) struct Echo;

pub(crate) const REFUSAL: &str = "full\n";

impl Service for Echo {
    /// The worker's index, and the name of the thread that made it.
    type Worker = (usize, Option<String>);

    fn worker(self: &Arc<Self>, index: usize) -> Self::Worker {
        (index, std::thread::current().name().map(str::to_owned))
    }

    async fn serve(self: Arc<Self>, worker: Rc<Self::Worker>, connection: Connection) {
        let Connection { mut stream, peer, local, shutdown, place: _place } = connection;
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            let answer = match &bytes[..count] {
                b"who" => {
                    assert_eq!(worker.1.as_deref(), std::thread::current().name(), "a connection stays on its worker");
                    format!("{} {peer} {local}", worker.1.as_deref().unwrap_or_default()).into_bytes()
                }
                b"hold" => std::future::pending().await,
                b"shutdown" => {
                    shutdown.triggered().await;
                    b"bye".to_vec()
                }
                other => other.to_vec(),
            };
            if stream.write_all(&answer).await.is_err() {
                break;
            }
        }
    }

    fn refusal(&self) -> &[u8] {
        REFUSAL.as_bytes()
    }
}

/// Two workers on a free port of the IPv4 loopback.
pub(crate) fn options() -> Options {
    Options { listen: vec!["127.0.0.1:0".parse().unwrap()], workers: 2, drain: PATIENCE, ..Options::default() }
}

pub(crate) fn serve(options: Options) -> Running {
    start(options, Arc::new(Echo)).unwrap()
}

/// Ends the server, and checks that nothing had to be cut.
pub(crate) fn end(running: Running) {
    running.shutdown_handle().trigger();
    assert!(!running.wait(), "no connection is left");
}

pub(crate) fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `request` and reads what comes with one `read`, which is enough for short answers on loopback.
pub(crate) fn ask(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 256];
    let count = stream.read(&mut answer).unwrap();
    String::from_utf8(answer[..count].to_vec()).unwrap()
}

/// Waits for what another thread brings about.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Tests that count the process' file descriptors, or use them up, run alone.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
