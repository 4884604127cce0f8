//! The use of the machine's processors: a comparison that others disturbed must say so.

use std::fs;

use super::validity::DISTURBED;
use crate::process::Process;

/// CPU time in seconds since the machine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Of all processors, used or not.
    all: f64,
    /// Used by any program, or by the kernel.
    busy: f64,
    /// Taken by the hypervisor for other machines.
    stolen: f64,
    /// Used by this program and its servers.
    ours: f64,
}

/// More than this share of the processors' time, used by others, is told.
const OTHERS: f64 = 0.1;

/// More than this share of the processors' time, taken by the hypervisor, is told.
const STOLEN: f64 = 0.02;

impl Usage {
    /// Until now; the server's process group is ours, too. An unreadable figure counts as nothing.
    pub(crate) fn now(server: u32) -> Self {
        let usage = Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default();
        let this = Process::open(std::process::id()).into_iter();
        let samples = this.chain(Process::orphans_of(server)).filter_map(|process| process.sample().ok());
        Self { ours: samples.map(|sample| sample.cpu.total()).sum(), ..usage }
    }

    /// The first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line.split_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
        let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks[..] else {
            return None;
        };
        let second = rustix::param::clock_ticks_per_second() as f64;
        let busy = user + nice + system + irq + softirq;
        let all = busy + idle + waiting + stolen;
        Some(Self { all: all / second, busy: busy / second, stolen: stolen / second, ours: 0.0 })
    }

    /// The disturbances of a run that began at `earlier`. The texts have no figures, so that reports can count them.
    pub(crate) fn disturbances_since(&self, earlier: &Self) -> Vec<String> {
        let all = self.all - earlier.all;
        let others = (self.busy - earlier.busy) - (self.ours - earlier.ours);
        let stolen = self.stolen - earlier.stolen;
        let mut found = Vec::new();
        if all > 0.0 && others / all > OTHERS {
            found.push(format!("{DISTURBED}other programs used more than {:.0} % of the processors", OTHERS * 100.0));
        }
        if all > 0.0 && stolen / all > STOLEN {
            found.push(format!("{DISTURBED}the hypervisor took more than {:.0} % of the processors", STOLEN * 100.0));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_line_is_read() {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let usage = Usage::parse("cpu  100 200 300 400 50 60 40 50 7 7\ncpu0 1 2 3\n").unwrap();
        assert_eq!(usage, Usage { all: 1200.0 / ticks, busy: 700.0 / ticks, stolen: 50.0 / ticks, ours: 0.0 });
        assert!(Usage::parse("cpu 1 2").is_none() && Usage::parse("").is_none());
        let now = Usage::now(std::process::id());
        assert!(now.all > now.busy && now.busy > 0.0 && now.ours > 0.0, "{now:?}");
    }

    #[test]
    fn disturbances_are_told() {
        #[track_caller]
        fn check(busy: f64, stolen: f64, ours: f64, expected: &[&str]) {
            let earlier = Usage { all: 1000.0, busy: 500.0, stolen: 50.0, ours: 5.0 };
            let now = Usage { all: 1010.0, busy: 500.0 + busy, stolen: 50.0 + stolen, ours: 5.0 + ours };
            let found = now.disturbances_since(&earlier);
            assert!(
                found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.contains(b)),
                "{found:?}"
            );
        }
        check(8.0, 0.1, 7.5, &[]);
        check(8.0, 0.1, 6.5, &["other programs used more than 10 %"]);
        check(8.0, 0.3, 7.9, &["hypervisor took more than 2 %"]);
        let same = Usage::default();
        assert!(same.disturbances_since(&same).is_empty());
    }
}
