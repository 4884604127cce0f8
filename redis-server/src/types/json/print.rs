//! Packed values to text.

use std::convert::Infallible;
use std::fmt::Write as _;

use super::node::{Kind, Node, Number};

/// The whitespace between the parts of a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style<'a> {
    /// In front of what stands in a container, once for each container.
    pub indent: &'a [u8],
    /// Behind each part of a container.
    pub newline: &'a [u8],
    /// Behind the colon of a member.
    pub space: &'a [u8],
}

impl Style<'_> {
    /// Nothing.
    pub const PLAIN: Self = Style { indent: b"", newline: b"", space: b"" };

    /// Writes the line break and the indentation of a part at nesting depth `level`.
    fn line<E>(&self, level: usize, out: &mut (impl FnMut(&[u8]) -> Result<(), E> + ?Sized)) -> Result<(), E> {
        if !self.newline.is_empty() {
            out(self.newline)?;
        }
        if !self.indent.is_empty() {
            (0..level).try_for_each(|_| out(self.indent))?;
        }
        Ok(())
    }

    /// A container of so many parts, which stands in `level` others; `each` puts one part after the other.
    ///
    /// # Errors
    /// The first of `out` or `each`, which ends the text.
    pub fn container<E, F: FnMut(&[u8]) -> Result<(), E> + ?Sized>(
        &self,
        [open, close]: [u8; 2],
        level: usize,
        out: &mut F,
        parts: usize,
        mut each: impl FnMut(&mut F) -> Result<(), E>,
    ) -> Result<(), E> {
        out(&[open])?;
        for part in 0..parts {
            if part > 0 {
                out(b",")?;
            }
            self.line(level + 1, out)?;
            each(out)?;
        }
        if parts > 0 {
            self.line(level, out)?;
        }
        out(&[close])
    }

    /// The name of a member.
    ///
    /// # Errors
    /// The first of `out`.
    pub fn name<E>(&self, name: &[u8], out: &mut (impl FnMut(&[u8]) -> Result<(), E> + ?Sized)) -> Result<(), E> {
        string(name, out)?;
        out(b":")?;
        out(self.space)
    }
}

impl Node<'_> {
    /// The value's text, piece by piece. Recurses as deep as the value is, which is part of a document.
    ///
    /// # Errors
    /// The first of `out`, which ends the text.
    pub fn print<E, F>(self, style: Style<'_>, level: usize, out: &mut F) -> Result<(), E>
    where
        F: FnMut(&[u8]) -> Result<(), E> + ?Sized,
    {
        match self.kind() {
            Kind::Null => out(b"null"),
            Kind::Bool(value) => out(if value { b"true" } else { b"false" }),
            Kind::Number(number) => out(NumberText::new(number).as_bytes()),
            Kind::String(text) => string(text, out),
            Kind::Array(mut elements) => style.container(*b"[]", level, out, elements.len(), |out| {
                elements.by_ref().take(1).try_for_each(|value| value.print(style, level + 1, out))
            }),
            Kind::Object(mut members) => style.container(*b"{}", level, out, members.len(), |out| {
                members.by_ref().take(1).try_for_each(|(name, value)| {
                    style.name(name, out)?;
                    value.print(style, level + 1, out)
                })
            }),
        }
    }

    /// The value's text in pieces for somebody who takes them all.
    pub fn print_plain(self, mut out: impl FnMut(&[u8])) {
        let mut put = |part: &[u8]| {
            out(part);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = self.print(Style::PLAIN, 0, &mut put);
    }

    /// The value's text.
    pub fn to_text(self) -> String {
        let mut text = Vec::new();
        self.print_plain(|part| text.extend_from_slice(part));
        String::from_utf8(text).expect("strings are UTF-8, and so is all else")
    }
}

/// The text of a number.
struct NumberText {
    text: arrayvec::ArrayString<40>,
}

impl NumberText {
    fn new(number: Number) -> Self {
        /// Below this Rust prints an exponent, and others do not.
        const SMALL: std::ops::Range<f64> = 1e-5..1e-4;
        let mut text = arrayvec::ArrayString::new();
        let written = match number {
            Number::Int(int) => write!(text, "{int}"),
            Number::Uint(int) => write!(text, "{int}"),
            Number::Double(double) if SMALL.contains(&double.abs()) => write!(text, "{double}"),
            Number::Double(double) => write!(text, "{double:?}"),
        };
        written.expect("24 characters are the longest");
        Self { text }
    }

    fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// A string between quotes.
fn string<E>(text: &[u8], out: &mut (impl FnMut(&[u8]) -> Result<(), E> + ?Sized)) -> Result<(), E> {
    out(b"\"")?;
    let mut plain = 0;
    for (at, &byte) in text.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..b' ' => b'u',
            _ => continue,
        };
        out(&text[plain..at])?;
        plain = at + 1;
        if short == b'u' {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out(&[b'\\', b'u', b'0', b'0', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])?;
        } else {
            out(&[b'\\', short])?;
        }
    }
    out(&text[plain..])?;
    out(b"\"")
}
