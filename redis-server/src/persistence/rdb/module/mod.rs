//! Values of modules: those of RedisJSON, RedisBloom and vector sets, which the server has as types of its own.
//!
//! Such a value begins with the number of its type, a name of nine characters and a version
//! (<https://redis.io/docs/latest/develop/reference/modules/modules-native-types/>), and is a list of numbers and strings, each
//! behind an opcode, that a zero ends. A document is one string, its text; a filter is the numbers of its chain, and then those of each
//! filter with its bits.

mod vector_set;

pub(super) use vector_set::save as save_vector_set;

use super::reader::Reader;
use super::save::{self, Sink, len};
use crate::keyspace::Object;
use crate::types::bloom::{Bloom, FilterShape, MAX_FILTERS, Shape};
use crate::types::json::Json;

/// RedisJSON's documents, as text.
const JSON: u64 = id(b"ReJSON-RL", 3);
/// RedisBloom's filters, with how much the next one is larger.
const BLOOM: u64 = id(b"MBbloom--", 4);
/// Vector sets of Redis 8.
const VECTOR_SET: u64 = id(b"vectorset", 0);

/// The opcodes in front of numbers and strings.
mod opcode {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const STRING: u64 = 5;
}

/// Text up to this length is put together before it is written, so that it can be compressed.
const WHOLE_MAX: usize = 64 * 1024;
/// Bytes of a longer text that are written at once.
const PIECE: usize = 16 * 1024;

/// The characters of type names, six bits each.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The number of a type.
const fn id(name: &[u8; 9], version: u64) -> u64 {
    let (mut id, mut at) = (0, 0);
    while at < name.len() {
        let mut place = 0;
        while CHARACTERS[place] != name[at] {
            place += 1;
        }
        id = id << 6 | place as u64;
        at += 1;
    }
    id << 10 | version
}

/// The name of a type, for those who are told of one that is not read.
pub(super) fn name(id: u64) -> String {
    let characters = (0..9).rev().map(|place| CHARACTERS[(id >> (10 + 6 * place) & 63) as usize]);
    format!("{} version {}", characters.map(char::from).collect::<String>(), id & 1023)
}

/// Whether values of a type are read.
pub(super) fn is_known(id: u64) -> bool {
    matches!(id, JSON | BLOOM | VECTOR_SET)
}

fn number(out: &mut impl Sink, number: u64) {
    len(out, opcode::UNSIGNED);
    len(out, number);
}

fn double(out: &mut impl Sink, double: f64) {
    len(out, opcode::DOUBLE);
    out.put(&double.to_le_bytes());
}

/// A document, behind the type.
pub(super) fn save_json(out: &mut impl Sink, json: &Json) {
    len(out, JSON);
    len(out, opcode::STRING);
    let root = json.root();
    let mut total = 0;
    root.print_plain(|part| total += part.len());
    if total <= WHOLE_MAX {
        save::bytes(out, root.to_text().as_bytes());
    } else {
        len(out, total as u64);
        let mut piece = Vec::with_capacity(PIECE);
        root.print_plain(|part| {
            if piece.len() + part.len() > PIECE {
                out.put(&piece);
                piece.clear();
            }
            if part.len() > PIECE { out.put(part) } else { piece.extend_from_slice(part) }
        });
        out.put(&piece);
    }
    len(out, opcode::END);
}

/// A filter, behind the type.
pub(super) fn save_bloom(out: &mut impl Sink, filter: &Bloom) {
    let Shape { items, options, growth } = filter.shape();
    len(out, BLOOM);
    number(out, items);
    number(out, filter.filters() as u64);
    number(out, options.into());
    number(out, growth.into());
    for (shape, bits) in filter.parts() {
        number(out, shape.capacity);
        double(out, shape.error);
        number(out, shape.hashes.into());
        double(out, shape.bits_per_item);
        number(out, shape.width);
        number(out, shape.log.into());
        len(out, opcode::STRING);
        save::bytes(out, bits);
        number(out, shape.items);
    }
    len(out, opcode::END);
}

/// A value, behind the type; none if it is damaged or its type is not known.
pub(super) fn load(reader: &mut Reader<'_>) -> Option<Object> {
    let object = match reader.len()? {
        JSON => {
            expect(reader, opcode::STRING)?;
            Object::Json(Box::new(Json::parse(&reader.string()?).ok()?))
        }
        BLOOM => Object::Bloom(Box::new(bloom(reader)?)),
        VECTOR_SET => Object::VectorSet(Box::new(vector_set::load(reader)?)),
        _ => return None,
    };
    expect(reader, opcode::END)?;
    Some(object)
}

fn expect(reader: &mut Reader<'_>, opcode: u64) -> Option<()> {
    (reader.len()? == opcode).then_some(())
}

fn read_number(reader: &mut Reader<'_>) -> Option<u64> {
    expect(reader, opcode::UNSIGNED)?;
    reader.len()
}

fn read_double(reader: &mut Reader<'_>) -> Option<f64> {
    expect(reader, opcode::DOUBLE)?;
    reader.double()
}

fn bloom(reader: &mut Reader<'_>) -> Option<Bloom> {
    let items = read_number(reader)?;
    let count = usize::try_from(read_number(reader)?).ok().filter(|count| *count <= MAX_FILTERS)?;
    let options = u32::try_from(read_number(reader)?).ok()?;
    let growth = u32::try_from(read_number(reader)?).ok()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let (capacity, error) = (read_number(reader)?, read_double(reader)?);
        let (hashes, bits_per_item) = (u32::try_from(read_number(reader)?).ok()?, read_double(reader)?);
        let (width, log) = (read_number(reader)?, u8::try_from(read_number(reader)?).ok()?);
        expect(reader, opcode::STRING)?;
        let bits = reader.string()?.into_owned().into_boxed_slice();
        let items = read_number(reader)?;
        parts.push((FilterShape { capacity, items, error, bits_per_item, hashes, width, log }, bits));
    }
    Bloom::of_parts(Shape { items, options, growth }, parts)
}

/// Steps over a value of any type, behind its number, or over what a module has left beside its values.
pub(super) fn skip(reader: &mut Reader<'_>) -> Option<()> {
    loop {
        match reader.len()? {
            opcode::END => return Some(()),
            opcode::SIGNED | opcode::UNSIGNED => drop(reader.len()?),
            opcode::FLOAT => drop(reader.take(size_of::<f32>())?),
            opcode::DOUBLE => drop(reader.take(size_of::<f64>())?),
            opcode::STRING => reader.skip_string()?,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::ValueRef;
    use crate::persistence::rdb::version::Fork;
    use crate::persistence::rdb::{Limits, Loaded, dump, restore};

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// As RedisJSON 2.8 and RedisBloom 2.8 dump them: a document; a filter that has grown, and one whose bits are a power of two.
    #[test]
    fn payloads_of_the_modules_are_read_and_written_again() {
        for payload in [
            "078145e25238df912c0305097b2261223a312e307d000a007387f8a1a8dcb768",
            "07813016e5a289bef804020b0202020502020205049a9999999999a93f0205044af7d49edef018400240400200050830c5a08c509a292802\
             05020a049a9999999999993f0206040bd81f7830b61e400240800200051081090043064d083070904250c00125a40206000a005a338314b65\
             9c766",
            "07813016e5a289bef80402010201020402020205049a9999999999a93f020504713d0ad7a3f018400240400206050830c5a08c509a292802\
             01000a0050626742a58e6116",
        ] {
            let payload = bytes(&payload.replace(char::is_whitespace, ""));
            let restored = restore(&payload, &Limits::default(), true, false);
            let Ok(Loaded::Object(object)) = restored else { panic!("{payload:x?} is a value") };
            let value: ValueRef<'_> = object.as_ref();
            assert!(dump(value, Fork::default()) == payload, "{}", value.type_name());
        }
    }

    #[test]
    fn types_have_the_numbers_that_files_have() {
        // As RedisJSON 2.8 and RedisBloom 2.8 write them.
        assert_eq!(JSON, 0x45e2_5238_df91_2c03);
        assert_eq!(BLOOM, 0x3016_e5a2_89be_f804);
        assert_eq!((name(JSON), name(BLOOM)), ("ReJSON-RL version 3".to_owned(), "MBbloom-- version 4".to_owned()));
    }
}
