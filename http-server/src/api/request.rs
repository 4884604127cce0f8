//! From an HTTP request to commands: a path, a JSON array, or Redis' own protocol.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::redis::wire::{length, line};

/// Most commands in one request.
const MAX_COMMANDS: usize = 10_000;

/// Most arguments of one command, as in Redis.
const MAX_ARGS: usize = 1024 * 1024;

/// A command and its arguments, of which there is at least the first.
pub(crate) type Command = Vec<Vec<u8>>;

/// The commands that a caller wants run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// One command.
    One(Command),
    /// Several, answered one by one. Others' commands may come between them.
    Pipeline(Vec<Command>),
    /// Several, run as one.
    Transaction(Vec<Command>),
}

impl Batch {
    pub(crate) fn commands(&self) -> &[Command] {
        match self {
            Self::One(command) => std::slice::from_ref(command),
            Self::Pipeline(commands) | Self::Transaction(commands) => commands,
        }
    }
}

/// A request that means no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn malformed<T>(what: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed(what.into()))
}

/// The command of a path below `/v1/`, as it came, with a body as its last argument if there is one.
pub(crate) fn of_path(path: &str, body: &[u8]) -> Result<Command, Malformed> {
    let mut command: Command = path.split('/').map(|part| percent_decode_str(part).collect()).collect();
    if command[0].is_empty() {
        return malformed("a command is expected: /v1/COMMAND/ARGUMENT/…");
    }
    if !body.is_empty() {
        command.push(body.to_vec());
    }
    Ok(command)
}

/// The commands of a body: JSON, or Redis' protocol if it says so or looks so.
pub(crate) fn of_body(body: &[u8], is_resp: bool, is_transaction: bool) -> Result<Batch, Malformed> {
    let (mut commands, is_one) = if is_resp { resp(body)? } else { json(body)? };
    if commands.len() > MAX_COMMANDS {
        return malformed(format!("more than {MAX_COMMANDS} commands"));
    }
    if commands.is_empty() || commands.iter().any(Vec::is_empty) {
        return malformed("a command is empty");
    }
    if is_transaction {
        return Ok(Batch::Transaction(commands));
    }
    match commands.pop() {
        Some(command) if is_one => Ok(Batch::One(command)),
        Some(command) => {
            commands.push(command);
            Ok(Batch::Pipeline(commands))
        }
        None => malformed("a command is empty"),
    }
}

/// Commands as `["GET","key"]` or `[["GET","key"],…]`, and whether it was the former.
fn json(body: &[u8]) -> Result<(Vec<Command>, bool), Malformed> {
    let items: Vec<&RawValue> = serde_json::from_slice(body)
        .map_err(|error| Malformed(format!("a JSON array is expected, such as [\"GET\",\"key\"]: {error}")))?;
    if items.first().is_some_and(|first| first.get().starts_with('[')) {
        let commands = items.iter().enumerate().map(|(at, item)| {
            let args = serde_json::from_str::<Vec<&RawValue>>(item.get())
                .map_err(|_| Malformed(format!("command {at} is no array")))?;
            json_command(&args)
        });
        return Ok((commands.collect::<Result<_, _>>()?, false));
    }
    Ok((vec![json_command(&items)?], true))
}

fn json_command(args: &[&RawValue]) -> Result<Command, Malformed> {
    args.iter().enumerate().map(|(at, arg)| json_arg(arg.get()).ok_or_else(|| wrong_arg(at))).collect()
}

fn wrong_arg(at: usize) -> Malformed {
    Malformed(format!("argument {at} is neither a string, nor a number, nor {{\"base64\":\"…\"}}"))
}

/// Bytes that JSON strings cannot say.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Binary {
    base64: String,
}

/// A number's text is passed on as it is written, so that no digit of it is lost.
fn json_arg(text: &str) -> Option<Vec<u8>> {
    match text.as_bytes().first()? {
        b'"' => serde_json::from_str::<String>(text).ok().map(String::into_bytes),
        b'0'..=b'9' | b'-' => Some(text.as_bytes().to_vec()),
        b'{' => BASE64_STANDARD.decode(serde_json::from_str::<Binary>(text).ok()?.base64).ok(),
        _ => None,
    }
}

/// Commands in Redis' protocol, and whether there was one only.
fn resp(mut body: &[u8]) -> Result<(Vec<Command>, bool), Malformed> {
    let mut commands = Vec::new();
    while !body.is_empty() && commands.len() <= MAX_COMMANDS {
        let Some(command) = resp_command(&mut body) else {
            return malformed("Redis' protocol is expected: arrays of strings, such as *1\\r\\n$4\\r\\nPING\\r\\n");
        };
        commands.push(command);
    }
    let is_one = commands.len() == 1;
    Ok((commands, is_one))
}

fn resp_command(body: &mut &[u8]) -> Option<Command> {
    let args = header(body, b'*').filter(|args| *args <= MAX_ARGS)?;
    (0..args).map(|_| resp_string(body)).collect()
}

fn resp_string(body: &mut &[u8]) -> Option<Vec<u8>> {
    let len = header(body, b'$')?;
    let (text, rest) = body.split_at_checked(len)?;
    *body = rest.strip_prefix(b"\r\n")?;
    Some(text.to_vec())
}

/// The count in a line of this kind.
fn header(body: &mut &[u8], kind: u8) -> Option<usize> {
    let line = line(body).ok().flatten()?;
    *body = &body[line.len() + 2..];
    let (first, digits) = line.split_first()?;
    let count = length(digits, u32::MAX.into()).ok().flatten()?;
    (*first == kind).then_some(count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(commands: &[Command]) -> String {
        let commands: Vec<_> = commands
            .iter()
            .map(|command| command.iter().map(|arg| arg.escape_ascii().to_string()).collect::<Vec<_>>().join(" "))
            .collect();
        commands.join("; ")
    }

    #[test]
    fn paths() {
        fn check(path: &str, body: &str, expected: Option<&str>) {
            let command = of_path(path, body.as_bytes()).ok();
            assert_eq!(command.map(|command| shown(&[command])).as_deref(), expected, "{path}");
        }
        check("GET/foo", "", Some("GET foo"));
        check("get/a%2Fb", "", Some("get a/b"));
        check("GET/%00%ff%0D%0a", "", Some("GET \\x00\\xff\\r\\n"));
        check("GET/a+b", "", Some("GET a+b"));
        check("GET/%zz", "", Some("GET %zz"));
        check("SET/k/", "", Some("SET k "));
        check("SET/k", "a value", Some("SET k a value"));
        check("PING", "", Some("PING"));
        check("", "", None);
        check("/GET", "", None);
    }

    #[test]
    fn bodies() {
        fn check(body: &str, expected: Option<&str>) {
            let batch = of_body(body.as_bytes(), body.starts_with('*'), false);
            let batch = batch.ok().map(|batch| match &batch {
                Batch::One(_) => shown(batch.commands()),
                Batch::Pipeline(_) => format!("pipeline: {}", shown(batch.commands())),
                Batch::Transaction(_) => "no".to_owned(),
            });
            assert_eq!(batch.as_deref(), expected, "{body}");
        }
        check(r#"["GET","k"]"#, Some("GET k"));
        check(r#" [ "SET" , "k\u0000" , 1.50 ] "#, Some("SET k\\x00 1.50"));
        check(
            r#"["SET","k",123456789012345678901234567890,-1e400]"#,
            Some("SET k 123456789012345678901234567890 -1e400"),
        );
        check(r#"["SET","k",{"base64":"/wA="}]"#, Some("SET k \\xff\\x00"));
        check(r#"[["GET","a"],["GET","b"]]"#, Some("pipeline: GET a; GET b"));
        check(r#"[["GET","a"]]"#, Some("pipeline: GET a"));
        check("[]", None);
        check("[[]]", None);
        check(r#"[["GET","a"],[]]"#, None);
        check(r#"[["GET","a"],"GET"]"#, None);
        check(r#"["GET",["EVAL"]]"#, None);
        check(r#"[[["GET","a"]]]"#, None);
        check(r#"["GET",null]"#, None);
        check(r#"["GET",true]"#, None);
        check(r#"["GET",{"base64":"!"}]"#, None);
        check(r#"["GET",{"base64":"aa==","x":1}]"#, None);
        check(r#"{"GET":"a"}"#, None);
        check(r#"["GET","a"] ["DEL","a"]"#, None);
        check("", None);
        check("GET a", None);
        check("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", Some("GET k"));
        check("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", Some("pipeline: PING; PING"));
        check("*1\r\n$4\r\nPING\r\nPING\r\n", None);
        check("*1\r\n*1\r\n$4\r\nPING\r\n", None);
        check("*1\r\n$5\r\nPING\r\n", None);
        check("*1\r\n$4\r\nPINGxx", None);
        check("*2\r\n$4\r\nPING\r\n", None);
        check("*0\r\n", None);
        check("*-1\r\n", None);
        check("*4294967295\r\n", None);
        check("*1\r\n$-1\r\n", None);
        check("*1\r\n:1\r\n", None);
    }

    #[test]
    fn too_many() {
        let body = format!("[{}]", vec![r#"["PING"]"#; MAX_COMMANDS + 1].join(","));
        assert!(of_body(body.as_bytes(), false, false).is_err());
        let body = "*1\r\n$4\r\nPING\r\n".repeat(MAX_COMMANDS + 1);
        assert!(of_body(body.as_bytes(), true, true).is_err());
    }
}
