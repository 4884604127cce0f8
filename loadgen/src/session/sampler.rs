//! The server's use while it is measured: its processes, or its control group.

use crate::cgroup::Cgroup;
use crate::load::Sampled;
use crate::process::{Process, Sample};

/// The source of the server's CPU time and memory.
pub(super) enum Sampler {
    Nobody,
    /// Each with what it had used when it was last seen: one of several servers may end before the run does.
    Processes(Vec<(Process, Sample)>),
    Cgroup(Cgroup),
}

impl Sampler {
    /// Finds them. The error says which cannot be looked at.
    pub(super) fn new(sampled: &Sampled) -> Result<Self, String> {
        match sampled {
            Sampled::Nobody => Ok(Self::Nobody),
            Sampled::Processes(pids) => {
                let processes = pids.iter().map(|pid| match Process::open(*pid) {
                    Ok(process) => Ok((process, Sample::default())),
                    Err(error) => Err(format!("the server's process {pid} cannot be read: {error}")),
                });
                processes.collect::<Result<_, _>>().map(Self::Processes)
            }
            Sampled::Cgroup(name) => Cgroup::open(name)
                .map(Self::Cgroup)
                .map_err(|error| format!("the server's control group cannot be read: {error}")),
        }
    }

    /// The use of all so far; nothing when all have ended.
    pub(super) fn sample(&mut self) -> Option<Sample> {
        match self {
            Self::Nobody => None,
            Self::Cgroup(group) => group.sample().ok(),
            Self::Processes(processes) => {
                let (mut total, mut alive) = (Sample::default(), false);
                for (process, last) in processes {
                    match process.sample() {
                        Ok(sample) => {
                            *last = sample;
                            alive = true;
                        }
                        // It holds no memory any more.
                        Err(_) => last.resident_bytes = 0,
                    }
                    total = total.plus(last);
                }
                alive.then_some(total)
            }
        }
    }

    /// The first process' number, and how many further ones there are.
    pub(super) fn pids(&self) -> (u32, u32) {
        match self {
            Self::Processes(processes) => {
                let first = processes.first().map_or(0, |(process, _)| process.pid());
                (first, (processes.len() as u32).saturating_sub(1))
            }
            Self::Nobody | Self::Cgroup(_) => (0, 0),
        }
    }
}
