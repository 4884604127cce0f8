//! Writing header blocks that are known before the run.
//!
//! Fields that all requests of a run share enter the server's table with a connection's first request; from then on each is
//! one byte or two. So every block is made once, and written by a copy.

use super::huffman;
use super::integer::append_integer;
use super::table::{DEFAULT_TABLE_SIZE, ENTRY_OVERHEAD, FIRST_DYNAMIC, STATIC};

/// A header field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: Vec<u8>,
    /// Whether all requests of the run have it, in this order: then it enters the server's table.
    pub shared: bool,
}

impl Field {
    /// A field of one operation.
    pub fn own(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), value: value.into(), shared: false }
    }

    /// A field of all requests.
    pub fn shared(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), value: value.into(), shared: true }
    }
}

/// One operation's header block in the forms that a connection needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Of a connection's first request: enters the shared fields into the table.
    pub first: Form,
    /// Of later requests: names them by index.
    pub again: Form,
    /// Where the server allows no table: every field in full.
    pub plain: Form,
    /// The size of the table that `first` needs.
    pub table_size: usize,
}

/// A header block as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// All of it.
    pub bytes: Box<[u8]>,
    /// Where the pseudo-header fields end: a `:path` that is new with every request goes there.
    pub split: usize,
}

impl Block {
    /// The block of these fields, in this order. Pseudo-header fields come first, as the caller orders them.
    #[must_use]
    pub fn new(fields: &[Field]) -> Self {
        let entering = entering(fields);
        let number = entering.iter().filter(|enters| **enters).count();
        let pseudo = fields.iter().take_while(|field| field.name.starts_with(':')).count();
        let (mut first, mut again, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        let (mut table_size, mut seen, mut splits) = (0, 0, [0; 3]);
        for (place, (field, enters)) in fields.iter().zip(entering).enumerate() {
            if place == pseudo {
                splits = [first.len(), again.len(), plain.len()];
            }
            if let Some(index) = static_field(field) {
                for out in [&mut first, &mut again, &mut plain] {
                    append_integer(out, 0b1000_0000, 7, index);
                }
                continue;
            }
            append_short(&mut plain, Entry::Stays, field);
            if !enters {
                append_short(&mut first, Entry::Stays, field);
                append_short(&mut again, Entry::Stays, field);
                continue;
            }
            append_short(&mut first, Entry::Enters, field);
            seen += 1;
            // The newest entry has the lowest index.
            append_integer(&mut again, 0b1000_0000, 7, FIRST_DYNAMIC + number - seen);
            table_size += size(field);
        }
        if pseudo == fields.len() {
            splits = [first.len(), again.len(), plain.len()];
        }
        let form = |bytes: Vec<u8>, split| Form { bytes: bytes.into(), split };
        let [first_split, again_split, plain_split] = splits;
        Self {
            first: form(first, first_split),
            again: form(again, again_split),
            plain: form(plain, plain_split),
            table_size,
        }
    }
}

/// Whether a literal enters the table.
#[derive(Clone, Copy)]
enum Entry {
    Enters,
    Stays,
}

/// Which of the fields enter the table: shared ones that are not in the static table, as long as there is room.
fn entering(fields: &[Field]) -> Vec<bool> {
    let mut left = DEFAULT_TABLE_SIZE;
    fields
        .iter()
        .map(|field| {
            let enters = field.shared && static_field(field).is_none() && size(field) <= left;
            left -= if enters { size(field) } else { 0 };
            enters
        })
        .collect()
}

fn size(field: &Field) -> usize {
    field.name.len() + field.value.len() + ENTRY_OVERHEAD
}

/// The index of name and value in the static table.
fn static_field(field: &Field) -> Option<usize> {
    let found = STATIC.iter().position(|(name, value)| *name == field.name && value.as_bytes() == field.value);
    found.map(|place| place + 1)
}

fn static_name(name: &str) -> usize {
    STATIC.iter().position(|(known, _)| *known == name).map_or(0, |place| place + 1)
}

/// Appends a literal with its texts in Huffman code where that is shorter.
fn append_short(out: &mut Vec<u8>, entry: Entry, field: &Field) {
    let name = static_name(&field.name);
    match entry {
        Entry::Enters => append_integer(out, 0b0100_0000, 6, name),
        Entry::Stays => append_integer(out, 0, 4, name),
    }
    if name == 0 {
        append_text(out, field.name.as_bytes());
    }
    append_text(out, &field.value);
}

/// Appends a text behind its length, in Huffman code where that is shorter.
pub(in crate::codec) fn append_text(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::encoded_length(text);
    if coded < text.len() {
        append_integer(out, 0b1000_0000, 7, coded);
        huffman::encode(text, out);
    } else {
        append_integer(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

/// Appends a literal that is new with every request: not in the table, not in Huffman code.
pub(crate) fn append_literal(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let index = static_name(name);
    append_integer(out, 0, 4, index);
    if index == 0 {
        append_integer(out, 0, 7, name.len());
        out.extend_from_slice(name.as_bytes());
    }
    append_integer(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Appends the announcement of a smaller table (RFC 7541, 4.2).
pub(crate) fn append_table_size(out: &mut Vec<u8>, size: usize) {
    append_integer(out, 0b0010_0000, 5, size);
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    fn fields() -> Vec<Field> {
        vec![
            Field::shared(":method", "POST"),
            Field::shared(":authority", "127.0.0.1:50051"),
            Field::own(":path", "/helloworld.Greeter/SayHello"),
            Field::shared("content-type", "application/grpc"),
            Field::shared("te", "trailers"),
            Field::own("x-own", "1"),
        ]
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        decoder
            .decode(block, |name, value| found.push((String::from_utf8(name.to_vec()).unwrap(), value.to_vec())))
            .unwrap();
        found
    }

    #[test]
    fn all_forms_of_a_block_mean_the_same() {
        let block = Block::new(&fields());
        let expected: Vec<_> = fields().into_iter().map(|field| (field.name, field.value)).collect();
        let decoder = &mut Decoder::new();
        for form in [&block.plain, &block.first, &block.again, &block.again] {
            assert_eq!(decode(decoder, &form.bytes), expected);
        }
        assert!(block.again.bytes.len() < block.first.bytes.len());
    }

    #[test]
    fn a_path_fits_behind_the_pseudo_fields() {
        let fields = [Field::shared(":method", "GET"), Field::shared(":authority", "a"), Field::shared("x-b", "c")];
        let block = Block::new(&fields);
        let decoder = &mut Decoder::new();
        for form in [&block.first, &block.again, &block.plain] {
            let mut out = form.bytes[..form.split].to_vec();
            append_literal(&mut out, ":path", b"/7");
            out.extend_from_slice(&form.bytes[form.split..]);
            let names: Vec<_> = decode(decoder, &out).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, [":method", ":authority", ":path", "x-b"]);
        }
    }

    #[test]
    fn operations_share_the_table() {
        let mut other = fields();
        other[2].value = b"/another".to_vec();
        let (block, other_block) = (Block::new(&fields()), Block::new(&other));
        let decoder = &mut Decoder::new();
        decode(decoder, &block.first.bytes);
        let expected: Vec<_> = other.into_iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(decode(decoder, &other_block.again.bytes), expected);
    }

    #[test]
    fn oversized_fields_stay_out_of_the_table() {
        let fields = [Field::shared("x-long", vec![b'x'; 5000]), Field::shared("x-short", "y")];
        let block = Block::new(&fields);
        assert_eq!(block.table_size, 7 + 1 + 32);
        let decoder = &mut Decoder::new();
        assert_eq!(decode(decoder, &block.first.bytes), decode(&mut Decoder::new(), &block.plain.bytes));
        assert_eq!(decode(decoder, &block.again.bytes), decode(&mut Decoder::new(), &block.plain.bytes));
    }

    #[test]
    fn literals_of_one_request() {
        let mut out = Vec::new();
        append_literal(&mut out, ":path", b"/sample/path");
        append_literal(&mut out, "x-key", b"7");
        let expected = [(":path".to_owned(), b"/sample/path".to_vec()), ("x-key".to_owned(), b"7".to_vec())];
        assert_eq!(decode(&mut Decoder::new(), &out), expected);
    }
}
