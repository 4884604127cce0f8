//! The options about keys and values.

use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};

use super::Invalid;
use crate::number;
use crate::workload::{Distribution, Keys, Sizes, Subjects, Values};

/// Heading of these options.
const KEYS: &str = "Keys and values";

/// Which keys `{key}` stands for, and which values `{value}`.
#[derive(Args, Clone, Debug)]
pub struct SubjectArgs {
    /// How many different keys there are
    #[arg(short = 'r', long, value_name = "N", default_value = "1000000", value_parser = number::count, help_heading = KEYS)]
    pub keys: u64,

    /// How keys are chosen: uniform, sequential, zipf or zipf:EXPONENT (zipf is zipf:0.99), or hot:KEYS/REQUESTS:
    /// hot:10%/90% sends 90 % of the requests to 10 % of the keys
    #[arg(long, value_name = "CHOICE", default_value = "uniform", help_heading = KEYS)]
    pub key_choice: KeyChoice,

    /// How long values are, in bytes: 100, or 10..1000 for all lengths between
    #[arg(long, value_name = "SIZE", default_value = "100", help_heading = KEYS)]
    pub value_size: ValueSize,
}

/// `--key-choice`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyChoice(pub Distribution);

/// `--value-size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSize(pub Sizes);

impl FromStr for KeyChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let distribution = match (name, rest) {
            ("uniform", None) => Distribution::Uniform,
            ("sequential", None) => Distribution::Sequential,
            ("zipf", None) => Distribution::Zipf { exponent: 0.99 },
            ("zipf", Some(exponent)) => {
                let exponent =
                    exponent.parse().map_err(|_| format!("the exponent is `{exponent}`, expected a number"))?;
                Distribution::Zipf { exponent }
            }
            ("hot", Some(shares)) => {
                let (keys, requests) = shares.split_once('/').ok_or("expected two shares, as in hot:10%/90%")?;
                Distribution::HotSet { keys: share(keys)?, requests: share(requests)? }
            }
            _ => return Err("expected uniform, sequential, zipf, zipf:0.99, or hot:10%/90%".to_owned()),
        };
        Ok(Self(distribution))
    }
}

/// `10%` or `0.1`.
fn share(text: &str) -> Result<f64, String> {
    let (digits, whole) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let number: f64 = digits.parse().map_err(|_| format!("the share is `{text}`, expected one such as 10% or 0.1"))?;
    Ok(number / whole)
}

impl FromStr for ValueSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |text: &str| text.parse().map_err(|_| "expected bytes such as 100, or 10..1000".to_owned());
        Ok(Self(match text.split_once("..") {
            Some((least, most)) => Sizes::Uniform(size(least)?, size(most)?),
            None => Sizes::Fixed(size(text)?),
        }))
    }
}

impl ValueSize {
    /// As a setting.
    pub(super) fn json(self) -> Value {
        match self.0 {
            Sizes::Fixed(size) => json!(size),
            Sizes::Uniform(least, most) => json!(format!("{least}..{most}")),
        }
    }
}

impl SubjectArgs {
    /// Keys and values of a run.
    ///
    /// # Errors
    /// When a number is out of its range.
    pub fn subjects(&self, seed: u64) -> Result<Subjects, Invalid> {
        let keys = Keys::new(self.keys, self.key_choice.0).map_err(Invalid::because)?;
        let values = Values::new(self.value_size.0, seed).map_err(Invalid::because)?;
        Ok(Subjects { keys, values })
    }

    /// These settings by name.
    #[must_use]
    pub fn settings(&self) -> [(&'static str, Value); 3] {
        let choice = match self.key_choice.0 {
            Distribution::Sequential => "sequential".to_owned(),
            Distribution::Uniform => "uniform".to_owned(),
            Distribution::Zipf { exponent } => format!("zipf:{exponent}"),
            Distribution::HotSet { keys, requests } => format!("hot:{keys}/{requests}"),
        };
        [("keys", json!(self.keys)), ("key_choice", json!(choice)), ("value_size", self.value_size.json())]
    }
}
