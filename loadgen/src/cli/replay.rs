//! The options of requests that were recorded.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::load_args::LOAD;
use super::{Invalid, LoadArgs};
use crate::load::{Length, Load};
use crate::pace::{Arrivals, Pace, Rate, Recorded};
use crate::workload::Recording;

/// Which file is sent again, and when.
#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    /// Send the requests of a file, in its order: what `redis-cli MONITOR` printed, or an access log (common or combined
    /// format). Without -d and -n, each once
    #[arg(long, value_name = "FILE", help_heading = LOAD)]
    pub replay: Option<PathBuf>,

    /// Open loop: send them at the times that were recorded, so many times as fast: 1, 10, 0.5
    #[arg(long, value_name = "FACTOR", requires = "replay", conflicts_with = "rate", value_parser = factor, help_heading = LOAD)]
    pub speed: Option<f64>,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').unwrap_or(text).parse().ok();
    let factor = factor.filter(|factor: &f64| (1e-6..=1e6).contains(factor));
    factor.ok_or_else(|| "expected a factor such as 1, 10 or 0.5".to_owned())
}

impl ReplayArgs {
    /// The file, if one is to be sent again.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, Invalid> {
        let Some(path) = &self.replay else { return Ok(None) };
        let bytes = fs::read(path);
        bytes.map(Some).map_err(|error| self.invalid(format_args!("a file that can be read ({error})")))
    }

    /// The load of a recording: its length and its times, where the options say so.
    pub(super) fn load<R>(&self, args: &LoadArgs, load: Load, recording: &Recording<R>) -> Result<Load, Invalid> {
        if recording.order.is_empty() {
            let lines = recording.left_out;
            return Err(self.invalid(format_args!("a file with requests: none of its {lines} lines is one")));
        }
        let mut load = load;
        if args.duration.is_none() && args.requests.is_none() {
            load.length = Length::Requests(recording.order.len() as u64);
            load.warm_up = args.warm_up.unwrap_or(Duration::ZERO);
        }
        if let Some(speed) = self.speed {
            let recorded = Recorded::new(&recording.times, speed);
            load.pace = Pace::Open { rate: Rate::Fixed(recorded.rate()), arrivals: Arrivals::Constant };
            load.recorded = Some(Arc::new(recorded));
        }
        Ok(load)
    }

    /// The recording in words: `replay of a.log, 1234 requests (3 lines left out)`.
    pub(super) fn describe<R>(&self, recording: &Recording<R>) -> String {
        let file = self.replay.as_deref().unwrap_or_else(|| "".as_ref()).display();
        let (requests, left_out) = (recording.order.len(), recording.left_out);
        let left_out = if left_out > 0 {
            format!(" ({left_out} line{} left out)", if left_out == 1 { "" } else { "s" })
        } else {
            String::new()
        };
        format!("replay of {file}, {requests} requests{left_out}")
    }

    /// These settings by name.
    pub(super) fn settings(&self) -> [(&'static str, Value); 2] {
        [("replay", json!(self.replay)), ("speed", json!(self.speed))]
    }

    fn invalid(&self, expected: std::fmt::Arguments<'_>) -> Invalid {
        let file = self.replay.as_deref().unwrap_or_else(|| "".as_ref());
        Invalid::new("--replay", file.display(), expected)
    }
}
