//! One user's cookies (RFC 6265): what answers set, and what requests send back.
//!
//! All requests go to one site, so a domain decides only whether a cookie is kept. The list of public suffixes is not asked.

use std::time::Duration;

use crate::clock::{self, Nanos, nanos};

/// The most cookies of a user; the oldest makes room for another one.
const MOST: usize = 180;

/// The longest name and value together (RFC 6265, 6.1).
const LONGEST: usize = 4096;

/// The site that a scenario's requests go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its host, in lower case.
    host: String,
    is_secure: bool,
}

impl Site {
    /// The site of a host, with TLS or without it.
    #[must_use]
    pub fn new(host: &str, is_secure: bool) -> Self {
        Self { host: host.to_ascii_lowercase(), is_secure }
    }

    /// True if the host is a domain, or lies below it (RFC 6265, 5.1.3).
    fn is_of(&self, domain: &str) -> bool {
        let Some(below) = self.host.strip_suffix(domain) else { return false };
        let is_name = || self.host.parse::<std::net::IpAddr>().is_err();
        below.is_empty() || (below.ends_with('.') && is_name())
    }
}

/// The cookies of a user, those with the longest paths first, and of those the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
    /// How many were set so far: their age.
    count: u64,
    /// The path of the last request, to which its answer's cookies belong.
    path: Vec<u8>,
}

#[derive(Debug)]
struct Cookie {
    /// `name=value`, and where the value begins.
    pair: Vec<u8>,
    equals: usize,
    domain: String,
    path: Vec<u8>,
    expires: Option<Nanos>,
    is_secure: bool,
    created: u64,
}

impl Jar {
    /// Appends the `Cookie` of a request to this path, if there is one.
    #[inline]
    pub(super) fn append(&mut self, site: &Site, path: &[u8], now: Nanos, out: &mut Vec<u8>) {
        let end = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
        self.path.clear();
        self.path.extend_from_slice(&path[..end]);
        let is_sent = |cookie: &&Cookie| {
            cookie.expires.is_none_or(|expires| expires > now)
                && (site.is_secure || !cookie.is_secure)
                && matches(&self.path, &cookie.path)
        };
        let mut before: &[u8] = b"Cookie: ";
        for cookie in self.cookies.iter().filter(is_sent) {
            out.extend_from_slice(before);
            out.extend_from_slice(&cookie.pair);
            before = b"; ";
        }
        if before == b"; " {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Keeps the cookies that an answer sets. `head` has its status line, and no folded lines.
    pub(crate) fn keep(&mut self, site: &Site, head: &[u8], now: Nanos) {
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            if line[..colon].eq_ignore_ascii_case(b"set-cookie") {
                self.set(site, line[colon + 1..].trim_ascii(), now);
            }
        }
    }

    /// Follows one `Set-Cookie` (RFC 6265, 5.2 and 5.3).
    fn set(&mut self, site: &Site, field: &[u8], now: Nanos) {
        let mut parts = field.split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = memchr::memchr(b'=', pair) else { return };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if name.is_empty() || name.len() + value.len() > LONGEST {
            return;
        }
        let Attributes { expires, max_age, domain, path, is_secure } = Attributes::read(parts);
        let domain = domain.unwrap_or_else(|| site.host.clone());
        if !site.is_of(&domain) {
            return;
        }
        let path = path.unwrap_or_else(|| default_path(&self.path));
        // Max-Age decides before Expires.
        let lasts = max_age.or_else(|| expires.map(|time| time.saturating_sub(clock::unix_seconds())));
        let is_same = |old: &Cookie| old.pair[..old.equals] == *name && old.domain == domain && old.path == *path;
        let old = self.cookies.iter().position(is_same).map(|place| self.cookies.remove(place));
        if lasts.is_some_and(|seconds| seconds <= 0) {
            return;
        }
        if self.cookies.len() == MOST
            && let Some(oldest) = (0..MOST).min_by_key(|place| self.cookies[*place].created)
        {
            self.cookies.remove(oldest);
        }
        let expires = lasts.map(|seconds| now.saturating_add(nanos(Duration::from_secs(seconds as u64))));
        self.count += 1;
        let created = old.map_or(self.count, |old| old.created);
        let pair = [name, b"=", value].concat();
        let cookie = Cookie { pair, equals: name.len(), domain, path, expires, is_secure, created };
        let order = |cookie: &Cookie| (usize::MAX - cookie.path.len(), cookie.created);
        let place = self.cookies.partition_point(|before| order(before) < order(&cookie));
        self.cookies.insert(place, cookie);
    }
}

/// The attributes of a cookie that matter here.
#[derive(Debug, Default)]
struct Attributes {
    /// Seconds since 1970.
    expires: Option<i64>,
    /// Seconds from now.
    max_age: Option<i64>,
    domain: Option<String>,
    path: Option<Vec<u8>>,
    is_secure: bool,
}

impl Attributes {
    /// Reads the parts behind the pair; what is not understood is left out.
    fn read<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut found = Self::default();
        for part in parts {
            let equals = memchr::memchr(b'=', part).unwrap_or(part.len());
            let value = part.get(equals + 1..).unwrap_or_default().trim_ascii();
            match part[..equals].trim_ascii().to_ascii_lowercase().as_slice() {
                b"expires" => found.expires = date(value).or(found.expires),
                b"max-age" => found.max_age = seconds(value).or(found.max_age),
                b"domain" => {
                    let text = String::from_utf8_lossy(value.strip_prefix(b".").unwrap_or(value)).to_ascii_lowercase();
                    found.domain = Some(text).filter(|text| !text.is_empty());
                }
                b"path" => found.path = value.starts_with(b"/").then(|| value.to_vec()),
                b"secure" => found.is_secure = true,
                _ => {}
            }
        }
        found
    }
}

/// The seconds of a `Max-Age`; more than an `i64` holds are for ever.
fn seconds(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() < value.len() {
        return Some(0);
    }
    let add = |sum: i64, digit: &u8| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}

/// The folder of a request's path (RFC 6265, 5.1.4).
fn default_path(path: &[u8]) -> Vec<u8> {
    match memchr::memrchr(b'/', path) {
        Some(end) if end > 0 && path.starts_with(b"/") => path[..end].to_vec(),
        _ => b"/".to_vec(),
    }
}

/// True if a request's path is a cookie's, or lies below it.
fn matches(path: &[u8], cookie: &[u8]) -> bool {
    let Some(below) = path.strip_prefix(cookie) else { return false };
    below.is_empty() || cookie.ends_with(b"/") || below.starts_with(b"/")
}

/// The seconds since 1970 of a date in any of the forms that servers write (RFC 6265, 5.1.1).
fn date(text: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let is_delimiter = |byte: &u8| !(byte.is_ascii_alphanumeric() || *byte == b':' || *byte >= 0x7f);
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        let number = || leading_number(token);
        if time.is_none() && token.contains(&b':') {
            time = clock_time(token);
        } else if day.is_none() && matches!(number(), Some((_, 1..=2))) {
            day = number().map(|(day, _)| day);
        } else if month.is_none() && token.len() >= 3 && !token[0].is_ascii_digit() {
            let name = token[..3].to_ascii_lowercase();
            month = MONTHS.iter().position(|month| **month == name);
        } else if year.is_none()
            && let Some((found, digits @ (2 | 4))) = number()
        {
            year = Some(match (digits, found) {
                (2, 70..=99) => found + 1900,
                (2, _) => found + 2000,
                _ => found,
            });
        }
    }
    let (time, day, month, year) = (time?, day?, month?, year?);
    if !(1..=31).contains(&day) || year < 1601 {
        return None;
    }
    // Years that begin in March, so that a leap day is the last one.
    let (year, month) = if month < 2 { (year - 1, month as i64 + 10) } else { (year, month as i64 - 2) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + time)
}

/// The number that a token begins with, and how many digits it has.
fn leading_number(token: &[u8]) -> Option<(i64, usize)> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = std::str::from_utf8(&token[..digits]).ok()?;
    Some((text.parse().ok()?, digits))
}

/// The seconds of `HH:MM:SS`.
fn clock_time(token: &[u8]) -> Option<i64> {
    let mut parts = token.split(|byte| *byte == b':').map(|part| leading_number(part).map(|(number, _)| number));
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let is_time = hours < 24 && minutes < 60 && seconds < 60;
    is_time.then_some(hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// Checks the cookies that are sent to a path at a time, after answers to paths at time 0.
    #[track_caller]
    fn check(set: &[(&str, &str)], sent: (&str, Nanos, bool), expected: &str) {
        let (path, now, is_secure) = sent;
        let site = Site::new("Shop.Example.org", is_secure);
        let mut jar = Jar::default();
        for (path, cookie) in set {
            jar.append(&site, path.as_bytes(), 0, &mut Vec::new());
            jar.keep(&site, format!("HTTP/1.1 200 OK\r\nset-COOKIE: {cookie}\r\n\r\n").as_bytes(), 0);
        }
        let mut out = Vec::new();
        jar.append(&site, path.as_bytes(), now, &mut out);
        let expected = if expected.is_empty() { String::new() } else { format!("Cookie: {expected}\r\n") };
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{set:?}");
    }

    #[test]
    fn cookies_are_sent_back() {
        let root = ("/", 0, false);
        check(&[("/", "a=1")], root, "a=1");
        check(&[("/", " a = 1 ; HttpOnly; SameSite=Lax"), ("/", "b=x=y")], root, "a=1; b=x=y");
        check(&[("/", "a=1"), ("/", "b=2"), ("/", "a=3")], root, "a=3; b=2");
        check(&[("/", "no pair"), ("/", "=1"), ("/", "b=")], root, "b=");
        check(&[("/", &format!("a={}", "x".repeat(5000)))], root, "");
    }

    #[test]
    fn paths_decide() {
        check(&[("/a/b?c/d", "a=1")], ("/a/x", 0, false), "a=1");
        check(&[("/a/b", "a=1")], ("/", 0, false), "");
        check(&[("/a/b", "a=1")], ("/ab", 0, false), "");
        check(&[("/", "a=1; Path=/x/")], ("/x/y", 0, false), "a=1");
        check(&[("/", "a=1; Path=/x")], ("/x?y", 0, false), "a=1");
        check(&[("/", "a=1; path=x")], ("/", 0, false), "a=1");
        check(&[("/", "a=1"), ("/", "a=2; Path=/long")], ("/long", 0, false), "a=2; a=1");
    }

    #[test]
    fn domains_and_secure_decide() {
        let root = ("/", 0, false);
        check(&[("/", "a=1; Domain=.EXAMPLE.org"), ("/", "b=2; domain=shop.example.org")], root, "a=1; b=2");
        check(&[("/", "a=1; Domain=other.org")], root, "");
        check(&[("/", "a=1; Domain=op.example.org")], root, "");
        check(&[("/", "a=1; Domain=deep.shop.example.org")], root, "");
        check(&[("/", "a=1; Secure")], root, "");
        check(&[("/", "a=1; Secure")], ("/", 0, true), "a=1");
        assert!(!Site::new("127.0.0.1", false).is_of("0.0.1") && Site::new("127.0.0.1", false).is_of("127.0.0.1"));
    }

    #[test]
    fn cookies_expire_and_are_deleted() {
        check(&[("/", "a=1; Max-Age=5")], ("/", 5 * SECOND - 1, false), "a=1");
        check(&[("/", "a=1; Max-Age=5")], ("/", 5 * SECOND, false), "");
        check(&[("/", "a=1"), ("/", "a=; Max-Age=0")], ("/", 0, false), "");
        check(&[("/", "a=1"), ("/", "a=; Max-Age=-7")], ("/", 0, false), "");
        check(&[("/", "a=1"), ("/", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT")], ("/", 0, false), "");
        check(&[("/", "a=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT")], ("/", 9 * SECOND, false), "a=1");
        check(&[("/", "a=1; Max-Age=99999999999999999999")], ("/", 9 * SECOND, false), "a=1");
        let both = "a=1; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        check(&[("/", both)], ("/", SECOND, false), "a=1");
        check(&[("/", "a=1; Max-Age=soon; Expires=soon")], ("/", SECOND, false), "a=1");
    }

    #[test]
    fn the_oldest_makes_room() {
        let site = Site::new("a", false);
        let mut jar = Jar::default();
        for number in 0..=MOST {
            jar.set(&site, format!("c{number}=x").as_bytes(), 0);
        }
        assert_eq!(jar.cookies.len(), MOST);
        assert_eq!((&jar.cookies[0].pair[..], &jar.cookies[MOST - 1].pair[..]), (&b"c1=x"[..], &b"c180=x"[..]));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(path in ".*", cookies in proptest::collection::vec("([a=; ]|Path=/|Max-Age=|Expires=|Domain=|[0-9: -]|.)*", 0..5)) {
            let (site, mut jar) = (Site::new("a.b", false), Jar::default());
            jar.append(&site, path.as_bytes(), 0, &mut Vec::new());
            cookies.iter().for_each(|cookie| jar.set(&site, cookie.as_bytes(), 1));
            jar.append(&site, path.as_bytes(), u64::MAX, &mut Vec::new());
        }
    }

    #[test]
    fn dates_of_all_forms_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "6 nov 1994 8:49:37",
        ] {
            assert_eq!(date(text.as_bytes()), Some(784_111_777), "{text}");
        }
        assert_eq!(date(b"Tue, 29 Feb 2028 00:00:00 GMT"), Some(1_835_395_200));
        assert_eq!(date(b"Sat, 01 Jan 69 00:00:00 GMT"), Some(3_124_224_000));
        for text in ["", "soon", "06 Nov 1994", "06 Nov 1994 25:00:00", "32 Nov 1994 08:49:37", "06 Nov 1500 08:49:37"]
        {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }
}
