//! The use of a control group so far: all processes of a container or a unit, also those that have ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process::Sample;
use crate::record::Cpu;

/// Where control groups are, by default.
const ROOT: &str = "/sys/fs/cgroup";

/// A control group, of version 2 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    cpu: PathBuf,
    memory: Option<PathBuf>,
}

impl Cgroup {
    /// The group of that folder, or of that name below `/sys/fs/cgroup`.
    ///
    /// # Errors
    /// When there is none that accounts CPU time.
    pub fn open(name: &Path) -> io::Result<Self> {
        Self::below(Path::new(ROOT), name)
    }

    fn below(root: &Path, name: &Path) -> io::Result<Self> {
        let cpu = ["", "cpuacct", "cpu,cpuacct", "unified"].map(|hierarchy| root.join(hierarchy).join(name));
        // A root group of version 2 has no folder of its own.
        let accounts = |folder: &PathBuf| folder.join("cpu.stat").exists() || folder.join("cpuacct.usage").exists();
        let cpu = cpu.into_iter().find(accounts).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("{} is no control group that accounts CPU time", name.display()),
            )
        })?;
        let memory = [cpu.clone(), root.join("memory").join(name)].into_iter();
        let memory = memory.flat_map(|folder| MEMORY.map(|file| folder.join(file))).find(|file| file.exists());
        let group = Self { cpu, memory };
        group.sample()?;
        Ok(group)
    }

    /// Its use so far. Context switches are not known.
    ///
    /// # Errors
    /// When it has been removed.
    pub fn sample(&self) -> io::Result<Sample> {
        let read = |name: &str| fs::read_to_string(self.cpu.join(name));
        let cpu = match read("cpuacct.usage") {
            Ok(nanos) => of_version_1(&nanos, &read("cpuacct.stat").unwrap_or_default()),
            Err(_) => of_version_2(&read("cpu.stat")?),
        };
        let cpu = cpu.ok_or_else(|| io::Error::other(format!("{} does not say its CPU time", self.cpu.display())))?;
        let memory = self.memory.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let resident_bytes = memory.and_then(|text| text.trim().parse().ok()).unwrap_or_default();
        Ok(Sample { cpu, resident_bytes, ..Sample::default() })
    }
}

/// Memory in use, of version 2 and of version 1.
const MEMORY: [&str; 2] = ["memory.current", "memory.usage_in_bytes"];

/// `cpu.stat`: microseconds by name.
fn of_version_2(text: &str) -> Option<Cpu> {
    let micros = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.trim().parse::<f64>().ok()
    };
    Some(Cpu { user: micros("user_usec")? / 1e6, system: micros("system_usec")? / 1e6 })
}

/// `cpuacct.usage`: nanoseconds; `cpuacct.stat`: their parts, in ticks that are coarser.
fn of_version_1(usage: &str, stat: &str) -> Option<Cpu> {
    let total = usage.trim().parse::<f64>().ok()? / 1e9;
    let ticks =
        |name: &str| -> Option<f64> { stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()) };
    let (user, system) = (ticks("user ").unwrap_or(0.0), ticks("system ").unwrap_or(0.0));
    let user = if user + system > 0.0 { total * user / (user + system) } else { total };
    Some(Cpu { user, system: total - user })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of files with these contents.
    fn group(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("loadgen-cgroup-{name}-{}", std::process::id()));
        for (path, content) in files {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        root
    }

    #[track_caller]
    fn check(name: &str, files: &[(&str, &str)], expected: Option<(f64, f64, u64)>) {
        let root = group(name, files);
        let found = Cgroup::below(&root, Path::new("a/b")).and_then(|group| group.sample());
        let found = found.ok().map(|sample| (sample.cpu.user, sample.cpu.system, sample.resident_bytes));
        let _ = fs::remove_dir_all(root);
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn groups_of_both_versions_are_read() {
        let stat = "usage_usec 3500000\nuser_usec 2500000\nsystem_usec 1000000\n";
        check("v2", &[("a/b/cpu.stat", stat), ("a/b/memory.current", "4096\n")], Some((2.5, 1.0, 4096)));
        check(
            "hybrid",
            &[("unified/a/b/cpu.stat", stat), ("memory/a/b/memory.usage_in_bytes", "7")],
            Some((2.5, 1.0, 7)),
        );
        let (usage, parts) = (("cpuacct/a/b/cpuacct.usage", "4000000000\n"), "user 30\nsystem 10\n");
        check("v1", &[usage, ("cpuacct/a/b/cpuacct.stat", parts)], Some((3.0, 1.0, 0)));
        check("coarse", &[usage], Some((4.0, 0.0, 0)));
        check("none", &[("a/b/memory.current", "1")], None);
        check("garbage", &[("a/b/cpu.stat", "nr_periods 0\n")], None);
    }

    /// Ends what it holds, and removes the group.
    struct Group {
        folder: PathBuf,
        child: std::process::Child,
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            // The kernel may take a moment to notice.
            for _ in 0..1000 {
                if fs::remove_dir(&self.folder).is_ok() {
                    break;
                }
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn cpu_use_of_a_real_cgroup_is_measured() {
        let name = format!("loadgen-test-{}", std::process::id());
        let folders = ["", "cpuacct", "unified"].map(|hierarchy| Path::new(ROOT).join(hierarchy).join(&name));
        let accounts = |folder: &&PathBuf| {
            let is_made = fs::create_dir(folder).is_ok();
            let accounts = is_made && ["cpu.stat", "cpuacct.usage"].iter().any(|file| folder.join(file).exists());
            if is_made && !accounts {
                let _ = fs::remove_dir(folder);
            }
            accounts
        };
        let Some(folder) = folders.iter().find(accounts) else {
            return println!("skipped: no control group can be made here");
        };
        let script = "while :; do :; done";
        let child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let held = Group { folder: folder.clone(), child };
        fs::write(folder.join("cgroup.procs"), held.child.id().to_string()).unwrap();
        let group = Cgroup::open(Path::new(&name)).unwrap();
        let first = group.sample().unwrap();
        let used = loop {
            let used = group.sample().unwrap().since(&first).cpu.total();
            if used > 0.02 {
                break used;
            }
            std::thread::yield_now();
        };
        let process = crate::process::Process::open(held.child.id()).unwrap().sample().unwrap();
        assert!(used <= process.cpu.total() + 0.01, "the group used {used} s, its only process {process:?}");
        drop(held);
        assert!(group.sample().is_err(), "it has been removed");
    }
}
