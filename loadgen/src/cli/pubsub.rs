//! `loadgen pubsub`.

use clap::Args;
use serde_json::json;

use super::load_args::LOAD;
use super::login::{self, LoginArgs};
use super::subjects::ValueSize;
use super::{Drive, Invalid, LoadArgs, Transport};
use crate::codec::{PubSub, PubSubSettings};
use crate::load::Load;
use crate::number;
use crate::record::Outcome;
use crate::scenario::{Scenario, Workload};
use crate::session;
use crate::watch::{Progress, Watch};
use crate::workload::Values;

/// The port of Redis.
const PORT: u16 = 6379;

/// Publishes on a Redis server and subscribes to it, in one run: how long messages take to each subscriber, from the time
/// at which they were due.
#[derive(Args, Clone, Debug)]
pub struct PubSubArgs {
    #[command(flatten)]
    load: LoadArgs,

    /// Connections that subscribe, besides the -c that publish
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::size, help_heading = LOAD)]
    subscribers: usize,

    /// How many channels there are, one of which is drawn for every message. Subscribers share them out: every channel has at
    /// least one, and if there are more subscribers than channels, each has one channel
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::size, help_heading = LOAD)]
    channels: usize,

    /// The text before a channel's number. No other program should publish or subscribe there
    #[arg(long, value_name = "NAME", default_value = "loadgen", help_heading = LOAD)]
    channel: String,

    /// Sharded pub/sub (SPUBLISH), of one node's own slots
    #[arg(long, help_heading = LOAD)]
    sharded: bool,

    /// How long messages are, in bytes, behind the 28 that tell when each was due: 100, or 10..1000 for all lengths between
    #[arg(long, value_name = "SIZE", default_value = "100", help_heading = LOAD)]
    value_size: ValueSize,

    #[command(flatten)]
    login: LoginArgs,
}

impl Drive for PubSubArgs {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        if let Some(also) = self.load.also.first() {
            let expected = "none with pubsub: what is published on one server does not reach subscribers of another";
            return Err(Invalid::new("--also", also, expected));
        }
        let tls = login::is_tls(&self.load.target)?;
        let load = self.load.load(Transport { port: PORT, tls, ..Transport::default() })?;
        let connections = load.connections.saturating_add(self.subscribers);
        let load = Load { connections, ..load };
        let settings = PubSubSettings {
            subscribers: self.subscribers,
            channels: self.channels,
            channel: self.channel.clone(),
            sharded: self.sharded,
            values: Values::new(self.value_size.0, self.load.seed).map_err(Invalid::because)?,
            login: self.login.login(&self.load.target)?,
            verify: self.load.verify,
        };
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let command = if self.sharded { "SPUBLISH" } else { "PUBLISH" };
        let (channels, subscribers) = (plural(self.channels, "channel"), plural(self.subscribers, "subscriber"));
        let what = format!("{command} on {channels}, {subscribers}");
        let named = [
            ("subscribers", json!(self.subscribers)),
            ("channels", json!(self.channels)),
            ("channel", json!(self.channel)),
            ("sharded", json!(self.sharded)),
            ("value_size", self.value_size.json()),
            ("resp3", json!(self.login.resp3)),
        ];
        Ok(self.load.scenario(load, "pubsub", &what, named, settings))
    }
}

impl Workload for PubSubSettings {
    fn run(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        session::run(&PubSub::new(self), load, watch)
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::assert_scenario;

    #[test]
    fn command_lines_become_scenarios() {
        #[track_caller]
        fn check(words: &[&str], expected: Result<&str, &str>) {
            assert_scenario(&[&["pubsub", "127.0.0.1", "-t1", "-c2"], words].concat(), expected);
        }
        let of = |connections| format!("pubsub 127.0.0.1:6379, {connections} connections, 1 thread, closed loop, 10s");
        check(&[], Ok(&format!("{}: PUBLISH on 1 channel, 1 subscriber", of(3))));
        check(
            &["--sharded", "--channels", "3", "--subscribers", "5"],
            Ok(&format!("{}: SPUBLISH on 3 channels, 5 subscribers", of(7))),
        );
        check(
            &["--also", "127.0.0.2"],
            Err("--also is `127.0.0.2`, expected none with pubsub: what is published on one server does not reach \
                 subscribers of another"),
        );
        check(&["--value-size", "9..1"], Err("value sizes from 9 to 1: expected the smaller one first"));
    }
}
