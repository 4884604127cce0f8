//! Whole files, written item by item.

use std::io::{self, Write};

use super::crc::Crc64;
use super::lzf::Compressor;
use super::save::{self, Sink, len};
use super::{VERSION, opcode};
use crate::keyspace::ValueRef;

/// Bytes that go to the file at once.
const BUFFER: usize = 256 * 1024;
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
}

/// What a file says of a key's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: no policy of eviction asks for it.
    Untold,
    /// It has not been used for so many seconds.
    Idle(u64),
    /// It was used so often, as a policy that counts has it.
    Frequency(u8),
}

/// Writes a file of version 10 to its end.
pub struct Writer<W> {
    out: Out<W>,
}

impl<W: Write> Writer<W> {
    /// One that has written the head of a file.
    pub fn new(file: W, options: WriteOptions) -> Self {
        let mut out = Out {
            file,
            buffer: Vec::with_capacity(BUFFER),
            crc: options.checksum.then(Crc64::default),
            compressor: options.compress.then(Compressor::default),
            failed: None,
        };
        out.put(format!("REDIS{VERSION:04}").as_bytes());
        Self { out }
    }

    /// A note about the file or the server.
    pub fn note(&mut self, name: &str, text: &[u8]) {
        self.out.put(&[opcode::AUX]);
        save::string(&mut self.out, name.as_bytes());
        save::string(&mut self.out, text);
    }

    /// The code of a function library.
    pub fn function(&mut self, code: &[u8]) {
        self.out.put(&[opcode::FUNCTION]);
        save::string(&mut self.out, code);
    }

    /// What follows belongs to database `number`, and is so many keys, some of which expire.
    pub fn database(&mut self, number: usize, keys: usize, expiring: usize) {
        self.out.put(&[opcode::DATABASE]);
        len(&mut self.out, number as u64);
        self.out.put(&[opcode::SIZES]);
        len(&mut self.out, keys as u64);
        len(&mut self.out, expiring as u64);
    }

    /// A key with its value; `expire_at` in milliseconds of Unix time.
    pub fn record(&mut self, key: &[u8], value: ValueRef<'_>, expire_at: Option<u64>, access: Access) {
        let out = &mut self.out;
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
        out.put(&[save::kind(value)]);
        save::string(out, key);
        save::value(out, value);
    }

    /// Whether the file could not be written: what else comes is thrown away.
    pub fn has_failed(&self) -> bool {
        self.out.failed.is_some()
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

/// Bytes on their way to the file.
struct Out<W> {
    file: W,
    buffer: Vec<u8>,
    crc: Option<Crc64>,
    compressor: Option<Compressor>,
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

    fn put_string(&mut self, text: &[u8]) {
        const ENCODED: u8 = 0xc3;
        if text.len() > COMPRESS_MIN
            && let Some(mut compressor) = self.compressor.take()
        {
            let packed = compressor.compress(text, text.len() - COMPRESS_SAVES + 1);
            let is_packed = packed.is_some();
            if let Some(packed) = packed {
                self.put(&[ENCODED]);
                len(self, packed.len() as u64);
                len(self, text.len() as u64);
                self.put(packed);
            }
            self.compressor = Some(compressor);
            if is_packed {
                return;
            }
        }
        len(self, text.len() as u64);
        self.put(text);
    }
}
