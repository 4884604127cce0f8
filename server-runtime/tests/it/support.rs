//! An echo server, and ways to talk to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use server_runtime::{Connection, Options, Running, Service, start};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longer than anything here takes, shorter than a person waits for a hung test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Echoes. `panic` panics, `options` answers with those of its socket, `who` answers with worker, peer and local address, `hold` goes on until the connection is cut, `stall`
/// holds up its worker for three seconds, `shutdown` answers when the server shuts down.
pub(crate) struct Echo;

pub(crate) const REFUSAL: &str = "full\n";

impl Service for Echo {
    /// The worker's index, and the name of the thread that made it.
    type Worker = (usize, Option<String>);
    type Carried = ();

    fn worker(self: &Arc<Self>, index: usize) -> Self::Worker {
        (index, std::thread::current().name().map(str::to_owned))
    }

    async fn serve(self: Arc<Self>, worker: Rc<Self::Worker>, connection: Connection) {
        let Connection { mut stream, peer, local, shutdown, place: _place, .. } = connection;
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            let answer = match &bytes[..count] {
                b"who" => {
                    assert_eq!(worker.1.as_deref(), std::thread::current().name(), "a connection stays on its worker");
                    format!("{} {peer} {local}", worker.1.as_deref().unwrap_or_default()).into_bytes()
                }
                b"panic" => panic!("as asked"),
                b"hold" => std::future::pending().await,
                b"stall" => {
                    std::thread::sleep(Duration::from_secs(3));
                    b"over".to_vec()
                }
                b"options" => {
                    let socket = SockRef::from(&stream);
                    let is_kept = socket.keepalive().unwrap();
                    let silence = if is_kept { socket.tcp_keepalive_time().unwrap() } else { Duration::ZERO };
                    format!("{} {silence:?}", socket.tcp_nodelay().unwrap()).into_bytes()
                }
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

/// Answers each message with how many it has had and on which worker; goes to another worker when it is asked to, and settles at `stay`.
pub(crate) struct Wanderer;

impl Service for Wanderer {
    type Worker = usize;
    type Carried = usize;

    fn worker(self: &Arc<Self>, index: usize) -> usize {
        index
    }

    fn moves(&self) -> bool {
        true
    }

    async fn serve(self: Arc<Self>, worker: Rc<usize>, mut connection: Connection<usize>) {
        let mut messages = connection.carried.take().unwrap_or(0);
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = connection.stream.read(&mut bytes).await {
            messages += 1;
            let answer = format!("{messages} on {worker}");
            if connection.stream.write_all(answer.as_bytes()).await.is_err() {
                break;
            }
            let target = match &bytes[..count] {
                b"stay" => connection.place.settle(),
                _ if connection.place.is_settled() => None,
                _ => connection.place.is_asked_to(|| u16::MAX / 2),
            };
            if let Some(target) = target {
                return connection.move_to(target, messages).unwrap();
            }
        }
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
    let count = test_peers::read(stream, &mut answer).unwrap();
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

/// A new folder, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("server-runtime-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
