//! Values as `redis-cli --no-raw` prints them.

use std::fmt::Write as _;

use crate::support::resp::Value;

/// The lines of a reply.
pub(crate) fn render(value: &Value) -> Vec<String> {
    let mut out = String::new();
    write(value, 0, &mut out);
    out.lines().map(str::to_owned).collect()
}

/// Appends a value whose further lines begin with `indent` spaces.
fn write(value: &Value, indent: usize, out: &mut String) {
    let scalar = match value {
        Value::Status(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Error(text) => format!("(error) {}", String::from_utf8_lossy(text)),
        Value::Int(number) => format!("(integer) {number}"),
        Value::Bulk(text) => quoted(text),
        Value::Verbatim(_, text) => String::from_utf8_lossy(text).into_owned(),
        Value::NullBulk | Value::NullArray | Value::Null => "(nil)".into(),
        Value::Double(text) => format!("(double) {text}"),
        Value::Bool(on) => format!("({on})"),
        Value::BigNumber(digits) => format!("(big number) {digits}"),
        Value::Array(values) => return write_all(values, ')', "(empty array)", indent, out),
        Value::Push(values) => return write_all(values, ')', "(empty push)", indent, out),
        Value::Set(values) => return write_all(values, '~', "(empty set)", indent, out),
        Value::Map(pairs) | Value::Attribute(pairs) => return write_map(pairs, indent, out),
    };
    *out += &scalar;
    *out += "\n";
}

fn write_all(values: &[Value], mark: char, empty: &str, indent: usize, out: &mut String) {
    if values.is_empty() {
        *out += empty;
        *out += "\n";
    }
    let width = digits(values.len());
    for (index, value) in values.iter().enumerate() {
        number(index, width, mark, indent, out);
        write(value, indent + width + 2, out);
    }
}

fn write_map(pairs: &[(Value, Value)], indent: usize, out: &mut String) {
    if pairs.is_empty() {
        *out += "(empty hash)\n";
    }
    let width = digits(pairs.len());
    for (index, (key, value)) in pairs.iter().enumerate() {
        number(index, width, '#', indent, out);
        write(key, indent + width + 2, out);
        // A scalar stands behind the key's last line, anything else below it.
        out.pop();
        let below = matches!(value, Value::Array(v) | Value::Push(v) | Value::Set(v) if !v.is_empty())
            || matches!(value, Value::Map(v) if !v.is_empty());
        let indent = indent + width + 2;
        *out += &if below { format!(" =>\n{}", " ".repeat(indent)) } else { " => ".to_owned() };
        write(value, indent, out);
    }
}

/// The first element stands behind the number of the one that it is inside of.
fn number(index: usize, width: usize, mark: char, indent: usize, out: &mut String) {
    if index > 0 {
        *out += &" ".repeat(indent);
    }
    write!(out, "{:width$}{mark} ", index + 1).expect("a String takes any write");
}

fn digits(count: usize) -> usize {
    count.to_string().len()
}

/// Text between quotes, with redis-cli's escapes.
pub(crate) fn quoted(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'\\' | b'"' => out.extend(['\\', char::from(byte)]),
            b'\n' => out += "\\n",
            b'\r' => out += "\\r",
            b'\t' => out += "\\t",
            0x07 => out += "\\a",
            0x08 => out += "\\b",
            b' '..=b'~' => out.push(char::from(byte)),
            _ => write!(out, "\\x{byte:02x}").expect("a String takes any write"),
        }
    }
    out + "\""
}

#[test]
fn rendered_as_redis_cli_does() {
    let check = |bytes: &str, expected: &str| {
        let (value, _) = crate::support::resp::parse(bytes.as_bytes()).unwrap().unwrap();
        assert_eq!(render(&value).join("\n"), expected);
    };
    check("*2\r\n*2\r\n$1\r\na\r\n:1\r\n*0\r\n", "1) 1) \"a\"\n   2) (integer) 1\n2) (empty array)");
    check("%1\r\n+k\r\n~2\r\n#t\r\n,1.5\r\n", "1# k =>\n   1~ (true)\n   2~ (double) 1.5");
    check("$4\r\na\"\n\u{1}\r\n", "\"a\\\"\\n\\x01\"");
    check("-ERR no\r\n", "(error) ERR no");
    check("_\r\n", "(nil)");
}
