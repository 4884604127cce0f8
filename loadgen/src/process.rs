//! The use of a process so far: CPU time, memory and context switches, from `/proc`.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::record::Cpu;

/// A process, together with its descendants: a server may be a master with workers, or stand behind a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    /// In ticks since the machine's start; tells a process from a later one with its number.
    started: u64,
}

/// The use of a process and its descendants since they began. The difference of two samples is the use in between.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// CPU time of all threads, also of children that have ended.
    pub cpu: Cpu,
    /// Resident memory; pages that processes share count in each.
    pub resident_bytes: u64,
    /// Context switches because a thread waited, of the threads that are alive.
    pub voluntary_switches: u64,
    /// Context switches because a thread's time was up, of the threads that are alive.
    pub involuntary_switches: u64,
}

/// Descendants looked at; a tree that grows while it is read must not be followed for ever.
const MOST_PROCESSES: usize = 1000;

impl Process {
    /// The process of that number.
    ///
    /// # Errors
    /// When there is none, or it may not be looked at.
    pub fn open(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, started: Stat::read(pid)?.started })
    }

    /// The process that accepts TCP connections, or else receives UDP datagrams, at an address of this machine.
    ///
    /// Nothing is found where it is on another machine, in another network namespace, or another user's.
    #[must_use]
    pub fn listening_on(address: SocketAddr) -> Option<Self> {
        let read =
            |names: [&str; 2]| names.map(|name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
        let (tcp, udp) = (read(["tcp", "tcp6"]), read(["udp", "udp6"]));
        let mut inodes = sockets(&tcp, TCP_LISTEN, address);
        if inodes.is_empty() {
            inodes = sockets(&udp, UDP_UNCONNECTED, address);
        }
        let holders: Vec<(u32, Stat)> = if inodes.is_empty() { Vec::new() } else { holders(&inodes) };
        // A master and its workers hold the same socket: the master is the one whose parent does not.
        let master = holders.iter().find(|(_, stat)| !holders.iter().any(|(pid, _)| *pid == stat.parent));
        master.map(|(pid, stat)| Self { pid: *pid, started: stat.started })
    }

    /// Processes of a group whose parents are in another one, and which are not its leader: what a server's start left to itself.
    #[must_use]
    pub(crate) fn orphans_of(group: u32) -> Vec<Self> {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let members: Vec<(u32, Stat)> = pids
            .filter_map(|pid| Some((pid, Stat::read(pid).ok()?)))
            .filter(|(pid, stat)| stat.group == group && *pid != group)
            .collect();
        let is_root =
            |(_, stat): &&(u32, Stat)| stat.parent != group && !members.iter().any(|(pid, _)| *pid == stat.parent);
        members.iter().filter(is_root).map(|(pid, stat)| Self { pid: *pid, started: stat.started }).collect()
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its use so far.
    ///
    /// # Errors
    /// When it has ended.
    pub fn sample(&self) -> io::Result<Sample> {
        let mut total = Sample::default();
        let mut waiting = vec![self.pid];
        let mut seen = 0;
        while let Some(pid) = waiting.pop() {
            let stat = match Stat::read(pid) {
                Ok(stat) => stat,
                // A descendant may end at any time; its CPU time is then its parent's `cutime`.
                Err(_) if pid != self.pid => continue,
                Err(error) => return Err(error),
            };
            if pid == self.pid && stat.started != self.started {
                return Err(io::Error::new(io::ErrorKind::NotFound, format!("process {pid} has ended")));
            }
            let threads = Threads::read(pid);
            total.add(&stat, &threads);
            seen += 1;
            if seen + waiting.len() < MOST_PROCESSES {
                waiting.extend(threads.children);
            }
        }
        Ok(total)
    }
}

impl Sample {
    fn add(&mut self, stat: &Stat, threads: &Threads) {
        let cpu = precise(stat.cpu, threads.run_seconds);
        self.cpu.user += cpu.user + stat.ended_children.user;
        self.cpu.system += cpu.system + stat.ended_children.system;
        self.resident_bytes += stat.resident_bytes;
        self.voluntary_switches += threads.voluntary_switches;
        self.involuntary_switches += threads.involuntary_switches;
    }

    /// The sum of two samples of different servers.
    #[must_use]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            cpu: Cpu { user: self.cpu.user + other.cpu.user, system: self.cpu.system + other.cpu.system },
            resident_bytes: self.resident_bytes + other.resident_bytes,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }

    /// The use from `earlier` to this sample. The resident memory is this sample's.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        // The parts are estimates, of which one may shrink while their sum grows.
        let total = (self.cpu.total() - earlier.cpu.total()).max(0.0);
        let user = (self.cpu.user - earlier.cpu.user).clamp(0.0, total);
        Self {
            cpu: Cpu { user, system: total - user },
            resident_bytes: self.resident_bytes,
            // Threads that have ended since take their switches with them.
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// The sum of user and system time is known in ticks of 10 ms, that of the live threads in nanoseconds. The latter is the
/// better one as long as no thread has ended; its parts are then in proportion to the ticks.
fn precise(ticks: Cpu, run_seconds: f64) -> Cpu {
    if run_seconds < ticks.total() {
        return ticks;
    }
    if ticks.total() == 0.0 {
        return Cpu { user: run_seconds, system: 0.0 };
    }
    let factor = run_seconds / ticks.total();
    Cpu { user: ticks.user * factor, system: ticks.system * factor }
}

/// The fields of `/proc/PID/stat` (proc_pid_stat(5)).
struct Stat {
    parent: u32,
    group: u32,
    cpu: Cpu,
    ended_children: Cpu,
    started: u64,
    resident_bytes: u64,
}

impl Stat {
    fn read(pid: u32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::parse(&text).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not as expected: {text}")))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may itself hold parentheses and spaces. Field 3, the state, is the first one after it.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let seconds = |field: usize| Some(number(field)? as f64 / rustix::param::clock_ticks_per_second() as f64);
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            group: u32::try_from(number(5)?).ok()?,
            cpu: Cpu { user: seconds(14)?, system: seconds(15)? },
            ended_children: Cpu { user: seconds(16)?, system: seconds(17)? },
            started: number(22)?,
            resident_bytes: number(24)? * rustix::param::page_size() as u64,
        })
    }
}

/// The figures of a process' threads, added up.
#[derive(Default)]
struct Threads {
    run_seconds: f64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    children: Vec<u32>,
}

impl Threads {
    fn read(pid: u32) -> Self {
        let mut all = Self::default();
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            // A thread may end at any time.
            let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            all.add(&read("schedstat"), &read("status"), &read("children"));
        }
        all
    }

    fn add(&mut self, schedstat: &str, status: &str, children: &str) {
        let nanos = schedstat.split_whitespace().next().and_then(|first| first.parse::<u64>().ok());
        self.run_seconds += nanos.unwrap_or(0) as f64 / 1e9;
        for line in status.lines() {
            let Some((name, value)) = line.split_once(":") else { continue };
            let value = || value.trim().parse().unwrap_or(0);
            match name {
                "voluntary_ctxt_switches" => self.voluntary_switches += value(),
                "nonvoluntary_ctxt_switches" => self.involuntary_switches += value(),
                _ => {}
            }
        }
        self.children.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
}

/// States in `/proc/net/tcp` and `/proc/net/udp`.
const TCP_LISTEN: &str = "0A";
const UDP_UNCONNECTED: &str = "07";

/// Inodes of the sockets in some tables that have the state and receive what is sent to the address: those bound to it, or
/// else those bound to every address.
fn sockets(tables: &[String], state: &str, address: SocketAddr) -> HashSet<u64> {
    let mut bound = HashSet::new();
    let mut wildcard = HashSet::new();
    for line in tables.iter().flat_map(|table| table.lines()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (Some(local), Some(&found), Some(inode)) = (fields.get(1), fields.get(3), fields.get(9)) else { continue };
        let (Some(local), Ok(inode)) = (parse_address(local), inode.parse::<u64>()) else { continue };
        if found != state || local.port() != address.port() {
            continue;
        }
        if local.ip() == address.ip().to_canonical() {
            bound.insert(inode);
        } else if local.ip() == Ipv6Addr::UNSPECIFIED || (local.ip() == Ipv4Addr::UNSPECIFIED && address.is_ipv4()) {
            wildcard.insert(inode);
        }
    }
    if bound.is_empty() { wildcard } else { bound }
}

/// `0100007F:1F90` is 127.0.0.1:8080: words of 32 bits in the machine's byte order, each in hexadecimal.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |start: usize| u32::from_str_radix(ip.get(start..start + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut octets = [0; 16];
            for (index, chunk) in octets.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(8 * index)?);
            }
            IpAddr::from(octets).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// The processes that have one of the sockets open, by ascending number.
fn holders(inodes: &HashSet<u64>) -> Vec<(u32, Stat)> {
    let links: HashSet<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let mut holders = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let mut descriptors = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let holds = descriptors.any(|fd| {
            fs::read_link(fd.path()).is_ok_and(|link| link.to_str().is_some_and(|text| links.contains(text)))
        });
        if let (true, Ok(stat)) = (holds, Stat::read(pid)) {
            holders.push((pid, stat));
        }
    }
    holders.sort_by_key(|(pid, _)| *pid);
    holders
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_stat_line_is_read_behind_its_name() {
        let line = "7 (a) b (c)) S 3 7 7 0 -1 4194304 10 20 0 0 250 50 100 25 20 0 4 0 1234 999 5 18446744073709551615";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.started), (3, 7, 1234));
        assert_eq!(stat.cpu, Cpu { user: 2.5, system: 0.5 });
        assert_eq!(stat.ended_children, Cpu { user: 1.0, system: 0.25 });
        assert_eq!(stat.resident_bytes, 5 * rustix::param::page_size() as u64);
        assert!(Stat::parse("7 (a) S 3").is_none());
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        #[track_caller]
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(parse_address(text), expected.map(|address| address.parse().unwrap()), "{text}");
        }
        if cfg!(target_endian = "little") {
            check("0100007F:1F90", Some("127.0.0.1:8080"));
            check("00000000000000000000000001000000:0016", Some("[::1]:22"));
            check("0000000000000000FFFF00000100007F:0016", Some("127.0.0.1:22"));
        }
        check("00000000:0000", Some("0.0.0.0:0"));
        check("0100:1F90", None);
        check("0100007F", None);
        check("é100007:1F90", None);
    }

    #[test]
    fn the_time_of_threads_is_used_while_it_is_all() {
        #[track_caller]
        fn check(user: f64, system: f64, run: f64, expected: (f64, f64)) {
            let found = precise(Cpu { user, system }, run);
            assert!((found.user - expected.0).abs() < 1e-9 && (found.system - expected.1).abs() < 1e-9, "{found:?}");
        }
        check(3.0, 1.0, 4.008, (3.006, 1.002));
        check(3.0, 1.0, 2.0, (3.0, 1.0));
        check(0.0, 0.0, 0.004, (0.004, 0.0));
    }

    #[test]
    fn no_part_of_a_time_shrinks() {
        let of = |user: f64, system: f64| Sample { cpu: Cpu { user, system }, ..Sample::default() };
        #[track_caller]
        fn check(found: Sample, user: f64, system: f64) {
            assert!((found.cpu.user - user).abs() < 1e-9 && (found.cpu.system - system).abs() < 1e-9, "{found:?}");
        }
        check(of(1.0, 2.5).since(&of(1.004, 2.0)), 0.0, 0.496);
        check(of(1.5, 1.99).since(&of(1.0, 2.0)), 0.49, 0.0);
        check(of(1.5, 2.25).since(&of(1.0, 2.0)), 0.5, 0.25);
    }

    #[test]
    fn orphans_are_found_by_their_process_group() {
        use std::os::unix::process::CommandExt as _;
        let script = "(sleep 600 &); exec sleep 600";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).process_group(0).spawn().unwrap();
        let orphans = loop {
            let orphans = Process::orphans_of(shell.id());
            // Until the subshell between them has ended.
            if let [orphan] = orphans[..]
                && Stat::read(orphan.pid()).is_ok_and(|stat| stat.parent != shell.id())
            {
                break orphans;
            }
            std::thread::yield_now();
        };
        assert_ne!(orphans[0].pid(), shell.id());
        let group = rustix::process::Pid::from_child(&shell);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn a_listener_is_found_by_its_address() {
        let this = Process::open(std::process::id()).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(Process::listening_on(tcp.local_addr().unwrap()), Some(this));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(Process::listening_on(udp.local_addr().unwrap()), Some(this));
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(Process::listening_on(([127, 0, 0, 1], port).into()), Some(this));
        let six = TcpListener::bind("[::]:0").unwrap();
        let port = six.local_addr().unwrap().port();
        assert_eq!(Process::listening_on(([127, 0, 0, 1], port).into()), Some(this));
        drop(tcp);
        assert_eq!(Process::listening_on("127.0.0.1:1".parse().unwrap()), None);
    }

    #[test]
    fn descendants_count_and_an_end_is_noticed() {
        // The shell waits for a child that works; both belong to the shell's account.
        let script = "while :; do :; done & wait";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let process = Process::open(shell.id()).unwrap();
        let first = process.sample().unwrap();
        let child = loop {
            if let Some(&child) = Threads::read(shell.id()).children.first() {
                break child;
            }
            std::thread::yield_now();
        };
        let used = loop {
            let used = process.sample().unwrap().since(&first);
            if used.cpu.total() > 0.02 {
                break used;
            }
            std::thread::yield_now();
        };
        assert!(used.resident_bytes > 0);
        let kill = |pid: u32| Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        assert!(kill(child).success());
        let _ = kill(shell.id());
        shell.wait().unwrap();
        assert!(process.sample().is_err());
    }
}
