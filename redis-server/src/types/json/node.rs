//! A packed value, and how it is read.
//!
//! ```text
//! 00 01 02           null false true
//! 03 04 05 06        an integer of 1, 2, 4, 8 bytes         07  one above the largest of 64 bits with a sign
//! 08 scale i16       an integer over a power of ten         09 scale i32  the same
//! 0a f64             any other double
//! 0b len8 bytes      a string of 64 to 255 bytes            0c len32 bytes  a longer one
//! 10 len8 count8     an array, and 11 an object, of at most 255 bytes and elements behind this head
//! 12 len32 count32   a larger array, 13 a larger object
//! 40 to 7f bytes     a string of 0 to 63 bytes
//! 80 to ff           0 to 127
//! ```
//!
//! Numbers are little-endian. An object's content is its members: a string and a value each, no name twice. There is one form for
//! each value: equal bytes are equal values, and where no objects are in it, other bytes are another value.

pub(super) const NULL: u8 = 0x00;
pub(super) const FALSE: u8 = 0x01;
pub(super) const TRUE: u8 = 0x02;
pub(super) const INT8: u8 = 0x03;
pub(super) const INT16: u8 = 0x04;
pub(super) const INT32: u8 = 0x05;
pub(super) const INT64: u8 = 0x06;
pub(super) const UINT64: u8 = 0x07;
pub(super) const DECIMAL16: u8 = 0x08;
pub(super) const DECIMAL32: u8 = 0x09;
pub(super) const DOUBLE: u8 = 0x0a;
pub(super) const STRING8: u8 = 0x0b;
pub(super) const STRING32: u8 = 0x0c;
pub(super) const ARRAY8: u8 = 0x10;
pub(super) const OBJECT8: u8 = 0x11;
pub(super) const ARRAY32: u8 = 0x12;
pub(super) const OBJECT32: u8 = 0x13;
pub(super) const SHORT_STRING: u8 = 0x40;
pub(super) const SMALL_INT: u8 = 0x80;

/// Bytes of the heads of containers.
pub(super) const HEAD8: usize = 3;
pub(super) const HEAD32: usize = 9;

/// The powers of ten that a double has exactly.
pub(super) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// One value of a document.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    document: &'a [u8],
    at: usize,
}

/// The type of a value, with its content.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string, which is UTF-8.
    String(&'a [u8]),
    /// An array.
    Array(Elements<'a>),
    /// An object.
    Object(Members<'a>),
}

/// A number, which remembers whether it was written as an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// One above the largest of these.
    Uint(u64),
    /// A number with a fraction, an exponent, or more digits than an integer has.
    Double(f64),
}

impl Number {
    /// The number as a double.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Uint(int) => int as f64,
            Self::Double(double) => double,
        }
    }
}

impl<'a> Node<'a> {
    pub(super) fn new(document: &'a [u8], at: usize) -> Self {
        Self { document, at }
    }

    /// Where it begins in its document.
    pub(super) fn at(self) -> usize {
        self.at
    }

    /// Where what follows it begins.
    pub(super) fn end(self) -> usize {
        self.at + self.size()
    }

    /// Its bytes.
    pub fn raw(self) -> &'a [u8] {
        &self.document[self.at..self.end()]
    }

    fn tag(self) -> u8 {
        self.document[self.at]
    }

    fn byte(self) -> usize {
        self.document[self.at + 1].into()
    }

    fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        self.document[self.at + offset..][..N].try_into().expect("a document is whole")
    }

    fn word(self, offset: usize) -> usize {
        u32::from_le_bytes(self.array(offset)) as usize
    }

    fn size(self) -> usize {
        match self.tag() {
            NULL | FALSE | TRUE | SMALL_INT.. => 1,
            INT8 => 2,
            INT16 => 3,
            INT32 => 5,
            DECIMAL16 => 4,
            DECIMAL32 => 6,
            INT64 | UINT64 | DOUBLE => 9,
            STRING8 => 2 + self.byte(),
            STRING32 => 5 + self.word(1),
            ARRAY8 | OBJECT8 => HEAD8 + self.byte(),
            ARRAY32 | OBJECT32 => HEAD32 + self.word(1),
            short @ SHORT_STRING.. => 1 + usize::from(short - SHORT_STRING),
            tag => unreachable!("{tag} begins no value"),
        }
    }

    /// The value's type and content.
    pub fn kind(self) -> Kind<'a> {
        let number = Kind::Number;
        match self.tag() {
            NULL => Kind::Null,
            FALSE => Kind::Bool(false),
            TRUE => Kind::Bool(true),
            INT8 => number(Number::Int(i8::from_le_bytes(self.array(1)).into())),
            INT16 => number(Number::Int(i16::from_le_bytes(self.array(1)).into())),
            INT32 => number(Number::Int(i32::from_le_bytes(self.array(1)).into())),
            INT64 => number(Number::Int(i64::from_le_bytes(self.array(1)))),
            UINT64 => number(Number::Uint(u64::from_le_bytes(self.array(1)))),
            DECIMAL16 => number(decimal(i16::from_le_bytes(self.array(2)).into(), self.byte())),
            DECIMAL32 => number(decimal(i32::from_le_bytes(self.array(2)), self.byte())),
            DOUBLE => number(Number::Double(f64::from_le_bytes(self.array(1)))),
            ARRAY8 | ARRAY32 => Kind::Array(Elements(self.content())),
            OBJECT8 | OBJECT32 => Kind::Object(Members(self.content())),
            small @ SMALL_INT.. => number(Number::Int((small - SMALL_INT).into())),
            _ => Kind::String(self.text()),
        }
    }

    /// A string's bytes.
    fn text(self) -> &'a [u8] {
        let head = match self.tag() {
            STRING8 => 2,
            STRING32 => 5,
            _ => 1,
        };
        &self.document[self.at + head..self.end()]
    }

    /// A container's content; empty for any other value.
    pub(super) fn content(self) -> Content<'a> {
        let (head, left) = match self.tag() {
            ARRAY8 | OBJECT8 => (HEAD8, self.document[self.at + 2].into()),
            ARRAY32 | OBJECT32 => (HEAD32, self.word(5)),
            _ => return Content { document: self.document, at: self.end(), left: 0 },
        };
        Content { document: self.document, at: self.at + head, left }
    }

    /// Whether it is an array or an object.
    pub fn is_container(self) -> bool {
        matches!(self.tag(), ARRAY8..=OBJECT32)
    }

    /// Whether it is an object.
    pub(super) fn is_object(self) -> bool {
        matches!(self.tag(), OBJECT8 | OBJECT32)
    }

    /// The value of a member of an object.
    pub fn member(self, name: &[u8]) -> Option<Self> {
        match self.kind() {
            Kind::Object(mut members) => members.find(|(known, _)| *known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Containers in containers, this one included: 0 of what is none.
    pub(super) fn depth(self) -> usize {
        let inside = match self.kind() {
            Kind::Array(elements) => elements.map(Self::depth).max(),
            Kind::Object(members) => members.map(|(_, value)| value.depth()).max(),
            _ => return 0,
        };
        1 + inside.unwrap_or(0)
    }

    /// The name of its type, as `JSON.TYPE` answers it.
    pub fn type_name(self) -> &'static str {
        match self.kind() {
            Kind::Null => "null",
            Kind::Bool(_) => "boolean",
            Kind::Number(Number::Int(_) | Number::Uint(_)) => "integer",
            Kind::Number(Number::Double(_)) => "number",
            Kind::String(_) => "string",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }
}

fn decimal(digits: i32, scale: usize) -> Number {
    // Both are exact, so the quotient is the double that is nearest to the decimal number.
    Number::Double(f64::from(digits) / POWERS[scale])
}

/// The rest of a container's content.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    document: &'a [u8],
    pub(super) at: usize,
    left: usize,
}

impl<'a> Content<'a> {
    /// Values, or members.
    pub(super) fn len(self) -> usize {
        self.left
    }

    fn value(&mut self) -> Node<'a> {
        let node = Node::new(self.document, self.at);
        self.at = node.end();
        node
    }
}

/// The elements of an array.
#[derive(Clone, Copy)]
pub struct Elements<'a>(Content<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        self.0.left = self.0.left.checked_sub(1)?;
        Some(self.0.value())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.left, Some(self.0.left))
    }
}

impl ExactSizeIterator for Elements<'_> {}

/// The members of an object: names and values.
#[derive(Clone, Copy)]
pub struct Members<'a>(Content<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.left = self.0.left.checked_sub(1)?;
        let name = self.0.value().text();
        Some((name, self.0.value()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.left, Some(self.0.left))
    }
}

impl ExactSizeIterator for Members<'_> {}

/// The values in a container, each with where its member begins, which is where it begins itself in an array.
pub(super) struct Children<'a> {
    content: Content<'a>,
    is_object: bool,
}

impl<'a> Children<'a> {
    pub(super) fn of(node: Node<'a>) -> Self {
        Self { content: node.content(), is_object: node.is_object() }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = (usize, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.content.left = self.content.left.checked_sub(1)?;
        let member = self.content.at;
        if self.is_object {
            self.content.value();
        }
        Some((member, self.content.value()))
    }
}
