//! A server for the tests of other projects: in their process, on a port of its own, gone when it is dropped.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! let server = redis_server::test::Server::start();
//! // What is tested gets server.url(), "redis://127.0.0.1:PORT/", or server.addr(); here a socket does.
//! let mut client = TcpStream::connect(server.addr())?;
//! client.write_all(b"PING\r\n")?;
//! let mut reply = [0; 7];
//! client.read_exact(&mut reply)?;
//! assert_eq!(&reply, b"+PONG\r\n");
//! # std::io::Result::Ok(())
//! ```
//!
//! Servers share nothing: each test has one, and tests run side by side. `DEBUG` is allowed, and commands that a test wants
//! reach it as they would any server; it keeps all data in memory, and takes its settings from its maker alone, not from
//! the environment. A server takes milliseconds to start. The node of a cluster (`cluster-enabled yes`) has its `cluster-config-file` in a
//! folder that goes with the server.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::{fmt, fs, io, iter, process};

use server_runtime::{Listen, Running};

use super::service::{StartError, start_at};
use crate::config::settings::CLUSTER_ENABLED;
use crate::config::{Config, ConfigError, Launch};
use crate::exec::core::Instance;

/// The differences from a server's defaults: one test's server is one of many on its machine.
const SETTINGS: &[(&str, &str)] = &[("workers", "1"), ("save", ""), ("enable-debug-command", "yes")];

/// A server that lives as long as this value.
pub struct Server {
    addr: SocketAddr,
    instance: Arc<Instance>,
    /// Some until it is dropped.
    running: Option<Running>,
    /// Of a cluster's node.
    _folder: Option<Folder>,
}

/// A folder for what one server must write, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("redis-server-test-{}-{}", process::id(), LAST.fetch_add(1, Relaxed));
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                // A process that had this one's number has left it behind.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Server {
    /// A server with defaults.
    ///
    /// # Panics
    /// When it cannot start, as a test wants it.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[]).expect("a server on any free port of the loopback starts")
    }

    /// A server with these settings, by their names in redis.conf: `&[("maxmemory", "10mb"), ("requirepass", "secret")]`.
    ///
    /// # Errors
    /// A setting that there is not, a value that it cannot have, and whatever keeps a server from its start.
    pub fn with(settings: &[(&str, &str)]) -> Result<Self, TestServerError> {
        let mut config = load(settings)?;
        let has_file = settings.iter().any(|(name, _)| name.eq_ignore_ascii_case("cluster-config-file"));
        let mut folder = None;
        if config.is_on(CLUSTER_ENABLED) && !has_file {
            let own = folder.insert(Folder::new().map_err(TestServerError::Folder)?);
            let file = own.0.join("nodes.conf").display().to_string();
            config = load(&[settings, &[("cluster-config-file", &file)]].concat())?;
        }
        let place = Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (running, instance) = start_at(vec![place], config)?;
        Ok(Self { addr: running.local_addrs()[0], instance, running: Some(running), _folder: folder })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same in the form that clients take: `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }

    /// The state behind it, for tests that look deeper than commands do.
    #[must_use]
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
}

fn load(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let settings = SETTINGS.iter().chain(settings);
    let flags: Vec<String> = settings.flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Ok(Config::load(&Launch::from_flags(&flags)?, iter::empty())?.0)
}

/// Its connections are cut, and when this returns its threads have ended.
impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_handle().abort();
            running.wait();
            // The thread of a cluster's bus is not waited for, and must not miss the folder.
            self.instance.cluster.end();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// Why a server for a test could not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum TestServerError {
    /// A setting or its value.
    Config(ConfigError),
    /// There cannot be a folder for what the node of a cluster writes.
    Folder(io::Error),
    /// All else.
    Start(StartError),
}

impl fmt::Display for TestServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Folder(error) => write!(f, "no folder for cluster-config-file: {error}"),
            Self::Start(error) => error.fmt(f),
        }
    }
}

impl Error for TestServerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Folder(error) => Some(error),
            Self::Start(error) => Some(error),
        }
    }
}

impl From<ConfigError> for TestServerError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<StartError> for TestServerError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}
