//! Numbers, times and shares, as people write and read them.

use std::time::Duration;

/// Reads a time: `500us`, `2ms`, `1.5s`, `30` (seconds), `5m`, `1h`, `1m30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a time such as 500us, 2ms, 10s, 1m30s or 1h";
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let value: f64 = rest[..digits].parse().map_err(|_| EXPECTED)?;
        let letters = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let unit = match &rest[digits..letters] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" | "" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(EXPECTED.to_owned()),
        };
        seconds += value * unit;
        rest = &rest[letters..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| EXPECTED.to_owned())
}

/// A time as [`duration`] reads it, exact to the nanosecond.
pub(crate) fn duration_text(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    if nanos == 0 {
        return "0s".to_owned();
    }
    let (unit, name) = units.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}

/// Reads a count: `10000`, `10k`, `1M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let expected = || "expected a count from 1, such as 10000, 10k or 1M".to_owned();
    let number = scaled(text).ok_or_else(expected)?;
    if number < 1.0 || number.fract() != 0.0 || number > 1e15 {
        return Err(expected());
    }
    Ok(number as u64)
}

/// Reads a count that fits this machine's memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    count(text).map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Reads a rate: `10000`, `2.5k`.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = scaled(text.strip_suffix("/s").unwrap_or(text)).filter(|rate| *rate > 0.0 && *rate <= 1e12);
    rate.ok_or_else(|| "expected a number of requests per second above 0, such as 10000 or 2.5k".to_owned())
}

/// Reads a share of all, `0.1%` or `0.001`, as 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    };
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "expected a share such as 0.1% or 0.001".to_owned())
}

/// A number with `k`, `M` or `G` behind it.
fn scaled(text: &str) -> Option<f64> {
    let (number, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        'g' | 'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    number.replace('_', "").parse::<f64>().ok().map(|number| number * factor).filter(|number| number.is_finite())
}

/// A latency with three digits: `123 µs`, `2.31 ms`, `1.50 s`.
pub(crate) fn latency(latency: Duration) -> String {
    let nanos = latency.as_nanos() as f64;
    let (value, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        ..999_500.0 => (nanos / 1e3, "µs"),
        ..999_500_000.0 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A rate or count per second, with thousands set apart: `102,345`, `12.3`.
pub(crate) fn rate(rate: f64) -> String {
    if rate < 100.0 { three_digits(rate) } else { thousands(rate.round() as u64) }
}

/// A count with thousands set apart.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as percent: `0.1 %`, `87 %`.
pub(crate) fn share(share: f64) -> String {
    let percent = format!("{:.3}", share * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// A size in bytes: `12.3 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let (value, unit) = match bytes as f64 {
        value @ ..1024.0 => (value, "B"),
        value @ ..1_048_576.0 => (value / 1024.0, "KiB"),
        value @ ..1_073_741_824.0 => (value / 1_048_576.0, "MiB"),
        value => (value / 1_073_741_824.0, "GiB"),
    };
    if bytes < 1024 { format!("{bytes} B") } else { format!("{} {unit}", three_digits(value)) }
}

/// A number with three digits, or all of those before its point.
pub(crate) fn three_digits(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Option<Duration>) {
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
        check("500us", Some(Duration::from_micros(500)));
        check("2ms", Some(Duration::from_millis(2)));
        check("1.5s", Some(Duration::from_millis(1500)));
        check("30", Some(Duration::from_secs(30)));
        check("1m30s", Some(Duration::from_secs(90)));
        check("1h", Some(Duration::from_secs(3600)));
        check("", None);
        check("s", None);
        check("-1s", None);
        check("1x", None);
        check("1e400s", None);
        check("9999999999999999999999h", None);
    }

    #[test]
    fn counts_and_rates_are_read() {
        assert_eq!(count("10k"), Ok(10_000));
        assert_eq!(count("1_000"), Ok(1000));
        assert_eq!(count("2M"), Ok(2_000_000));
        for wrong in ["", "0", "-1", "1.5", "k", "1e300", "ten", "ü"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_rate("2.5k/s"), Ok(2500.0));
        assert!(parse_rate("0").is_err());
        assert_eq!(parse_share("0.5%"), Ok(0.005));
        assert!(parse_share("101%").is_err());
    }

    #[test]
    fn figures_keep_three_digits() {
        #[track_caller]
        fn check(nanos: u64, expected: &str) {
            assert_eq!(latency(Duration::from_nanos(nanos)), expected);
        }
        check(0, "0.00 ns");
        check(1_230, "1.23 µs");
        check(123_456, "123 µs");
        check(999_600, "1.00 ms");
        check(2_310_000, "2.31 ms");
        check(61_500_000_000, "61.5 s");
        assert_eq!(rate(1_234_567.8), "1,234,568");
        assert_eq!(rate(12.34), "12.3");
        assert_eq!(share(0.001), "0.1 %");
        assert_eq!(bytes(10), "10 B");
        assert_eq!(bytes(12_900_000), "12.3 MiB");
        assert_eq!(duration_text(Duration::from_millis(90_000)), "90s");
    }
}
