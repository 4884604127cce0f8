//! Where and when a comparison was made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::child;

/// A machine, as far as it matters for speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's name and version.
    pub kernel: String,
    /// The processor's model.
    pub cpu: String,
    /// How many processors this process may use.
    pub processors: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The distribution.
    pub system: String,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let value = |text: &str, name: &str, separator: char| {
            let found = text.lines().find_map(|line| line.split_once(separator).filter(|(key, _)| key.trim() == name));
            found.map(|(_, value)| value.trim().trim_matches('"').to_owned())
        };
        let kibibytes = value(&read("/proc/meminfo"), "MemTotal", ':');
        let kibibytes = kibibytes.and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok());
        let cpus = read("/proc/cpuinfo");
        Self {
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            cpu: value(&cpus, "model name", ':').or_else(|| value(&cpus, "Model", ':')).unwrap_or_else(unknown),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kibibytes.unwrap_or(0) * 1024,
            system: value(&read("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_else(unknown),
        }
    }
}

/// The commit of the repository around a folder, with `+` behind it if there are changes; nothing where there is none.
#[must_use]
pub fn commit(folder: &Path) -> Option<String> {
    let git = |words: &[&str]| {
        let words: Vec<String> = ["git"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        child::output(&words, folder, &BTreeMap::new(), Duration::from_secs(10), &|| false).ok()
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+") })
}

/// The date and time now, in UTC, as `2026-11-21T14:05:09Z`.
#[must_use]
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs())
}

/// The date and time so many seconds after 1970 began.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in March, so that the
    // leap day is the last one; 400 years have 146,097 days.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        #[track_caller]
        fn check(seconds: u64, expected: &str) {
            assert_eq!(date(seconds), expected);
        }
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_798_761_599, "2026-12-31T23:59:59Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::this();
        assert!(machine.kernel.starts_with("Linux ") && machine.processors > 0 && machine.memory_bytes > 0);
    }
}
