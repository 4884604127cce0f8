//! What a run showed, and how the generators say it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What one run showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Calls per second; messages, where they stream.
    pub(super) rate: f64,
    /// User and system time of the server per call, or per message, in microseconds.
    pub(super) cpu_us: f64,
    /// Of calls; of whole streams, where they stream; not a number where the generator does not say.
    pub(super) p99_ms: f64,
    /// The server's resident memory at its highest during the run.
    pub(super) peak_mib: f64,
    /// CPU time of the generator over elapsed time, in cores.
    pub(super) generator: f64,
}

impl Sample {
    pub(super) const HEADER: &'static str = "per_s,server_cpu_us,p99_ms,peak_rss_mib,generator_cores";

    pub(super) fn csv(&self) -> String {
        let Self { rate, cpu_us, p99_ms, peak_mib, generator } = self;
        format!("{rate:.1},{cpu_us:.4},{p99_ms:.4},{peak_mib:.1},{generator:.2}")
    }
}

/// What a generator says of its run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Said {
    /// Calls that succeeded, or their messages.
    pub(super) counted: f64,
    pub(super) per_second: f64,
    pub(super) p99_ms: f64,
}

/// h2load's summary. It has no percentiles; with its log of every call it would cost a third more.
pub(super) fn of_h2load(text: &str) -> Result<Said> {
    ensure!(text.contains(" 0 failed, 0 errored, 0 timeout"), "there are failures: {text}");
    let word = |line: &str, place: usize| {
        let line = text.lines().find(|text| text.starts_with(line));
        line.and_then(|line| line.split_whitespace().nth(place)).with_context(|| format!("h2load shows this: {text}"))
    };
    let (counted, per_second) = (word("requests: ", 1)?.parse()?, word("finished in ", 3)?.parse()?);
    let with_success = word("status codes: ", 2)?.parse::<f64>()?;
    ensure!(with_success == counted, "answers without success: {text}");
    Ok(Said { counted, per_second, p99_ms: f64::NAN })
}

/// ghz in JSON.
pub(super) fn of_ghz(text: &str) -> Result<Said> {
    let said: Value = serde_json::from_str(text)?;
    let (count, good) = (said["count"].as_f64(), said["statusCodeDistribution"]["OK"].as_f64());
    ensure!(count == good, "there are failures: {}", said["statusCodeDistribution"]);
    let latencies = said["latencyDistribution"].as_array().context("ghz shows no latencies")?;
    let p99 = latencies.iter().find(|latency| latency["percentage"] == 99);
    let p99 = p99.and_then(|latency| latency["latency"].as_f64()).context("ghz shows no 99th percentile")?;
    let per_second = said["rps"].as_f64().context("ghz shows no rate")?;
    Ok(Said { counted: count.context("ghz shows no count")?, per_second, p99_ms: p99 / 1e6 })
}

/// Our own generator in JSON; what it sees as one call holds so many messages.
pub(super) fn of_loadgen(text: &str, messages: u64) -> Result<Said> {
    let said: Value = serde_json::from_str(text)?;
    let summary = &said["summary"];
    ensure!(summary["failed"] == 0, "there are failures: {}", said["failures"]);
    let figure = |name: &str| summary["all"][name].as_f64().with_context(|| format!("loadgen shows no {name}"));
    let messages = messages as f64;
    let (counted, per_second) = (figure("answers")? * messages, figure("per_second")? * messages);
    Ok(Said { counted, per_second, p99_ms: figure("p99")? * 1e3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_understood() {
        let h2load = "finished in 2.00s, 5000.50 req/s, 1MB/s\n\
                      requests: 100 total, 100 started, 100 done, 100 succeeded, 0 failed, 0 errored, 0 timeout\n\
                      status codes: 100 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        let understood = of_h2load(h2load).unwrap();
        assert_eq!((understood.counted, understood.per_second), (100.0, 5000.5));
        assert!(of_h2load(&h2load.replace("0 errored", "1 errored")).is_err());
        assert!(of_h2load(&h2load.replace("100 2xx", "99 2xx")).is_err());

        let said = Said { counted: 100.0, per_second: 5000.5, p99_ms: 99.0 };
        let ghz = r#"{"count":100,"rps":5000.5,"statusCodeDistribution":{"OK":100},
                      "latencyDistribution":[{"percentage":95,"latency":1},{"percentage":99,"latency":99000000}]}"#;
        assert_eq!(of_ghz(ghz).unwrap(), said);
        assert!(of_ghz(&ghz.replace(r#""OK":100"#, r#""OK":99,"Unavailable":1"#)).is_err());

        let ours = r#"{"failures":[],"summary":{"failed":0,"all":{"answers":100,"per_second":5000.5,"p99":0.099}}}"#;
        assert_eq!(of_loadgen(ours, 1).unwrap(), said);
        assert_eq!(of_loadgen(ours, 1000).unwrap().counted, 100_000.0);
        assert!(of_loadgen(&ours.replace(r#""failed":0"#, r#""failed":1"#), 1).is_err());
    }
}
