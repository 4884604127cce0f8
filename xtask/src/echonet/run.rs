//! Interleaved runs and what they show.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::space::{DEVICE, OTHER};
use super::subject::{Device, Role, Subject, Workshop, cpu_us};
use super::{Contest, Placement, SUBJECT_CORE, Scenario};
use crate::process::{children_cpu_seconds, run_quietly};

/// Iterations of the published benchmark in each run: ten rounds make the published ten thousand.
const ITERATIONS: u32 = 1000;

/// Seconds after which such a run ends at the latest.
const PATIENCE: &str = "10";

/// Above this share of one core the generator itself is the limit.
pub(super) const GENERATOR_BOUND: f64 = 0.9;

/// What one run showed.
#[derive(Clone)]
pub(super) struct Sample {
    pub(super) scenario: Scenario,
    pub(super) placement: Placement,
    pub(super) round: usize,
    /// Index of the subject.
    pub(super) subject: usize,
    pub(super) rate: f64,
    /// User and system time of the subject per request, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) lost: u64,
    pub(super) wrong: u64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// CPU time of the other side over elapsed time.
    pub(super) other_busy: f64,
}

impl Sample {
    /// Names of the fields of [`Sample::csv`].
    pub(super) const HEADER: &str =
        "scenario,placement,round,subject,requests_per_s,cpu_us,lost,wrong,p50_us,p99_us,other_side_busy";

    /// The raw values.
    pub(super) fn csv(&self, subjects: &[Subject]) -> String {
        let Self { round, rate, cpu_us, lost, wrong, p50_us, p99_us, other_busy, .. } = self;
        let (scenario, placement, name) = (self.scenario.name(), self.placement.name(), subjects[self.subject].name);
        let name = name.replace(',', "");
        format!(
            "{scenario},{placement},{round},{name},{rate:.0},{cpu_us:.4},{lost},{wrong},{p50_us},{p99_us},{other_busy:.3}"
        )
    }
}

/// Runs every subject that has the scenario's role once a round; the order turns round each time.
pub(super) fn interleaved(contest: &Contest<'_>, workshop: &Workshop, subjects: &[Subject]) -> Result<Vec<Sample>> {
    let Contest { rounds, scenario, placement, stop, .. } = *contest;
    let mut devices = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        let Some(words) = subject.command(scenario) else { continue };
        // A controller asks the floor, on the other core.
        let device = match scenario.role() {
            Role::Device => Device::start(subject.name, words, SUBJECT_CORE)?,
            Role::Controller => {
                Device::start("floor", &[workshop.floor.clone(), DEVICE.to_owned()], placement.other_core())?
            }
        };
        devices.push((index, device));
    }
    let mut samples = Vec::new();
    for round in 0..rounds {
        if round % 2 == 1 {
            devices.reverse();
        }
        for (index, device) in &devices {
            ensure!(!stop(), "interrupted");
            let sample = match scenario.role() {
                Role::Device => device_run(contest, workshop, device),
                Role::Controller if scenario == Scenario::Controller => controller_run(&subjects[*index], device),
                Role::Controller => tour(&subjects[*index], device),
            };
            let sample = match sample {
                Ok(sample) => sample,
                // Ours is why we are here; a peer that fails does not keep the others from being measured.
                Err(error) if !subjects[*index].name.starts_with("ours") => {
                    println!("{} in {}, round {}: {error:#}", subjects[*index].name, scenario.name(), round + 1);
                    continue;
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("{} in {}", subjects[*index].name, scenario.name()));
                }
            };
            samples.push(Sample { scenario, placement, round, subject: *index, ..sample });
        }
        if round % 2 == 1 {
            devices.reverse();
        }
    }
    Ok(samples)
}

/// The generator asks the subject.
fn device_run(contest: &Contest<'_>, workshop: &Workshop, device: &Device) -> Result<Sample> {
    let Contest { seconds, scenario, placement, .. } = *contest;
    let what = match scenario {
        Scenario::DeviceSequential => ["get", "1", &seconds.to_string()].map(str::to_owned),
        Scenario::DeviceWindow => ["get", "32", &seconds.to_string()].map(str::to_owned),
        Scenario::Published => ["profile", &ITERATIONS.to_string(), PATIENCE].map(str::to_owned),
        Scenario::Controller | Scenario::ControllerPublished => bail!("a controller is no device"),
    };
    let [kind, number, seconds] = what;
    let words = [workshop.generator.clone(), kind, OTHER.into(), OTHER.into(), DEVICE.into(), number, seconds];
    let before = device.cpu_us()?;
    let text = run_quietly(&mut device.space.other.pinned(placement.other_core(), &words))?;
    let figures = figures(text.lines().last().unwrap_or_default())?;
    let [requests, seconds, lost, wrong, generator_us, p50_us, p99_us] = figures[..] else {
        bail!("the generator prints seven figures")
    };
    let cpu_us = (device.cpu_us()? - before) / requests;
    Ok(Sample {
        rate: requests / seconds,
        cpu_us,
        lost: lost as u64,
        wrong: wrong as u64,
        p50_us,
        p99_us,
        other_busy: generator_us * requests / (seconds * 1e6),
        ..Sample::blank()
    })
}

/// The subject asks the floor.
fn controller_run(subject: &Subject, floor: &Device) -> Result<Sample> {
    let words = subject.command(Scenario::Controller).context("it is a controller")?;
    let (floor_before, before, start) = (floor.cpu_us()?, children_cpu_seconds()?, Instant::now());
    let mut command: Command = floor.space.other.pinned(SUBJECT_CORE, words);
    let text = run_quietly(&mut command)?;
    let elapsed_us = start.elapsed().as_secs_f64() * 1e6;
    let cpu = children_cpu_seconds()? - before;
    let figures = figures(text.lines().last().unwrap_or_default())?;
    let [requests, seconds, lost] = figures[..3] else { bail!("a controller prints three figures") };
    Ok(Sample {
        rate: requests / seconds,
        cpu_us: cpu * 1e6 / requests,
        lost: lost as u64,
        other_busy: (floor.cpu_us()? - floor_before) / elapsed_us,
        ..Sample::blank()
    })
}

/// The subject searches for the floor and asks for what the published benchmark asks for. Its start does not count.
fn tour(subject: &Subject, floor: &Device) -> Result<Sample> {
    let words = subject.command(Scenario::ControllerPublished).context("it is a controller")?;
    let mut command = floor.space.other.pinned(SUBJECT_CORE, words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start it")?;
    let result = (|| {
        let mut lines = BufReader::new(child.stdout.take().context("its output is piped")?).lines();
        // Libraries print more than is asked of them.
        while lines.next().context("it has found nothing")?? != "begin" {}
        let (floor_before, before, start) = (floor.cpu_us()?, cpu_us(child.id())?, Instant::now());
        let figures = lines.find_map(|line| figures(&line.ok()?).ok()).context("it was answered nothing")?;
        let elapsed_us = start.elapsed().as_secs_f64() * 1e6;
        let (cpu, floor_cpu) = (cpu_us(child.id())? - before, floor.cpu_us()? - floor_before);
        let [requests, seconds, lost] = figures[..3] else { bail!("a controller prints three figures") };
        Ok(Sample {
            rate: requests / seconds,
            cpu_us: cpu / requests,
            lost: lost as u64,
            other_busy: floor_cpu / elapsed_us,
            ..Sample::blank()
        })
    })();
    // It waits for the end of its input; if it failed, it has ended, or shall.
    let _ = child.kill();
    child.wait()?;
    result
}

impl Sample {
    fn blank() -> Self {
        Self {
            scenario: Scenario::Controller,
            placement: Placement::Apart,
            round: 0,
            subject: 0,
            rate: 0.0,
            cpu_us: 0.0,
            lost: 0,
            wrong: 0,
            p50_us: 0.0,
            p99_us: 0.0,
            other_busy: 0.0,
        }
    }
}

fn figures(text: &str) -> Result<Vec<f64>> {
    let figures: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    let figures = figures.with_context(|| format!("no figures: {text}"))?;
    ensure!(figures.len() >= 3 && figures[0] > 0.0, "nothing was answered: {text}");
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_numbers() {
        assert_eq!(figures("10 0.5 1\n").unwrap(), [10.0, 0.5, 1.0]);
        assert!(figures("0 0.5 1").is_err());
        assert!(figures("not found").is_err());
    }
}
