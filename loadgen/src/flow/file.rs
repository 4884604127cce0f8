//! The file of a scenario as TOML has it. Values keep their place in the text, so that a fault can name its line.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::feeder::{End, Order};
use super::json_path::Pick;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// True if each user keeps the cookies that answers set, and sends them back.
    #[serde(default)]
    pub(super) cookies: bool,
    /// Objectives of the whole run.
    #[serde(default)]
    pub(super) slo: Vec<Spanned<String>>,
    /// Random numbers by name, from the least to the most.
    #[serde(default)]
    pub(super) random: BTreeMap<Spanned<String>, Spanned<Vec<u64>>>,
    #[serde(default)]
    pub(super) feeder: BTreeMap<Spanned<String>, FeederFile>,
    #[serde(default)]
    pub(super) stage: Vec<Spanned<StageFile>>,
    pub(super) flow: Vec<Spanned<FlowFile>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeederFile {
    pub(super) file: Spanned<String>,
    #[serde(default)]
    pub(super) order: Order,
    #[serde(default)]
    pub(super) end: End,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageFile {
    pub(super) duration: Spanned<String>,
    /// The level at its end: users, or iterations per second.
    pub(super) users: Option<Spanned<u32>>,
    pub(super) rate: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowFile {
    pub(super) name: Spanned<String>,
    pub(super) weight: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) slo: Vec<Spanned<String>>,
    pub(super) step: Vec<Spanned<StepFile>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepFile {
    pub(super) name: Spanned<String>,
    pub(super) method: Option<Spanned<String>>,
    pub(super) path: Spanned<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Spanned<String>>,
    pub(super) body: Option<Spanned<String>>,
    pub(super) json: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) take: BTreeMap<Spanned<String>, Spanned<PartFile>>,
    #[serde(default)]
    pub(super) check: Vec<Spanned<CheckFile>>,
    /// A time, or the least and the most.
    pub(super) think: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) slo: Vec<Spanned<String>>,
}

/// A part of an answer; the body if nothing is named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartFile {
    pub(super) json: Option<Spanned<String>>,
    pub(super) pick: Option<Pick>,
    pub(super) header: Option<String>,
    pub(super) cookie: Option<String>,
    pub(super) regex: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckFile {
    pub(super) name: Option<String>,
    /// One, or several.
    pub(super) status: Option<Spanned<Value>>,
    pub(super) json: Option<Spanned<String>>,
    pub(super) pick: Option<Pick>,
    pub(super) header: Option<String>,
    pub(super) cookie: Option<String>,
    pub(super) regex: Option<Spanned<String>>,
    pub(super) is: Option<Spanned<String>>,
    pub(super) contains: Option<Spanned<String>>,
}

impl CheckFile {
    /// The part that is checked, if it is not the status.
    pub(super) fn part(&self) -> PartFile {
        let Self { json, pick, header, cookie, regex, .. } = self;
        PartFile {
            json: json.clone(),
            pick: *pick,
            header: header.clone(),
            cookie: cookie.clone(),
            regex: regex.clone(),
        }
    }
}
