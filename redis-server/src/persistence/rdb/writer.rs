//! Whole files, written item by item.

use std::io::{self, Write};
use std::ops::Range;

use super::crc::Crc64;
use super::lzf::Compressor;
use super::save::{self, Sink, len};
use super::version::IDEMPOTENCE;
use super::{Fork, opcode, stream};
use crate::keyspace::ValueRef;
use crate::types::Stream;

/// Bytes that go to the file at once.
const BUFFER: usize = 256 * 1024;
/// Bytes that are not copied into that buffer, but written behind it.
const DIRECT: usize = BUFFER / 4;
/// Bytes of room that a buffer of records keeps.
const KEPT: usize = 1024 * 1024;
/// Strings up to this length are not worth compressing, and how many bytes it must save.
const COMPRESS_MIN: usize = 20;
const COMPRESS_SAVES: usize = 4;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether strings are compressed where that saves something (`rdbcompression`).
    pub compress: bool,
    /// Whether the file ends with the checksum of its bytes, or with zeros (`rdbchecksum`).
    pub checksum: bool,
    /// For whom, if fields of any hash expire; else for everybody.
    pub fork: Fork,
    /// Whether that is so.
    pub fields_expire: bool,
}

impl Default for WriteOptions {
    /// Not compressed, for everybody.
    fn default() -> Self {
        Self { compress: false, checksum: true, fork: Fork::default(), fields_expire: false }
    }
}

/// A key's usage in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: no policy of eviction asks for it.
    Untold,
    /// It has not been used for so many seconds.
    Idle(u64),
    /// It was used so often, as a policy that counts has it.
    Frequency(u8),
}

/// Writes a file to its end.
pub struct Writer<W> {
    out: Out<W>,
    compressor: Option<Compressor>,
    fork: Fork,
}

impl<W: Write> Writer<W> {
    /// One that has written the head of a file.
    pub fn new(file: W, options: WriteOptions) -> Self {
        let crc = options.checksum.then(Crc64::default);
        let mut out = Out { file, buffer: Vec::with_capacity(BUFFER), crc, failed: None };
        let version = options.fork.version(options.fields_expire);
        let is_valkey = options.fork == Fork::Valkey && options.fields_expire;
        out.put(if is_valkey { format!("VALKEY{version:03}") } else { format!("REDIS{version:04}") }.as_bytes());
        Self { out, compressor: options.compress.then(Compressor::default), fork: options.fork }
    }

    /// A note about the file or the server.
    pub fn note(&mut self, name: &str, text: &[u8]) {
        note(&mut self.out, name, text);
    }

    /// The code of a function library.
    pub fn function(&mut self, code: &[u8]) {
        self.out.put(&[opcode::FUNCTION]);
        save::string(&mut self.packed(), code);
    }

    /// The next records belong to database `number`. The numbers of keys are hints for the reader.
    pub fn database(&mut self, number: usize, keys: usize, expiring: usize) {
        database(&mut self.out, number);
        self.out.put(&[opcode::SIZES]);
        len(&mut self.out, keys as u64);
        len(&mut self.out, expiring as u64);
    }

    /// A key with its value; `expire_at` in milliseconds of Unix time.
    pub fn record(&mut self, key: &[u8], value: ValueRef<'_>, expire_at: Option<u64>, access: Access) {
        let fork = self.fork;
        record(&mut self.packed(), key, (value, fork), expire_at, access);
    }

    fn packed(&mut self) -> Compressing<'_, Out<W>> {
        Compressing { out: &mut self.out, compressor: self.compressor.as_mut() }
    }

    /// Writes the records of [`Records`].
    pub fn records(&mut self, encoded: &Encoded) {
        let mut from = 0;
        for (head, text) in &encoded.strings {
            self.plain(&encoded.bytes[from..*head]);
            self.packed().put_string(&encoded.bytes[text.clone()]);
            from = text.end;
        }
        self.plain(&encoded.bytes[from..]);
    }

    fn plain(&mut self, bytes: &[u8]) {
        if bytes.len() >= DIRECT {
            self.out.flush();
            return self.out.write(bytes);
        }
        self.out.put(bytes);
    }

    /// Whether the file could not be written; later data is dropped.
    pub fn has_failed(&self) -> bool {
        self.out.failed.is_some()
    }

    /// Nothing, as long as the file can be written.
    ///
    /// # Errors
    /// The first one of the file, once.
    pub fn check(&mut self) -> io::Result<()> {
        self.out.failed.take().map_or(Ok(()), Err)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first one of the file.
    pub fn finish(mut self) -> io::Result<W> {
        let out = &mut self.out;
        out.put(&[opcode::END]);
        out.flush();
        let checksum = out.crc.take().map_or(0, Crc64::value);
        out.put(&checksum.to_le_bytes());
        out.flush();
        self.out.failed.map_or(Ok(self.out.file), Err)
    }
}

/// Records that are made before they are written: each run of them says which database it belongs to. Strings are not compressed yet,
/// because the thread that makes records holds a lock that others wait for.
pub struct Records {
    encoded: Encoded,
    database: Option<usize>,
    fork: Fork,
    /// Whether strings are going to be compressed.
    compress: bool,
}

/// Records as [`Writer::records`] takes them.
#[derive(Debug, Default)]
pub struct Encoded {
    bytes: Vec<u8>,
    /// Strings that may be worth compressing: where the length of each begins, and where its text stands.
    strings: Vec<(usize, Range<usize>)>,
}

impl Encoded {
    /// Room for about so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), strings: Vec::new() }
    }

    /// More bytes, which are no string to be compressed.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes, before any compression.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Nothing, in the room that is there already, unless that is large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.strings.clear();
    }
}

impl Records {
    /// None yet, which are written like the file that they are for.
    pub fn new(options: WriteOptions) -> Self {
        Self { encoded: Encoded::default(), database: None, fork: options.fork, compress: options.compress }
    }

    /// A key of database `number` with its value: see [`Writer::record`].
    pub fn add(&mut self, number: usize, key: &[u8], value: ValueRef<'_>, expire_at: Option<u64>, access: Access) {
        self.begin(number);
        let fork = self.fork;
        record(self, key, (value, fork), expire_at, access);
    }

    /// [`Records::add`] of what may be large: `send` takes out what is there whenever that is some `piece` bytes.
    pub fn add_in_pieces(
        &mut self,
        number: usize,
        (key, value): (&[u8], ValueRef<'_>),
        (expire_at, access): (Option<u64>, Access),
        piece: usize,
        send: impl FnMut(&mut Self),
    ) {
        self.begin(number);
        let fork = self.fork;
        record(&mut InPieces { records: self, piece, send }, key, (value, fork), expire_at, access);
    }

    fn begin(&mut self, number: usize) {
        if self.database != Some(number) {
            self.database = Some(number);
            database(self, number);
        }
    }

    /// Their bytes, without compression.
    pub fn len(&self) -> usize {
        self.encoded.bytes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.encoded.bytes.is_empty()
    }

    /// Takes them out; `room` takes those to come.
    pub fn take(&mut self, room: Encoded) -> Encoded {
        self.database = None;
        std::mem::replace(&mut self.encoded, room)
    }
}

impl Sink for Records {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.encoded.bytes.extend_from_slice(bytes);
    }

    fn put_string(&mut self, text: &[u8]) {
        let head = self.len();
        len(self, text.len() as u64);
        let begin = self.len();
        self.put(text);
        if self.compress && text.len() > COMPRESS_MIN {
            self.encoded.strings.push((head, begin..self.len()));
        }
    }
}

/// A record that is taken out piece by piece.
struct InPieces<'a, F> {
    records: &'a mut Records,
    piece: usize,
    send: F,
}

impl<F: FnMut(&mut Records)> InPieces<'_, F> {
    fn send_if_full(&mut self) {
        if self.records.len() >= self.piece {
            (self.send)(self.records);
        }
    }
}

impl<F: FnMut(&mut Records)> Sink for InPieces<'_, F> {
    fn put(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(self.piece) {
            self.records.put(part);
            self.send_if_full();
        }
    }

    fn put_string(&mut self, text: &[u8]) {
        if text.len() <= self.piece {
            self.records.put_string(text);
            return self.send_if_full();
        }
        // It is not copied to be compressed.
        let mut compressor = self.records.compress.then(Compressor::default);
        Compressing { out: self, compressor: compressor.as_mut() }.put_string(text);
    }
}

fn database(out: &mut impl Sink, number: usize) {
    out.put(&[opcode::DATABASE]);
    len(out, number as u64);
}

fn note(out: &mut impl Sink, name: &str, text: &[u8]) {
    out.put(&[opcode::AUX]);
    save::string(out, name.as_bytes());
    save::string(out, text);
}

fn record(
    out: &mut impl Sink,
    key: &[u8],
    (value, fork): (ValueRef<'_>, Fork),
    expire_at: Option<u64>,
    access: Access,
) {
    if let ValueRef::Stream(Stream { idempotence: Some(known), .. }) = value {
        note(out, IDEMPOTENCE, &stream::idempotence(known));
    }
    if let Some(at) = expire_at {
        out.put(&[opcode::EXPIRES_AT_MS]);
        out.put(&at.to_le_bytes());
    }
    match access {
        Access::Untold => {}
        Access::Idle(seconds) => {
            out.put(&[opcode::IDLE]);
            len(out, seconds);
        }
        Access::Frequency(count) => out.put(&[opcode::FREQUENCY, count]),
    }
    out.put(&[save::kind(value, fork)]);
    save::string(out, key);
    save::value(out, value, fork);
}

/// Compresses strings where that saves something.
struct Compressing<'a, S> {
    out: &'a mut S,
    compressor: Option<&'a mut Compressor>,
}

impl<S: Sink> Sink for Compressing<'_, S> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.out.put(bytes);
    }

    fn put_string(&mut self, text: &[u8]) {
        const ENCODED: u8 = 0xc3;
        let compressor = self.compressor.as_mut().filter(|_| text.len() > COMPRESS_MIN);
        if let Some(packed) = compressor.and_then(|it| it.compress(text, text.len() - COMPRESS_SAVES + 1)) {
            self.out.put(&[ENCODED]);
            len(self.out, packed.len() as u64);
            len(self.out, text.len() as u64);
            return self.out.put(packed);
        }
        len(self.out, text.len() as u64);
        self.out.put(text);
    }
}

/// Bytes on their way to the file.
struct Out<W> {
    file: W,
    buffer: Vec<u8>,
    crc: Option<Crc64>,
    failed: Option<io::Error>,
}

impl<W: Write> Out<W> {
    #[cold]
    fn flush(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
        self.failed = self.file.write_all(bytes).err();
    }
}

impl<W: Write> Sink for Out<W> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush();
            if bytes.len() > BUFFER {
                return self.write(bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
    }
}
