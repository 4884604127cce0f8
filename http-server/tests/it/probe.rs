//! The inputs of Http11Probe, and what it expects of a server. `HTTP11PROBE_REPOSITORY` names a git repository of it: its cases are C#,
//! which is read as text here, so that no other compiler is needed. A case that this reading does not understand is counted.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::any;
use test_peers::skip;

use crate::support::{Client, PATIENCE, Server, options};

const SUITES: [&str; 3] = ["ComplianceSuite", "MalformedInputSuite", "SmugglingSuite"];

/// Cases whose answer is another one here, and why.
const KNOWN: [(&str, &str); 6] = [
    ("COMP-HOST-EMPTY-VALUE", "a target without an authority has an empty Host (RFC 9112 section 3.2)"),
    ("COMP-UNKNOWN-METHOD", "the handler of this test answers all methods"),
    ("MAL-NON-ASCII-URL", "curl sends such targets; handlers see them as they are"),
    ("SMUG-TE-DOUBLE-CHUNKED", "501 says that no other coding than one chunked is served"),
    ("SMUG-TE-LEADING-COMMA", "501 says that no other coding than one chunked is served"),
    ("MAL-POST-CL-HUGE-NO-BODY", "413 names the reason"),
];

/// How long something is waited for that should not come.
const WAIT: Duration = Duration::from_millis(200);

/// A case: what is sent, and the answers that are right.
struct Case {
    id: String,
    sent: Vec<u8>,
    expected: Expected,
}

#[derive(Debug, Default)]
struct Expected {
    text: String,
    statuses: Vec<u16>,
    any_success: bool,
    /// The connection may end without an answer, or stay open without one.
    end: bool,
    silence: bool,
    /// Any status but this one is right.
    never: Option<u16>,
}

impl Expected {
    /// From words like `400/505 or close`. The answer that is preferred counts where there are several; what must come besides does not.
    fn read(text: &str) -> Option<Self> {
        let preferred =
            [";", "(", " preferred"].iter().fold(text, |text, end| text.split(end).next().unwrap_or_default());
        let preferred = preferred.replace("+ close", "").replace("+close", "");
        let mut expected = Self { text: text.to_owned(), ..Self::default() };
        for word in preferred.split([' ', '/', ',', '+']).filter(|word| !word.is_empty()) {
            match word {
                "or" | "echo" | "pass-through" => {}
                "!101" | "non-101" => expected.never = Some(101),
                "close" => expected.end = true,
                "timeout" => expected.silence = true,
                "2xx" | "Range2xx" => expected.any_success = true,
                status => expected.statuses.push(status.parse().ok()?),
            }
        }
        Some(expected)
    }

    fn takes(&self, answer: &Outcome) -> bool {
        match answer {
            Outcome::Status(status) => {
                let is_other = self.never.is_some_and(|never| never != *status);
                is_other || self.statuses.contains(status) || self.any_success && (200..300).contains(status)
            }
            Outcome::Several => false,
            Outcome::End => self.end,
            Outcome::Silence => self.silence,
        }
    }
}

#[derive(Debug)]
enum Outcome {
    Status(u16),
    /// A request within the body of the first one was answered, too.
    Several,
    End,
    Silence,
}

/// The text between two marks.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let rest = &text[text.find(begin)? + begin.len()..];
    Some(&rest[..rest.find(end)?])
}

/// A C# string up to its quotation mark, and what follows it. The strings are sent as ASCII, in which any other character is `?`.
fn string(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text.chars());
    loop {
        match rest.next()? {
            '"' => return Some((value, rest.as_str())),
            '\\' => value.push(match rest.next()? {
                'r' => '\r',
                'n' => '\n',
                't' => '\t',
                '0' => '\0',
                same @ ('"' | '\\') => same,
                'x' | 'u' => {
                    let digits = rest.as_str().chars().take(4).take_while(char::is_ascii_hexdigit).count();
                    let code = u32::from_str_radix(&rest.as_str()[..digits], 16).ok()?;
                    rest.by_ref().take(digits).for_each(drop);
                    char::from_u32(code).filter(char::is_ascii).unwrap_or('?')
                }
                _ => return None,
            }),
            other if other.is_ascii() => value.push(other),
            _ => value.push('?'),
        }
    }
}

/// The values of a function's variables, by their names.
type Variables = HashMap<String, Vec<u8>>;

/// The bytes that an expression puts together: strings, arrays of bytes and variables, in the order in which they stand.
fn value(expression: &str, variables: &Variables, host: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), expression);
    while let Some(first) = rest.chars().next() {
        if let Some(text) = rest.strip_prefix('"') {
            let (text, behind) = string(text)?;
            bytes.extend(text.bytes());
            rest = behind;
        } else if let Some(text) = rest.strip_prefix("$\"") {
            let (mut text, behind) = string(text)?;
            text = text.replace("{ctx.HostHeader}", host);
            for (name, value) in variables {
                text = text.replace(&format!("{{{name}}}"), std::str::from_utf8(value).ok()?);
            }
            if text.contains('{') {
                return None;
            }
            bytes.extend(text.bytes());
            rest = behind;
        } else if let Some(digits) = rest.strip_prefix("0x") {
            bytes.push(u8::from_str_radix(digits.get(..2)?, 16).ok()?);
            rest = &digits[2..];
        } else if first.is_alphabetic() {
            let length = rest.find(|other: char| !other.is_alphanumeric()).unwrap_or(rest.len());
            bytes.extend(variables.get(&rest[..length]).into_iter().flatten());
            rest = &rest[length..];
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    Some(bytes)
}

/// The bytes that a function returns, which may have variables before.
fn payload(function: &str, host: &str) -> Option<Vec<u8>> {
    let code: Vec<&str> = function
        .lines()
        .map(|line| line.trim().split(" // ").next().unwrap_or_default())
        .filter(|line| !line.starts_with("//"))
        .collect();
    let code = code.join(" ");
    if code.contains("new string(") || code.contains("for (") || code.contains("StringBuilder") {
        return None;
    }
    let (mut variables, mut last) = (Variables::new(), Vec::new());
    // No string has a semicolon in front of a space.
    for statement in code.split("; ") {
        let (name, expression) = statement.split_once(" = ").unwrap_or(("", statement));
        last = value(expression, &variables, host)?;
        if expression.contains("return ") {
            break;
        }
        if expression.contains("GetByteCount") {
            last = last.len().to_string().into_bytes();
        }
        variables.insert(name.rsplit(' ').next()?.to_owned(), last.clone());
    }
    (!last.is_empty()).then_some(last)
}

/// The cases of a file; those that are not understood by their names.
fn cases(source: &str, host: &str) -> (Vec<Case>, Vec<String>) {
    let (mut cases, mut others) = (Vec::new(), Vec::new());
    for text in source.split("yield return new ").skip(1) {
        let id = between(text, "Id = \"", "\"").expect("a case has a name").to_owned();
        let read = || {
            let (_, function) = text.split_once("PayloadFactory = ")?;
            // Cases of several steps depend on what the first one has left.
            let is_alone = !function.contains("PayloadFactory = ");
            let ends = ["BehavioralAnalyzer = ", "Expected = ", "Validator = ", "Scored = "];
            let function = ends.iter().fold(function, |text, end| text.split(end).next().unwrap_or_default());
            let sent = payload(function, host).filter(|_| is_alone)?;
            let rest = text.split_once("Expected = ")?.1;
            let status = rest.split("StatusCodeRange.").nth(1).and_then(|status| status.split([',', '\n', ' ']).next());
            let status = status.map(|status| between(status, "(", ")").unwrap_or(status).to_owned());
            let words = between(rest, "Description = \"", "\"").map(str::to_owned).or(status)?;
            let mut expected = Expected::read(&words)?;
            expected.end |= rest.contains("AllowConnectionClose = true");
            Some(Case { id: id.clone(), sent, expected })
        };
        match read() {
            Some(case) => cases.push(case),
            None => others.push(id),
        }
    }
    (cases, others)
}

fn outcome(server: &Server, sent: &[u8], may_be_silent: bool) -> Outcome {
    let mut stream = Client::connect(server.addr).stream;
    stream.write_all(sent).unwrap();
    let mut answer = String::new();
    loop {
        // Behind the first answer may come one that nobody has asked for.
        let wait = if may_be_silent || !answer.is_empty() { WAIT } else { PATIENCE };
        stream.set_read_timeout(Some(wait)).unwrap();
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => answer.push_str(&String::from_utf8_lossy(&bytes[..count])),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && answer.is_empty() => return Outcome::Silence,
            _ => break,
        }
    }
    let mut statuses = answer.split("HTTP/1.1 ").skip(1).filter_map(|text| text.get(..3)?.parse().ok());
    match (statuses.next(), statuses.next()) {
        (Some(_), Some(_)) => Outcome::Several,
        (Some(status), None) => Outcome::Status(status),
        // HTTP/2, to its preface.
        (None, _) if !answer.is_empty() => Outcome::Silence,
        (None, _) => Outcome::End,
    }
}

#[test]
fn http11probe() {
    let Some(repository) = std::env::var_os("HTTP11PROBE_REPOSITORY") else {
        return println!("skipped: HTTP11PROBE_REPOSITORY names no git repository of Http11Probe");
    };
    let server = Server::try_serving(Router::new().fallback(any(|body: Bytes| async { body })), options()).unwrap();
    let host = server.addr.to_string();
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for suite in SUITES {
        let path = format!("HEAD:src/Http11Probe/TestCases/Suites/{suite}.cs");
        let shown = match Command::new("git").arg("-C").arg(&repository).args(["show", &path]).output() {
            Ok(shown) => shown,
            Err(error) => return skip(&format!("there is no git: {error}")),
        };
        assert!(shown.status.success(), "{path}: {}", String::from_utf8_lossy(&shown.stderr));
        let (cases, unread) = cases(&String::from_utf8(shown.stdout).unwrap(), &host);
        all.extend(cases);
        others.extend(unread);
    }
    assert!(all.len() > 100, "the cases have another form now: {} are read", all.len());
    let mut wrong = Vec::new();
    for Case { id, sent, expected } in &all {
        let outcome = outcome(&server, sent, expected.silence);
        let is_known = KNOWN.iter().any(|(known, _)| known == id);
        if expected.takes(&outcome) == is_known {
            wrong.push(format!("{id}: expected {}, {outcome:?}", expected.text));
        }
    }
    println!(
        "{} cases, of which {} are known to differ; {} not read: {others:?}",
        all.len(),
        KNOWN.len(),
        others.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
