//! Whole files, read item by item.
//!
//! A [`Decoder`] is shown the part of the file that is in memory, and says what stands at its beginning, or how much more of
//! the file it must see. Nothing is allocated for a length that the file cannot have.

use std::borrow::Cow;
use std::fmt;

use super::crc::Crc64;
use super::load::{self, Limits, Loaded};
use super::reader::Reader;
use super::version::IDEMPOTENCE;
use super::{kind, module, opcode, skip, stream};
use crate::keyspace::Object;
use crate::persistence::rdb::version::{NEWEST, VALKEY};

/// The first version that ends with a checksum.
const CHECKED: u16 = 5;
/// The length of a file's header: name and version.
const HEADER: usize = 9;

/// Reads a file from its beginning to its end.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// Whether the checksum at the end must be right.
    checks: bool,
    /// 0 in front of the header.
    version: u16,
    offset: u64,
    crc: Crc64,
}

/// The result of [`Decoder::next`].
pub enum Step<'a> {
    /// An item, and how many bytes it takes.
    Item(Item<'a>, usize),
    /// So many bytes more must be seen, at least.
    More(usize),
}

/// The result of [`Decoder::cut`].
pub enum Cut {
    /// Records that take so many bytes.
    Records(usize),
    /// So many bytes more must be seen, at least, for the next record to be whole.
    More(usize),
    /// Next is no record, or one that is damaged.
    Other,
}

/// The parts of a file.
pub enum Item<'a> {
    /// Its head, with the version.
    Header(u16),
    /// A note about the file or the server that wrote it.
    Note {
        /// Its name.
        name: Cow<'a, [u8]>,
        /// Its text.
        text: Cow<'a, [u8]>,
    },
    /// Auxiliary data of a module, which only the module can read.
    Module,
    /// The code of a function library.
    Function(Cow<'a, [u8]>),
    /// The next items belong to the database of this number.
    Database(u64),
    /// So many keys follow, at a guess.
    Sizes {
        /// All.
        keys: u64,
        /// Those that expire.
        expiring: u64,
    },
    /// A key with its value.
    Record(Record<'a>),
    /// The end. Bytes behind it are not part of the file.
    End,
}

/// A key with all that is known of it.
pub struct Record<'a> {
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// Its value; `None` for a collection without elements, which no server should have written.
    pub value: Option<Loaded<'a>>,
    /// When it expires, in milliseconds of Unix time.
    pub expire_at: Option<u64>,
    /// For how many seconds it had not been used.
    pub idle: Option<u64>,
    /// How often it was used, as a policy that counts has it.
    pub frequency: Option<u8>,
}

/// Why a file is not read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Bytes before the place at which the reader gave up.
    pub offset: u64,
    /// The kind of fault.
    pub cause: Cause,
}

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is none of Redis or Valkey.
    Signature,
    /// It has a version that is not read.
    Version(u16),
    /// It ends before its end.
    Truncated,
    /// A byte that announces nothing.
    Opcode(u8),
    /// A length, or a string, that is none.
    Element,
    /// A value of this type that is none.
    Value(u8),
    /// The value of a module, of the type with this name; none in the form that Redis 4.0 has left.
    ModuleValue(Option<String>),
    /// A hash some of whose fields expire.
    FieldExpiry,
    /// A function in the form that only candidates of Redis 7.0 had.
    OldFunction,
    /// The checksum that stands in the file, and that of its bytes.
    Checksum(u64, u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: ", self.offset)?;
        match &self.cause {
            Cause::Signature => write!(f, "wrong signature: this is no RDB file"),
            Cause::Version(version) => write!(f, "can't handle RDB format version {version}"),
            Cause::Truncated => write!(f, "unexpected end of file"),
            Cause::Opcode(byte) => write!(f, "{byte} announces no value"),
            Cause::Element => write!(f, "a length or string is damaged"),
            Cause::Value(kind) => write!(f, "a value of type {kind} is damaged"),
            Cause::ModuleValue(Some(name)) => {
                write!(f, "the value belongs to a module ({name}) whose type is not known here")
            }
            Cause::ModuleValue(None) => write!(f, "the value belongs to a module, in a form that only it can read"),
            Cause::FieldExpiry => write!(f, "a hash with fields that expire, of a release candidate of Redis 7.4"),
            Cause::OldFunction => write!(f, "a function of a release candidate of Redis 7.0"),
            Cause::Checksum(said, found) => write!(f, "CRC error: the file says {said:016x}, its bytes {found:016x}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Decoder {
    /// One at the beginning of a file. Where it `checks` nothing, a wrong checksum at the end is taken for right.
    pub fn new(limits: Limits, checks: bool) -> Self {
        Self { limits, checks, version: 0, offset: 0, crc: Crc64::default() }
    }

    /// Bytes of the items so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The item at the start of `window`, which holds the bytes behind the items so far. `beyond` is the number of bytes that the file has
    /// behind `window`.
    ///
    /// # Errors
    /// [`Fault`]. Nothing more can be read then.
    pub fn next<'w>(&mut self, window: &'w [u8], beyond: u64) -> Result<Step<'w>, Fault> {
        let mut reader = Reader::of_part(window, beyond);
        let read = if self.version == 0 { self.header(&mut reader) } else { self.item(&mut reader) };
        let used = window.len() - reader.left();
        match read {
            Ok(item) => {
                self.offset += used as u64;
                self.crc.update(&window[..used]);
                Ok(Step::Item(item, used))
            }
            Err(_) if reader.short() > 0 => Ok(Step::More(reader.short())),
            Err(cause) => {
                let cause = if reader.is_past_end() { Cause::Truncated } else { cause };
                Err(Fault { offset: self.offset + used as u64, cause })
            }
        }
    }

    fn header<'w>(&mut self, reader: &mut Reader<'w>) -> Result<Item<'w>, Cause> {
        let header: [u8; HEADER] = reader.array().ok_or(Cause::Signature)?;
        let (digits, is_valkey) = match header.strip_prefix(b"VALKEY") {
            Some(digits) => (digits, true),
            None => (header.strip_prefix(b"REDIS").ok_or(Cause::Signature)?, false),
        };
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let version = digits.and_then(|digits| digits.parse().ok()).ok_or(Cause::Signature)?;
        if version == 0 || version > NEWEST && !(is_valkey && version == VALKEY) {
            return Err(Cause::Version(version));
        }
        self.version = version;
        Ok(Item::Header(version))
    }

    /// How far the records at the beginning of `window` reach, which are left to others to decode: behind `most` bytes no
    /// other begins. `beyond` is as in [`Decoder::next`].
    pub fn cut(&mut self, window: &[u8], beyond: u64, most: usize) -> Cut {
        let mut reader = Reader::of_part(window, beyond);
        let mut used = 0;
        while used < most && self.version != 0 && skip_record(&mut reader, self.version).is_some() {
            used = window.len() - reader.left();
        }
        match (used, reader.short()) {
            (0, 0) => Cut::Other,
            (0, missing) => Cut::More(missing),
            _ => {
                self.offset += used as u64;
                self.crc.update(&window[..used]);
                Cut::Records(used)
            }
        }
    }

    fn item<'w>(&self, reader: &mut Reader<'w>) -> Result<Item<'w>, Cause> {
        let before = reader.rest();
        match head(reader)? {
            (_, opcode::END) => self.end(reader, before),
            (_, opcode @ opcode::SLOT_INFO..) => other(opcode, reader),
            (_, kind) if load::is_of_candidate(kind, self.version) => Err(Cause::FieldExpiry),
            (head, kind) => record(head, kind, reader, &self.limits).map(Item::Record),
        }
    }

    fn end<'w>(&self, reader: &mut Reader<'w>, item: &[u8]) -> Result<Item<'w>, Cause> {
        if self.version < CHECKED {
            return Ok(Item::End);
        }
        let mut crc = self.crc;
        crc.update(&item[..item.len() - reader.left()]);
        let said = u64::from_le_bytes(reader.array().ok_or(Cause::Truncated)?);
        if self.checks && said != 0 && said != crc.value() {
            return Err(Cause::Checksum(said, crc.value()));
        }
        Ok(Item::End)
    }
}

/// The properties of a key that stand in front of its type.
#[derive(Default)]
struct Head<'w> {
    expire_at: Option<u64>,
    idle: Option<u64>,
    frequency: Option<u8>,
    /// Of a stream: the idempotent ids of its producers.
    idempotence: Option<Cow<'w, [u8]>>,
}

/// All in front of a type, or of an opcode that announces something else, and that.
#[inline]
fn head<'w>(reader: &mut Reader<'w>) -> Result<(Head<'w>, u8), Cause> {
    let mut head = Head::default();
    loop {
        match reader.byte().ok_or(Cause::Truncated)? {
            opcode::EXPIRES_AT_MS => head.expire_at = Some(reader.time().ok_or(Cause::Element)?),
            opcode::EXPIRES_AT_SECOND => {
                let seconds = i32::from_le_bytes(reader.array().ok_or(Cause::Element)?);
                head.expire_at = Some(u64::try_from(seconds).unwrap_or(0) * 1000);
            }
            opcode::IDLE => head.idle = Some(reader.len().ok_or(Cause::Element)?),
            opcode::FREQUENCY => head.frequency = Some(reader.byte().ok_or(Cause::Element)?),
            opcode::AUX if reader.peek_string().is_some_and(|name| *name == *IDEMPOTENCE.as_bytes()) => {
                reader.skip_string();
                head.idempotence = Some(reader.string().ok_or(Cause::Element)?);
            }
            other => return Ok((head, other)),
        }
    }
}

fn record<'w>(head: Head<'w>, kind: u8, reader: &mut Reader<'w>, limits: &Limits) -> Result<Record<'w>, Cause> {
    match kind {
        kind::MODULE => return Err(Cause::ModuleValue(None)),
        kind if !load::is_kind(kind) => return Err(Cause::Opcode(kind)),
        _ => {}
    }
    let key = reader.string().ok_or(Cause::Element)?;
    if kind == kind::MODULE_2 {
        let id = reader.peek_len().ok_or(Cause::Element)?;
        if !module::is_known(id) {
            return Err(Cause::ModuleValue(Some(module::name(id))));
        }
    }
    let mut value = load::value(kind, reader, limits).ok_or(Cause::Value(kind))?;
    let Head { expire_at, idle, frequency, idempotence } = head;
    if let Some(text) = idempotence {
        let Loaded::Object(Object::Stream(stream)) = &mut value else { return Err(Cause::Element) };
        stream.idempotence = Some(Box::new(stream::load_idempotence(&text).ok_or(Cause::Element)?));
    }
    Ok(Record { key, value: Some(value).filter(|value| !value.is_empty_collection()), expire_at, idle, frequency })
}

fn skip_record(reader: &mut Reader<'_>, version: u16) -> Option<()> {
    let (_, kind) = head(reader).ok()?;
    if !load::is_kind(kind) || load::is_of_candidate(kind, version) {
        return None;
    }
    reader.skip_string()?;
    skip::value(kind, reader)
}

/// The record at the beginning of `bytes`, which are whole records at `offset` of a file, and how many of them it takes.
///
/// # Errors
/// [`Fault`].
pub(super) fn whole_record<'b>(bytes: &'b [u8], offset: u64, limits: &Limits) -> Result<(Record<'b>, usize), Fault> {
    let mut reader = Reader::new(bytes);
    let record = head(&mut reader).and_then(|(head, kind)| record(head, kind, &mut reader, limits));
    let used = bytes.len() - reader.left();
    match record {
        Ok(record) => Ok((record, used)),
        Err(cause) => {
            let cause = if reader.is_past_end() { Cause::Truncated } else { cause };
            Err(Fault { offset: offset + used as u64, cause })
        }
    }
}

/// An item that stands for itself.
fn other<'w>(opcode: u8, reader: &mut Reader<'w>) -> Result<Item<'w>, Cause> {
    let mut number = || reader.len().ok_or(Cause::Element);
    Ok(match opcode {
        opcode::DATABASE => Item::Database(number()?),
        opcode::SIZES => Item::Sizes { keys: number()?, expiring: number()? },
        opcode::SLOT_INFO => {
            let (_slot, keys, expiring) = (number()?, number()?, number()?);
            Item::Sizes { keys, expiring }
        }
        opcode::AUX => {
            let mut string = || reader.string().ok_or(Cause::Element);
            Item::Note { name: string()?, text: string()? }
        }
        opcode::FUNCTION => Item::Function(reader.string().ok_or(Cause::Element)?),
        opcode::MODULE_AUX => left_by_module(reader).ok_or(Cause::Element)?,
        opcode::FUNCTION_OF_A_CANDIDATE => return Err(Cause::OldFunction),
        unknown => return Err(Cause::Opcode(unknown)),
    })
}

/// Auxiliary data of a module: the module's number, the time to load it, and values behind their types up to a zero.
fn left_by_module<'w>(reader: &mut Reader<'w>) -> Option<Item<'w>> {
    for _ in 0..3 {
        reader.len()?;
    }
    module::skip(reader)?;
    Some(Item::Module)
}
