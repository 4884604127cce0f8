//! Which processors a thread, and what it starts, may use.

use std::fmt;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Deserialize;

/// Processors by number, from a list such as `0`, `0,2` or `1-3`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Cores {
    text: String,
    numbers: Vec<usize>,
}

impl TryFrom<String> for Cores {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let numbers = numbers(&text).ok_or_else(|| {
            format!("the processors are `{text}`, expected a list such as 0, 0,2 or 1-3, below {}", CpuSet::MAX_CPU)
        })?;
        Ok(Self { text, numbers })
    }
}

impl Cores {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }
}

/// As it was written.
impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn numbers(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= CpuSet::MAX_CPU {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Runs a function on some processors: its thread, and whatever threads and processes it starts, stay there.
///
/// # Errors
/// When the machine does not have them, or this process may not use them.
pub(crate) fn on<T>(cores: Option<&Cores>, function: impl FnOnce() -> T) -> io::Result<T> {
    let Some(cores) = cores else {
        return Ok(function());
    };
    let _before = Restore(sched_getaffinity(None)?);
    let mut set = CpuSet::new();
    for number in &cores.numbers {
        set.set(*number);
    }
    sched_setaffinity(None, &set)
        .map_err(|error| io::Error::other(format!("cannot use the processors {cores}: {error}")))?;
    Ok(function())
}

/// Gives the thread its processors back, also when the function panics.
struct Restore(CpuSet);

impl Drop for Restore {
    fn drop(&mut self) {
        // They were allowed a moment ago. If they no longer are, the kernel has chosen others already.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Option<&[usize]>) {
            assert_eq!(Cores::try_from(text.to_owned()).ok().map(|cores| cores.numbers).as_deref(), expected, "{text}");
        }
        check("0", Some(&[0]));
        check("0,2-4", Some(&[0, 2, 3, 4]));
        check("3-1", None);
        check("", None);
        check("-1", None);
        check("0-99999999", None);
    }

    #[test]
    fn a_function_stays_on_its_processor_and_the_thread_gets_its_own_back() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|number| before.is_set(*number)).unwrap();
        let cores = Cores::try_from(first.to_string()).unwrap();
        let count = on(Some(&cores), || sched_getaffinity(None).unwrap().count()).unwrap();
        assert_eq!(count, 1);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        let none = Cores::try_from("1023".to_owned()).unwrap();
        assert!(on(Some(&none), || ()).unwrap_err().to_string().contains("cannot use the processors 1023"));
    }
}
