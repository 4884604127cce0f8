//! Packing values, one behind the other.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::document::{Json, MAX_BYTES, MAX_DEPTH, Refused};
use super::node::{self, HEAD8, HEAD32, Node, Number, POWERS};

/// Members up to which names are compared one by one.
const FEW: usize = 12;
/// Digits of a decimal number that a double always tells from its neighbours.
const SURE_DIGITS: usize = 15;

/// Puts a document together from its beginning to its end.
#[derive(Debug, Default)]
pub struct Builder {
    out: Vec<u8>,
    open: Vec<Open>,
}

/// A container that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: usize,
    count: u32,
    is_object: bool,
}

impl Builder {
    /// One with room for so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), open: Vec::new() }
    }

    /// The document that was built.
    pub fn finish(self) -> Json {
        Json::of(self.packed())
    }

    /// Its bytes.
    pub(super) fn packed(self) -> Vec<u8> {
        debug_assert!(self.open.is_empty() && !self.out.is_empty(), "one value is whole");
        self.out
    }

    /// Bytes so far.
    #[cfg(feature = "json")]
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether the container that was begun last, and is not ended, is an object; `None` outside of all.
    pub(super) fn is_in_object(&self) -> Option<bool> {
        self.open.last().map(|open| open.is_object)
    }

    /// Counts a value, which is written next.
    fn count(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.count += 1;
        }
    }

    /// Begins an array.
    ///
    /// # Errors
    /// [`Refused::Depth`].
    pub fn begin_array(&mut self) -> Result<(), Refused> {
        self.begin(false)
    }

    /// Begins an object, whose members are names and values.
    ///
    /// # Errors
    /// [`Refused::Depth`].
    pub fn begin_object(&mut self) -> Result<(), Refused> {
        self.begin(true)
    }

    fn begin(&mut self, is_object: bool) -> Result<(), Refused> {
        if self.open.len() == MAX_DEPTH {
            return Err(Refused::Depth);
        }
        self.count();
        self.open.push(Open { at: self.out.len(), count: 0, is_object });
        self.out.extend_from_slice(&[0; HEAD32]);
        Ok(())
    }

    /// Ends the container that was begun last.
    ///
    /// # Errors
    /// [`Refused::Size`].
    ///
    /// # Panics
    /// None is open.
    pub fn end(&mut self) -> Result<(), Refused> {
        let Open { at, mut count, is_object } = self.open.pop().expect("a container was begun");
        if self.out.len() > MAX_BYTES {
            return Err(Refused::Size);
        }
        let content = at + HEAD32;
        if is_object {
            count = self.drop_repeated(content, count);
        }
        let len = self.out.len() - content;
        let head = Head::new(is_object, len, count as usize);
        let bytes = head.bytes();
        self.out[at..at + bytes.len()].copy_from_slice(bytes);
        if bytes.len() < HEAD32 {
            self.out.copy_within(content.., at + bytes.len());
            self.out.truncate(at + bytes.len() + len);
        }
        Ok(())
    }

    /// Of members with one name the last counts, in the place of the first.
    fn drop_repeated(&mut self, content: usize, count: u32) -> u32 {
        let out = &self.out;
        let name = |member: u32| Node::new(out, member as usize).raw();
        let end = |member: u32| Node::new(out, Node::new(out, member as usize).end()).end();
        let mut next = content as u32;
        let members = (0..count).map(|_| {
            let member = next;
            next = end(member) as u32;
            member
        });
        // Where the members begin that are kept, and their places by name.
        let mut kept: SmallVec<[u32; FEW]> = SmallVec::new();
        let mut places: HashTable<u32> = HashTable::new();
        let hasher = RandomState::default();
        for member in members {
            let is_same = |place: u32, kept: &[u32]| name(kept[place as usize]) == name(member);
            let hash = |member| hasher.hash_one(name(member));
            let known = if count as usize <= FEW {
                (0..kept.len() as u32).find(|place| is_same(*place, &kept))
            } else {
                places.find(hash(member), |place| is_same(*place, &kept)).copied()
            };
            if let Some(place) = known {
                kept[place as usize] = member;
                continue;
            }
            if count as usize > FEW {
                places.insert_unique(hash(member), kept.len() as u32, |place| hash(kept[*place as usize]));
            }
            kept.push(member);
        }
        let left = kept.len() as u32;
        if left < count {
            let kept: Vec<u8> = kept.iter().flat_map(|member| &out[*member as usize..end(*member)]).copied().collect();
            self.out.truncate(content);
            self.out.extend_from_slice(&kept);
        }
        left
    }

    /// The name of a member, whose value comes next.
    pub fn name(&mut self, name: &[u8]) {
        put_string(&mut self.out, name);
    }

    /// `null`
    pub fn null(&mut self) {
        self.count();
        self.out.push(node::NULL);
    }

    /// `true` or `false`
    pub fn boolean(&mut self, value: bool) {
        self.count();
        self.out.push(if value { node::TRUE } else { node::FALSE });
    }

    /// A number, which is finite.
    pub fn number(&mut self, number: Number) {
        self.count();
        put_number(&mut self.out, number);
    }

    /// A number with its text, which may say at once how it is packed.
    pub(super) fn number_of(&mut self, text: &[u8], number: Number) {
        match number {
            Number::Double(_) => match decimal(text) {
                Some((digits, scale)) => {
                    self.count();
                    put_decimal(&mut self.out, digits, scale);
                }
                None => self.number(number),
            },
            Number::Int(_) | Number::Uint(_) => self.number(number),
        }
    }

    /// A string, which is UTF-8.
    pub fn string(&mut self, text: &[u8]) {
        self.count();
        put_string(&mut self.out, text);
    }

    /// A copy of a value.
    pub fn copy(&mut self, value: Node<'_>) {
        self.count();
        self.out.extend_from_slice(value.raw());
    }
}

/// The head of a container.
pub(super) struct Head {
    bytes: [u8; HEAD32],
    len: usize,
}

impl Head {
    pub(super) fn new(is_object: bool, len: usize, count: usize) -> Self {
        let mut bytes = [0; HEAD32];
        if let (Ok(len), Ok(count)) = (u8::try_from(len), u8::try_from(count)) {
            bytes[..HEAD8].copy_from_slice(&[if is_object { node::OBJECT8 } else { node::ARRAY8 }, len, count]);
            return Self { bytes, len: HEAD8 };
        }
        bytes[0] = if is_object { node::OBJECT32 } else { node::ARRAY32 };
        bytes[1..5].copy_from_slice(&(len as u32).to_le_bytes());
        bytes[5..].copy_from_slice(&(count as u32).to_le_bytes());
        Self { bytes, len: HEAD32 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Appends a string.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    match (text.len(), u8::try_from(text.len())) {
        (0..64, _) => out.push(node::SHORT_STRING + text.len() as u8),
        (_, Ok(len)) => out.extend_from_slice(&[node::STRING8, len]),
        _ => {
            out.push(node::STRING32);
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// Appends a number in its shortest form.
pub(super) fn put_number(out: &mut Vec<u8>, number: Number) {
    match number {
        Number::Int(int) => put_int(out, int),
        Number::Uint(int) => match i64::try_from(int) {
            Ok(int) => put_int(out, int),
            Err(_) => {
                out.push(node::UINT64);
                out.extend_from_slice(&int.to_le_bytes());
            }
        },
        Number::Double(double) => match decimal(format!("{double}").as_bytes()) {
            Some((digits, scale)) => put_decimal(out, digits, scale),
            None => {
                out.push(node::DOUBLE);
                out.extend_from_slice(&double.to_le_bytes());
            }
        },
    }
}

fn put_int(out: &mut Vec<u8>, int: i64) {
    if let Ok(small @ 0..128) = u8::try_from(int) {
        out.push(node::SMALL_INT + small);
    } else if let Ok(int) = i8::try_from(int) {
        out.push(node::INT8);
        out.extend_from_slice(&int.to_le_bytes());
    } else if let Ok(int) = i16::try_from(int) {
        out.push(node::INT16);
        out.extend_from_slice(&int.to_le_bytes());
    } else if let Ok(int) = i32::try_from(int) {
        out.push(node::INT32);
        out.extend_from_slice(&int.to_le_bytes());
    } else {
        out.push(node::INT64);
        out.extend_from_slice(&int.to_le_bytes());
    }
}

fn put_decimal(out: &mut Vec<u8>, digits: i32, scale: u8) {
    if let Ok(digits) = i16::try_from(digits) {
        out.extend_from_slice(&[node::DECIMAL16, scale]);
        out.extend_from_slice(&digits.to_le_bytes());
    } else {
        out.extend_from_slice(&[node::DECIMAL32, scale]);
        out.extend_from_slice(&digits.to_le_bytes());
    }
}

/// The number of a text without an exponent as an integer over a power of ten, if both are small; not the zero that is negative.
fn decimal(text: &[u8]) -> Option<(i32, u8)> {
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |text| (true, text));
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &text[..0]),
    };
    let end = fraction.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    let fraction = &fraction[..end];
    if fraction.len() >= POWERS.len() || whole.len() > SURE_DIGITS {
        return None;
    }
    let mut digits = 0_i32;
    for digit in whole.iter().chain(fraction) {
        let digit = i32::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9)?);
        digits = digits.checked_mul(10)?.checked_add(digit)?;
    }
    if negative && digits == 0 {
        return None;
    }
    Some((if negative { -digits } else { digits }, fraction.len() as u8))
}
