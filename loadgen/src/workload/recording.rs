//! Requests that were recorded: the commands of a Redis server (MONITOR), or the access log of an HTTP server.

use crate::clock::Nanos;

/// The recording, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording<R> {
    /// The requests that are different.
    pub requests: Vec<R>,
    /// Which of them came one after the other.
    pub order: Vec<u32>,
    /// When each came, from the first one; as many as there are in `order`.
    pub times: Vec<Nanos>,
    /// Lines that hold no request, or one that cannot be sent again.
    pub left_out: u64,
}

/// A command of Redis.
pub type Words = Vec<Vec<u8>>;

/// A request of HTTP: method and path.
pub type Line = (String, String);

/// Commands whose meaning is their connection's: which one it was is not kept.
const OF_A_CONNECTION: &[&str] = &[
    "AUTH",
    "HELLO",
    "SELECT",
    "CLIENT",
    "RESET",
    "QUIT",
    "MONITOR",
    "READONLY",
    "READWRITE",
    "ASKING",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "PSYNC",
    "REPLCONF",
];

/// Methods whose requests have no body, which an access log does not have.
const WITHOUT_BODY: &[&str] = &["GET", "HEAD", "OPTIONS", "DELETE"];

/// Reads what `redis-cli MONITOR` printed: `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`. Commands of other databases, of
/// scripts (which are there themselves), and those about a connection are left out.
#[must_use]
pub fn monitored(text: &[u8], database: u32) -> Recording<Words> {
    let mut found = Found::default();
    for line in text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)) {
        if line.is_empty() || line == b"OK" {
            continue;
        }
        found.add(monitor_line(line, database));
    }
    found.recording()
}

fn monitor_line(line: &[u8], database: u32) -> Option<(f64, Words)> {
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let time = std::str::from_utf8(&line[..blank]).ok()?.parse().ok().filter(|time: &f64| time.is_finite())?;
    let rest = line[blank + 1..].strip_prefix(b"[")?;
    let end = rest.windows(2).position(|two| two == b"] ")?;
    let (from, command) = (std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 2..]);
    let (number, client) = from.split_once(' ')?;
    if number.parse() != Ok(database) || client == "lua" {
        return None;
    }
    let words = quoted(command)?;
    let name = String::from_utf8_lossy(words.first()?).to_ascii_uppercase();
    (!OF_A_CONNECTION.contains(&name.as_str())).then_some((time, words))
}

/// The words of `"SET" "a\x00b"`.
fn quoted(mut text: &[u8]) -> Option<Words> {
    let mut words = Vec::new();
    loop {
        let mut word = Vec::new();
        text = text.strip_prefix(b"\"")?;
        loop {
            let (first, rest) = text.split_first()?;
            text = rest;
            match first {
                b'"' => break,
                b'\\' => {
                    let (escaped, rest) = text.split_first()?;
                    text = rest;
                    word.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'a' => 7,
                        b'b' => 8,
                        b'x' => {
                            let digits = std::str::from_utf8(text.get(..2)?).ok()?;
                            text = &text[2..];
                            u8::from_str_radix(digits, 16).ok()?
                        }
                        other => *other,
                    });
                }
                other => word.push(*other),
            }
        }
        words.push(word);
        if text.is_empty() {
            return Some(words);
        }
        text = text.strip_prefix(b" ")?;
    }
}

/// Reads an access log in the common or the combined format: `host - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326`.
/// Requests that have a body are left out, because the log does not have it.
#[must_use]
pub fn logged(text: &[u8]) -> Recording<Line> {
    let mut found = Found::default();
    for line in String::from_utf8_lossy(text).lines().filter(|line| !line.trim().is_empty()) {
        found.add(log_line(line));
    }
    found.recording()
}

fn log_line(line: &str) -> Option<(f64, Line)> {
    let (_, rest) = line.split_once('[')?;
    let (time, rest) = rest.split_once(']')?;
    let (_, rest) = rest.split_once('"')?;
    let (request, _) = rest.split_once('"')?;
    let mut words = request.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let is_plain = path.starts_with('/') && path.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if !WITHOUT_BODY.contains(&method) || !is_plain || !words.next()?.starts_with("HTTP/") {
        return None;
    }
    Some((seconds(time)?, (method.to_owned(), path.to_owned())))
}

/// Seconds of `10/Oct/2000:13:55:36 -0700`, from some day on.
fn seconds(time: &str) -> Option<f64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, zone) = time.split_once(' ')?;
    let parts: Vec<&str> = date.split(['/', ':']).collect();
    let [day, month, year, hour, minute, second] = parts[..] else {
        return None;
    };
    let number =
        |digits: &str, most: i64| -> Option<i64> { digits.parse().ok().filter(|number| (0..=most).contains(number)) };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let (day, year) = (number(day, 31)?, number(year, 9999)?);
    let (hour, minute, second) = (number(hour, 23)?, number(minute, 59)?, number(second, 60)?);
    let (sign, zone) = zone.split_at_checked(1)?;
    let zone: i64 = zone.parse().ok().filter(|zone| (0..=1400).contains(zone))?;
    let zone = (zone / 100 * 60 + zone % 100) * if sign == "-" { -60 } else { 60 };
    // Days of the Gregorian calendar, counted from a March, so that leap days come last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second - zone) as f64)
}

/// A recording in the making.
struct Found<R> {
    requests: std::collections::HashMap<R, u32>,
    order: Vec<u32>,
    seconds: Vec<f64>,
    left_out: u64,
}

impl<R> Default for Found<R> {
    fn default() -> Self {
        Self { requests: std::collections::HashMap::new(), order: Vec::new(), seconds: Vec::new(), left_out: 0 }
    }
}

impl<R: Eq + std::hash::Hash> Found<R> {
    fn add(&mut self, request: Option<(f64, R)>) {
        let Some((second, request)) = request else {
            self.left_out += 1;
            return;
        };
        let next = self.requests.len() as u32;
        self.order.push(*self.requests.entry(request).or_insert(next));
        self.seconds.push(second);
    }

    fn recording(self) -> Recording<R> {
        let mut requests: Vec<(R, u32)> = self.requests.into_iter().collect();
        requests.sort_by_key(|(_, number)| *number);
        Recording {
            requests: requests.into_iter().map(|(request, _)| request).collect(),
            order: self.order,
            times: times(&self.seconds),
            left_out: self.left_out,
        }
    }
}

/// Times from the first one. Lines are written when requests end: one that is earlier than that before it came with it. Those
/// of the same second, where nothing finer is known, are spread over it.
fn times(seconds: &[f64]) -> Vec<Nanos> {
    let first = seconds.first().copied().unwrap_or_default();
    let are_whole = seconds.iter().all(|second| second.fract() == 0.0);
    let mut latest = 0.0_f64;
    let ordered: Vec<f64> = seconds
        .iter()
        .map(|second| {
            latest = latest.max(second - first);
            latest
        })
        .collect();
    let mut times = Vec::with_capacity(ordered.len());
    for same in ordered.chunk_by(|one, next| one == next) {
        let step = if are_whole { 1.0 / same.len() as f64 } else { 0.0 };
        times.extend(same.iter().enumerate().map(|(place, second)| ((second + place as f64 * step) * 1e9) as Nanos));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitor_output_is_parsed() {
        let text = b"OK\r\n\
            10.5 [0 127.0.0.1:1] \"set\" \"a\" \"x y\"\n\
            10.75 [0 unix:/run/x] \"GET\" \"a\\\"\\\\\\x00\\n\"\n\
            11.0 [3 127.0.0.1:1] \"GET\" \"other\"\n\
            11.0 [0 lua] \"GET\" \"inner\"\n\
            11.0 [0 127.0.0.1:1] \"select\" \"3\"\n\
            11.5 [0 [::1]:9] \"set\" \"a\" \"x y\"\n\
            garbage\n\
            11.5 [0 127.0.0.1:1] \"GET\n";
        let found = monitored(text, 0);
        let words = |words: &[&[u8]]| -> Words { words.iter().map(|word| word.to_vec()).collect() };
        assert_eq!(found.requests, [words(&[b"set", b"a", b"x y"]), words(&[b"GET", b"a\"\\\0\n"])]);
        assert_eq!((&found.order[..], &found.times[..]), (&[0, 1, 0][..], &[0, 250_000_000, 1_000_000_000][..]));
        assert_eq!(found.left_out, 5);
        assert_eq!(monitored(text, 3).order.len(), 1);
        assert_eq!(monitored(b"", 0), Recording::default());
    }

    #[test]
    fn access_logs_are_read() {
        let line =
            |time: &str, request: &str| format!("::1 - me [{time}] \"{request}\" 200 5 \"-\" \"agent \\\"x\\\"\"\n");
        let text = [
            line("28/Feb/2024:23:59:59 +0000", "GET /a?b=c HTTP/1.1"),
            line("29/Feb/2024:01:00:00 +0100", "HEAD /b HTTP/2.0"),
            line("28/Feb/2024:23:59:58 +0000", "GET /a?b=c HTTP/1.1"),
            line("29/Feb/2024:00:00:02 +0000", "GET /a?b=c HTTP/1.1"),
            line("01/Mar/2024:00:00:00 +0000", "POST /form HTTP/1.1"),
            line("01/Mar/2024:00:00:00 +0000", "\\x16\\x03"),
            "no log\n".to_owned(),
            line("30/Xyz/2024:00:00:00 +0000", "GET / HTTP/1.1"),
        ];
        let found = logged(text.concat().as_bytes());
        let request = |method: &str, path: &str| (method.to_owned(), path.to_owned());
        assert_eq!(found.requests, [request("GET", "/a?b=c"), request("HEAD", "/b")]);
        let expected = [0, 1_000_000_000, 1_500_000_000, 3_000_000_000];
        assert_eq!((&found.order[..], &found.times[..], found.left_out), (&[0, 1, 0, 0][..], &expected[..], 4));
    }

    #[test]
    fn days_are_counted() {
        #[track_caller]
        fn check(from: &str, to: &str, expected: Option<f64>) {
            let found = seconds(from).zip(seconds(to)).map(|(from, to)| to - from);
            assert_eq!(found, expected, "{from} {to}");
        }
        check("31/Dec/2023:23:59:59 +0000", "01/Jan/2024:00:00:00 +0000", Some(1.0));
        check("28/Feb/2024:00:00:00 +0000", "01/Mar/2024:00:00:00 +0000", Some(172_800.0));
        check("28/Feb/2023:00:00:00 +0000", "01/Mar/2023:00:00:00 +0000", Some(86_400.0));
        check("01/Jan/2024:00:00:00 -0030", "01/Jan/2024:00:00:00 +0000", Some(-1800.0));
        check("10/Oct/2000:13:55:36 -0700", "10/Oct/2000:13:55:36", None);
        check("10/Oct/2000:13:55:36 -0700", "32/Oct/2000:13:55:36 -0700", None);
    }
}
