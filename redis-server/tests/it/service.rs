//! The server as a service: in the background, under systemd as Debian's package has it, and what signals do.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::process::{OURS, Process, ask};
use crate::support::resp::Value;
use crate::support::{PATIENCE, until};

fn ok() -> Value {
    Value::Status(b"OK".into())
}

/// A folder that goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("redis-service-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn connect(&self) -> UnixStream {
        let mut stream = None;
        until("the server listens", || {
            stream = UnixStream::connect(self.0.join("socket")).ok();
            stream.is_some()
        });
        let stream = stream.unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_hangup_ends_nothing() {
    let process = Process::start("hangup", &[]);
    let mut client = process.connect();
    assert_eq!(ask(&mut client, &["SET", "key", "value"]), ok());
    process.signal(Signal::HUP);
    until("the signal has come", || process.log().contains("SIGHUP"));
    assert_eq!(ask(&mut client, &["GET", "key"]), Value::Bulk(b"value".into()));
}

/// The process and the files of a program in the background: ours and the genuine one.
#[test]
fn a_daemon_leaves_its_parent_and_its_terminal() {
    let mut looks = Vec::new();
    for program in [OURS, "redis-server"] {
        if program != OURS && !test_peers::is_there(program) {
            continue;
        }
        let folder = Folder::new(&format!("daemon-{}", looks.len()));
        let started = Command::new(program)
            .args([
                "--port",
                "0",
                "--unixsocket",
                &folder.file("socket"),
                "--daemonize",
                "yes",
                "--dir",
                &folder.file("."),
            ])
            .args(["--pidfile", &folder.file("pid"), "--logfile", &folder.file("log")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        assert!(started.status.success(), "{started:?}");
        let mut client = folder.connect();
        until("it has written its id", || {
            fs::read_to_string(folder.file("pid")).is_ok_and(|text| text.ends_with('\n'))
        });
        let pid = fs::read_to_string(folder.file("pid")).unwrap();
        let pid = pid.trim();
        let files: Vec<_> = ["0", "1", "2"].map(|file| fs::read_link(format!("/proc/{pid}/fd/{file}")).unwrap()).into();
        // Behind the name: state, parent, group, session.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap() == pid;
        assert_eq!(ask(&mut client, &["SET", "key", "value"]), ok());
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::TERM).unwrap();
        until("it has ended", || !Path::new(&format!("/proc/{pid}")).exists());
        let has_saved = Path::new(&folder.file("dump.rdb")).exists();
        let has_log = fs::read_to_string(folder.file("log")).unwrap().contains("bye bye");
        looks.push((files, session, has_saved, has_log, Path::new(&folder.file("pid")).exists()));
    }
    let null = vec![PathBuf::from("/dev/null"); 3];
    assert_eq!(looks[0], (null, true, true, true, false));
    assert!(looks.iter().all(|look| *look == looks[0]), "{looks:?}");
}

#[test]
fn the_title_tells_where_it_listens() {
    let title = |process: &Process| {
        let bytes = fs::read(format!("/proc/{}/cmdline", process.pid())).unwrap();
        String::from_utf8(bytes).unwrap().trim_end_matches('\0').to_owned()
    };
    let process = Process::start("title", &[]);
    assert_eq!(title(&process), format!("{OURS} socket"));
    let mut client = process.connect();
    let set =
        |client: &mut UnixStream, template: &str| ask(client, &["CONFIG", "SET", "proc-title-template", template]);
    assert_eq!(set(&mut client, "cache {port} {server-mode}"), ok());
    assert_eq!(title(&process), "cache 0");
    assert!(set(&mut client, "{nothing}").is_error());
    // The environment, whose place the title has taken, is still there.
    let long = "x".repeat(100_000);
    assert_eq!(set(&mut client, &long), ok());
    assert!(title(&process).starts_with("xxxx"));
    let plain = Process::start("no-title", &[("set-proc-title", "no")]);
    assert!(title(&plain).contains("--unixsocket"));
}

/// The state of the server, by the connection whose command was under way.
#[test]
fn a_crash_leaves_a_report() {
    let mut process = Process::start("crash", &[]);
    let mut client = process.connect();
    assert_eq!(ask(&mut client, &["CLIENT", "SETNAME", "bystander"]), ok());
    process.signal(Signal::SEGV);
    let status = process.ended();
    assert_eq!(status.signal(), Some(11), "{status}");
    let log = process.log();
    for part in [
        "=== REDIS BUG REPORT START",
        "crashed by signal: 11 (SIGSEGV)",
        "------ STACK TRACE ------",
        "(+0x",
        "------ INFO OUTPUT ------",
        "uptime_in_seconds:",
        "connected_clients:1",
        "# Memory",
        "name=bystander",
        "cmd=client|setname",
        "=== REDIS BUG REPORT END",
    ] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    let mut silent = Process::start("silent-crash", &[("crash-log-enabled", "no")]);
    silent.signal(Signal::SEGV);
    assert_eq!(silent.ended().signal(), Some(11));
    assert!(!silent.log().contains("BUG REPORT"));
}

/// The settings of Debian's unit that concern the program.
struct Unit {
    arguments: Vec<String>,
    pidfile: String,
    files: u64,
}

const UNIT: &str = "/lib/systemd/system/redis-server.service";

/// `None`, and a line that says so, where the package is not installed.
fn unit() -> Option<Unit> {
    let Ok(text) = fs::read_to_string(UNIT) else {
        test_peers::skip(&format!("there is no {UNIT} of Debian's package"));
        return None;
    };
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).expect(name).to_owned();
    let start = value("ExecStart=");
    assert_eq!(value("Type="), "notify");
    let arguments = start.split(' ').skip(1).map(str::to_owned).collect();
    Some(Unit { arguments, pidfile: value("PIDFile="), files: value("LimitNOFILE=").parse().unwrap() })
}

/// The service, started as systemd would.
struct Service {
    child: Child,
    notices: UnixDatagram,
    said: String,
}

impl Service {
    fn start(program: &str, unit: &Unit, folder: &Folder, environment: &[(&str, &str)]) -> Self {
        let address = folder.0.join("notify");
        let _ = fs::remove_file(&address);
        let notices = UnixDatagram::bind(&address).unwrap();
        notices.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = Command::new(program);
        command
            .args(&unit.arguments)
            // Instead of the system's folders: those of the test.
            .args(["--dir", &folder.file("."), "--logfile", &folder.file("log"), "--pidfile", &folder.file("pid")])
            .args(["--port", "0", "--unixsocket", &folder.file("socket")])
            .env_clear()
            .env("NOTIFY_SOCKET", &address)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        confine(&mut command, unit.files);
        Self { child: command.spawn().unwrap(), notices, said: String::new() }
    }

    /// Waits until it has said this.
    fn await_notice(&mut self, wanted: &str) {
        while !self.said.contains(wanted) {
            let mut message = [0; 4096];
            let count = self.notices.recv(&mut message).unwrap_or_else(|error| {
                panic!("{wanted} is not among {:?}: {error}; {:?}", self.said, self.child.try_wait())
            });
            self.said.push_str(std::str::from_utf8(&message[..count]).unwrap());
            if !self.said.ends_with('\n') {
                self.said.push('\n');
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the service ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `LimitNOFILE`, `UMask=007`, `NoNewPrivileges` and `SystemCallFilter=~@resources` of the unit: what the filter names ends the process.
#[allow(unsafe_code, reason = "limits and filters are set between fork and exec")]
fn confine(command: &mut Command, files: u64) {
    const FORBIDDEN: [i64; 7] = [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
        libc::SYS_setpriority,
        libc::SYS_ioprio_set,
        libc::SYS_mbind,
    ];
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for call in FORBIDDEN {
        filter.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, 0, 1));
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS, 0, 0));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0));
    // Where the machine allows fewer, none but root may have more.
    let files = files.min(rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(files));
    let set = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        let limit = libc::rlimit { rlim_cur: files, rlim_max: files };
        // SAFETY: these calls are safe between fork and exec, and what they point to lives as long as they.
        let done = unsafe {
            libc::umask(0o007);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: see above.
    unsafe { command.pre_exec(set) };
}

/// Debian's package with our program in the place of its own: its unit's command, its configuration, its data, and the way back.
#[test]
fn debians_unit_starts_reloads_and_stops_it() {
    let Some(unit) = unit() else { return };
    let folder = Folder::new("unit");
    assert!(unit.pidfile.ends_with("redis-server.pid"));
    // The genuine program has been there before, and comes back.
    for (round, program) in ["redis-server", OURS, OURS, "redis-server"].into_iter().enumerate() {
        let mut service = Service::start(program, &unit, &folder, &[("WATCHDOG_USEC", "100000")]);
        service.await_notice("READY=1");
        assert!(service.said.contains("STATUS="), "{}", service.said);
        let mut client = folder.connect();
        for earlier in 0..round {
            let value = ask(&mut client, &["GET", &format!("round:{earlier}")]);
            assert_eq!(
                value,
                Value::Bulk(b"kept".into()),
                "round {round} of {program} has the data of round {earlier}"
            );
        }
        assert_eq!(ask(&mut client, &["SET", &format!("round:{round}"), "kept"]), ok());
        // On a thread of slow calls, which asks for another priority where it may.
        assert_eq!(ask(&mut client, &["SORT", "no-list", "BY", "nosort"]), Value::Array(Vec::new()));
        let members: Vec<String> = (0..5000).map(|member| member.to_string()).collect();
        let sadd: Vec<&str> = ["SADD", "set"].into_iter().chain(members.iter().map(String::as_str)).collect();
        assert!(!ask(&mut client, &sadd).is_error());
        assert!(!ask(&mut client, &["BGSAVE"]).is_error());
        until("it is saved", || ask(&mut client, &["INFO", "persistence"]).text().contains("rdb_bgsave_in_progress:0"));
        if program == OURS {
            service.await_notice("WATCHDOG=1");
            service.signal(Signal::HUP);
            service.await_notice("RELOADING=1\nMONOTONIC_USEC=");
            service.said.clear();
            service.await_notice("READY=1");
        } else {
            service.signal(Signal::HUP);
        }
        assert_eq!(ask(&mut client, &["PING"]), Value::Status(b"PONG".into()));
        let pid = fs::read_to_string(folder.file("pid")).unwrap();
        assert_eq!(pid.trim(), service.child.id().to_string(), "it stays in the foreground");
        service.signal(Signal::TERM);
        service.await_notice("STOPPING=1");
        let status = service.ended();
        assert!(status.success(), "{program}: {status}; {}", fs::read_to_string(folder.file("log")).unwrap());
        assert_eq!(fs::metadata(folder.file("dump.rdb")).unwrap().mode() & 0o007, 0, "the unit's umask");
    }
}

/// A service that crashes is started again with what it had saved (`Restart=always`).
#[test]
fn debians_unit_starts_it_again_after_a_crash() {
    let Some(unit) = unit() else { return };
    let folder = Folder::new("unit-crash");
    let mut service = Service::start(OURS, &unit, &folder, &[]);
    service.await_notice("READY=1");
    let mut client = folder.connect();
    assert_eq!(ask(&mut client, &["SET", "key", "value"]), ok());
    assert_eq!(ask(&mut client, &["SAVE"]), ok());
    service.signal(Signal::ABORT);
    assert_eq!(service.ended().signal(), Some(6));
    assert!(!service.said.contains("STOPPING"));
    let mut again = Service::start(OURS, &unit, &folder, &[]);
    again.await_notice("READY=1");
    assert_eq!(ask(&mut folder.connect(), &["GET", "key"]), Value::Bulk(b"value".into()));
}

/// A missing or detected supervisor: the log line, and that the server serves.
#[test]
fn a_supervisor_is_found_or_missed() {
    let process = Process::start("unsupervised", &[("supervised", "systemd")]);
    assert!(process.log().contains("systemd supervision error: NOTIFY_SOCKET not found!"), "{}", process.log());
    let folder = Folder::new("auto");
    let notices = UnixDatagram::bind(folder.0.join("notify")).unwrap();
    notices.set_read_timeout(Some(PATIENCE)).unwrap();
    let start = |variable: &str, value: &str| {
        Command::new(OURS)
            .args(["--port", "0", "--unixsocket", &folder.file("socket"), "--supervised", "auto", "--daemonize", "yes"])
            .args(["--dir", &folder.file("."), "--logfile", &folder.file("log")])
            .env(variable, value)
            .spawn()
            .unwrap()
    };
    let mut child = start("NOTIFY_SOCKET", &folder.file("notify"));
    let mut said = String::new();
    while !said.contains("READY=1") {
        let mut message = [0; 4096];
        let count = notices.recv(&mut message).unwrap();
        said.push_str(std::str::from_utf8(&message[..count]).unwrap());
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    // Upstart sees that its job has stopped itself, and has it go on.
    let mut child = start("UPSTART_JOB", "redis");
    let stat = format!("/proc/{}/stat", child.id());
    until("it has stopped itself", || fs::read_to_string(&stat).unwrap().contains(") T "));
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    assert_eq!(ask(&mut folder.connect(), &["PING"]), Value::Status(b"PONG".into()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}
