//! Vector sets: four numbers, the projection, and each element with a list of numbers that says where it stands in the graph.
//!
//! The list begins with the element's number, and its level with the version of the list in the upper bits. For each level from 0 up follow
//! the count of links, their limit, and the numbers of the linked elements. Version 1 adds the farthest link behind them. Length and range
//! end the list, as two floats. The server writes version 0, which Redis reads: finding the farthest links would double the time.

use super::super::reader::Reader;
use super::super::save::{self, Sink, len};
use super::{VECTOR_SET, expect, number, opcode, read_number};
use crate::types::vector_set::{
    MAX_DIMENSIONS, MAX_M, Node, Projection, Quantization, VectorSet, VectorSetBuilder, VectorSetOptions,
};

/// Flags of the fourth number.
const HAS_PROJECTION: u64 = 1;
const HAS_ATTRIBUTES: u64 = 2;

/// M of sets from before it could be chosen.
const OLD_M: u64 = 16;
/// The newest version of an element's list.
const NEWEST: u64 = 1;
/// The most links that Redis gives an element, for each link that may be asked for.
const MAX_EXCESS: u64 = 4;
/// Bytes of factors that are written at once.
const PIECE: usize = 16 * 1024;

/// A set, behind the type.
pub(in super::super) fn save(out: &mut impl Sink, set: &VectorSet) {
    let VectorSetOptions { quantization, projection, m } = set.options();
    let quantization = match quantization {
        Quantization::None => 0,
        Quantization::Q8 => 1,
        Quantization::Binary => 2,
    };
    let has_attributes = set.attributed() > 0;
    let flags = if projection.is_some() { HAS_PROJECTION } else { 0 } | if has_attributes { HAS_ATTRIBUTES } else { 0 };
    len(out, VECTOR_SET);
    number(out, set.dimensions() as u64);
    number(out, set.len() as u64);
    number(out, quantization | (*m as u64) << 8);
    number(out, flags);
    if let Some(projection) = projection {
        save_projection(out, projection);
    }
    for node in set.nodes() {
        string(out, node.name);
        if has_attributes {
            string(out, node.attributes);
        }
        string(out, &node.vector);
        save_place(out, &node, *m);
    }
    len(out, opcode::END);
}

fn string(out: &mut impl Sink, text: &[u8]) {
    len(out, opcode::STRING);
    save::string(out, text);
}

fn save_projection(out: &mut impl Sink, projection: &Projection) {
    number(out, projection.input() as u64);
    len(out, opcode::STRING);
    len(out, (projection.input() * projection.output() * size_of::<f32>()) as u64);
    let mut piece = Vec::with_capacity(PIECE);
    for factor in projection.matrix() {
        piece.extend_from_slice(&factor.to_le_bytes());
        if piece.len() >= PIECE {
            out.put(&piece);
            piece.clear();
        }
    }
    out.put(&piece);
}

fn save_place(out: &mut impl Sink, node: &Node<'_>, m: usize) {
    let links: usize = node.levels.iter().map(|links| 2 + links.len()).sum();
    number(out, (2 + links + 1) as u64);
    number(out, node.id);
    number(out, (node.levels.len() - 1) as u64);
    for (level, links) in node.levels.iter().enumerate() {
        let most = if level == 0 { 2 * m } else { m };
        number(out, links.len() as u64);
        number(out, most.max(links.len()) as u64);
        links.iter().for_each(|link| number(out, *link));
    }
    number(out, u64::from(node.range.to_bits()) << 32 | u64::from(node.length.to_bits()));
}

/// A set, behind the type; none if it is damaged.
pub(super) fn load(reader: &mut Reader<'_>) -> Option<VectorSet> {
    let dimensions = usize::try_from(read_number(reader)?).ok().filter(|dimensions| *dimensions <= MAX_DIMENSIONS)?;
    let (elements, config, flags) = (read_number(reader)?, read_number(reader)?, read_number(reader)?);
    let quantization = match config & 0xff {
        0 => Quantization::None,
        1 => Quantization::Q8,
        2 => Quantization::Binary,
        _ => return None,
    };
    let m = match config >> 8 & 0xffff {
        0 => OLD_M,
        m => m,
    };
    let projection = if flags & HAS_PROJECTION == 0 { None } else { Some(projection(reader, dimensions)?) };
    let input = projection.as_ref().map_or(dimensions, Projection::input);
    let options = VectorSetOptions { quantization, projection, m: (m as usize).min(MAX_M) };
    let mut builder = VectorSetBuilder::new(input, options).ok()?;
    for _ in 0..elements {
        let name = read_string(reader)?;
        let attributes = if flags & HAS_ATTRIBUTES == 0 { Default::default() } else { read_string(reader)? };
        let vector = read_string(reader)?;
        if vector.len() != builder.vector_size() {
            return None;
        }
        let Place { id, levels, length, range } = place(reader)?;
        let (name, attributes) = (&*name, &*attributes);
        builder.push(Node { name, attributes, id, vector: vector.into_owned(), length, range, levels })?;
    }
    Some(builder.finish()?.into())
}

fn read_string<'r>(reader: &mut Reader<'r>) -> Option<std::borrow::Cow<'r, [u8]>> {
    expect(reader, opcode::STRING)?;
    reader.string()
}

fn projection(reader: &mut Reader<'_>, dimensions: usize) -> Option<Projection> {
    let input = usize::try_from(read_number(reader)?).ok()?;
    let matrix = read_string(reader)?;
    let (factors, rest) = matrix.as_chunks::<4>();
    let factors = factors.iter().map(|factor| f32::from_le_bytes(*factor)).collect();
    let projection = Projection::from_matrix(input, factors).ok()?;
    (rest.is_empty() && projection.output() == dimensions).then_some(projection)
}

/// Where an element stands in the graph.
struct Place {
    id: u64,
    levels: Vec<Vec<u64>>,
    length: f32,
    range: f32,
}

fn place(reader: &mut Reader<'_>) -> Option<Place> {
    let mut left = read_number(reader)?;
    let mut next = || {
        left = left.checked_sub(1)?;
        read_number(reader)
    };
    let (id, head) = (next()?, next()?);
    let (level, version) = (head & 0xff, head >> 24 & 0xff);
    (version <= NEWEST).then_some(())?;
    let mut levels = Vec::new();
    for _ in 0..=level {
        let (count, most) = (next()?, next()?);
        (count <= most && most <= MAX_EXCESS * MAX_M as u64).then_some(())?;
        levels.push((0..count).map(|_| next()).collect::<Option<Vec<_>>>()?);
        if version > 0 {
            next()?;
        }
    }
    let both = next()?;
    let (length, range) = (f32::from_bits(both as u32), f32::from_bits((both >> 32) as u32));
    (left == 0).then_some(Place { id, levels, length, range })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Object;
    use crate::persistence::rdb::version::Fork;
    use crate::persistence::rdb::{Limits, Loaded, dump, restore};

    fn bytes(hex: &str) -> Vec<u8> {
        let hex = hex.replace(char::is_whitespace, "");
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn restored(payload: &[u8]) -> Option<VectorSet> {
        match restore(payload, &Limits::default(), true, false) {
            Ok(Loaded::Object(Object::VectorSet(set))) => Some(*set),
            _ => None,
        }
    }

    /// As Redis 8.0.6 dumps a set with attributes and M 4, one of bits with a projection, and one of floats.
    #[test]
    fn payloads_of_redis_are_read_and_written_again() {
        for (payload, names, vector) in [
            (
                "0781bde72da2bb1eb4000203020302440102020501630500050300007f020b0203028001000001020202080201020202813f47b24400000001\
                 02000204020002813f8000003f80000005c07f05000503c17f2002080202028001000000020202080201020302813f47b2440000000102813f5f\
                 74824012a47605016105077b2278223a317d05032a557f02080201028001000000020202080202020302813ef0ac620000000002813f4d41b240\
                 6f7751000c0061c24309333a49f5",
                &["c", "127", "a"][..],
                [0.992_125_9, 2.007_874, 3.0],
            ),
            (
                "0781bde72da2bb1eb400020202010250020201020305c30f18043acd133f3ae0050300bf200f003f0501610508030000000000000002060201\
                 02800100000002000220020002813f23f7984069b1e9000c00948ea491eb906362",
                &["a"],
                [1.0, 1.0, 0.0],
            ),
            (
                "0781bde72da2bb1eb40002020201025000020005016105089a99193fcdcc4c3f02090201028001000001020002200200020002100200028040\
                 a00000000c006da950907c88e5e5",
                &["a"],
                [3.0, 4.0, 0.0],
            ),
        ] {
            let set = restored(&bytes(payload)).expect("it is a set");
            let found: Vec<_> = set.nodes().map(|node| String::from_utf8_lossy(node.name).into_owned()).collect();
            assert_eq!(found, names);
            let decoded = set.vector(b"a").expect("it is there");
            assert_eq!(decoded, vector[..decoded.len()]);
            let again =
                restored(&dump(crate::keyspace::ValueRef::VectorSet(&set), Fork::default())).expect("it is a set");
            assert!(set.nodes().eq(again.nodes()) && set.options() == again.options());
        }
    }

    /// Elements by numbers: a name, a number, and its links of level 0, of which M allows eight.
    fn payload(elements: &[(&str, u64, &[u64])]) -> Vec<u8> {
        payload_with(8, elements)
    }

    /// The same with a limit of links that may be another.
    fn payload_with(most: u64, elements: &[(&str, u64, &[u64])]) -> Vec<u8> {
        let mut out = vec![super::super::super::kind::MODULE_2];
        len(&mut out, VECTOR_SET);
        [1, elements.len() as u64, 1 | 4 << 8, 0].into_iter().for_each(|it| number(&mut out, it));
        for (name, id, links) in elements {
            string(&mut out, name.as_bytes());
            string(&mut out, &[7]);
            number(&mut out, 5 + links.len() as u64);
            [*id, 0, links.len() as u64, most].iter().chain(*links).for_each(|it| number(&mut out, *it));
            number(&mut out, 1);
        }
        len(&mut out, opcode::END);
        super::super::super::sign(&mut out);
        out
    }

    /// Redis gives an element more links than M allows, rather than leave another one without any.
    #[test]
    fn elements_with_more_links_than_m_allows_are_read_and_written_again() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let others: Vec<u64> = (2..=10).collect();
        let links = |id: u64| if id == 1 { &others[..] } else { &[1] };
        let star: Vec<_> = names.into_iter().zip(1..).map(|(name, id)| (name, id, links(id))).collect();
        let set = restored(&payload_with(16, &star)).expect("it is a set");
        let again = restored(&dump(crate::keyspace::ValueRef::VectorSet(&set), Fork::default()));
        assert!(again.is_some_and(|again| set.nodes().eq(again.nodes())));
    }

    #[test]
    fn malformed_graphs_are_refused() {
        assert!(restored(&payload(&[("a", 1, &[2]), ("b", 2, &[1])])).is_some());
        for (elements, why) in [
            (&[("a", 1, &[2][..]), ("b", 2, &[])][..], "a link goes one way"),
            (&[("a", 1, &[1]), ("b", 2, &[])], "an element links to itself"),
            (&[("a", 1, &[3]), ("b", 2, &[])], "a link goes nowhere"),
            (&[("a", 1, &[2, 2]), ("b", 2, &[1, 1])], "a link is there twice"),
            (&[("a", 1, &[]), ("a", 2, &[])], "a name is there twice"),
            (&[("a", 1, &[]), ("b", 1, &[])], "a number is there twice"),
            (&[("a", 1, &[2, 3, 4, 5, 6, 7, 8, 9, 10])], "there are more links than may be"),
        ] {
            assert!(restored(&payload(elements)).is_none(), "{why}");
        }
    }
}
