//! The circuits of distribution boards (class 0287): lists of values by channel.
//!
//! A board counts channels that measure one direction (simplex) apart from those that measure both (duplex). A list has
//! the values of a range of channels, which another property chooses. A list of many channels is read in parts.

use std::collections::{BTreeMap, HashMap};

use echonet_lite::class::{self, Array, Class, Data, PropertySpec, Value};
use echonet_lite::controller::{NodeAddr, NodeId, PropertyMaps, Request};
use echonet_lite::net::{Endpoint, Error};
use echonet_lite::wire::{ClassCode, Eoj, PropertySet};

use crate::render;

const BOARD: ClassCode = ClassCode::new(0x02, 0x87);

/// A list of values of circuits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) epc: u8,
    /// The property that chooses the range.
    range: u8,
    /// The property that tells the number of channels.
    number: u8,
    /// The kind of channels: `simplex` or `duplex`.
    pub(crate) kind: &'static str,
    pub(crate) quantity: &'static str,
}

const fn simplex(epc: u8, range: u8, quantity: &'static str) -> List {
    List { epc, range, number: 0xB1, kind: "simplex", quantity }
}

const fn duplex(epc: u8, range: u8, quantity: &'static str) -> List {
    List { epc, range, number: 0xB8, kind: "duplex", quantity }
}

static LISTS: [List; 6] = [
    simplex(0xB3, 0xB2, "energy"),
    simplex(0xB5, 0xB4, "current"),
    simplex(0xB7, 0xB6, "power"),
    duplex(0xBA, 0xB9, "energy"),
    duplex(0xBC, 0xBB, "current"),
    duplex(0xBE, 0xBD, "power"),
];

/// The lists that an object has: those that can be read, as the number of their channels can.
pub(crate) fn lists(class: &Class, maps: &PropertyMaps) -> impl Iterator<Item = &'static List> + use<> {
    let readable = if class.code == BOARD { maps.readable } else { PropertySet::EMPTY };
    LISTS.iter().filter(move |list| readable.contains(list.epc) && readable.contains(list.number))
}

/// The properties that the values of single circuits stand for: the lists and their ranges.
pub(crate) fn replaced(class: &Class, maps: &PropertyMaps) -> PropertySet {
    lists(class, maps).fold(PropertySet::EMPTY, |set, list| set.with(list.epc).with(list.range))
}

/// The properties that tell how many channels an object has.
#[cfg(feature = "web")]
pub(crate) fn numbers(class: &Class, maps: &PropertyMaps) -> PropertySet {
    lists(class, maps).fold(PropertySet::EMPTY, |set, list| set.with(list.number))
}

/// The list of a quantity for a kind of channels.
#[cfg(feature = "web")]
pub(crate) fn list(kind: &str, quantity: &str) -> Option<&'static List> {
    LISTS.iter().find(|list| (list.kind, list.quantity) == (kind, quantity))
}

impl List {
    pub(crate) fn spec(&self) -> Option<&'static PropertySpec> {
        class::find(BOARD)?.property(self.epc)
    }

    fn array(&self) -> Option<&'static Array> {
        let Data::Object(fields) = self.spec()?.data else { return None };
        fields.iter().find_map(|field| if let Data::Array(array) = field.data { Some(array) } else { None })
    }

    /// The type of a channel's value.
    pub(crate) fn items(&self) -> Option<&'static Data> {
        self.array().map(|array| array.items)
    }

    /// The number of channels that a board tells; 0 while it tells none.
    pub(crate) fn channels(&self, values: &HashMap<u8, Vec<u8>>) -> u8 {
        let number = || {
            let (_, value) = render::decode(class::find(BOARD)?, self.number, values.get(&self.number)?)?;
            u8::try_from(value.number()?.raw).ok()
        };
        number().unwrap_or(0)
    }

    /// The ranges in which a number of channels is read.
    fn parts(&'static self, channels: u8) -> impl Iterator<Item = Part> {
        // 60 or 30 channels: 242 bytes at most, which fit one property.
        let most = self.array().map_or(0, |array| array.maximum).max(1);
        let part =
            move |start| Part { list: self, start, count: most.min(channels - start + 1), is_whole: channels <= most };
        (1..=channels).step_by(most.into()).map(part)
    }
}

/// All ranges in which the values of an object's circuits are read.
pub(crate) fn parts(class: &Class, maps: &PropertyMaps, values: &HashMap<u8, Vec<u8>>) -> Vec<Part> {
    lists(class, maps).flat_map(|list| list.parts(list.channels(values))).collect()
}

/// A range of the channels of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) list: &'static List,
    start: u8,
    count: u8,
    /// The list has no other channels.
    is_whole: bool,
}

impl Part {
    /// The values of its channels, if a list tells as many, and of these channels.
    fn items<'a>(&self, edt: &'a [u8]) -> Option<std::slice::ChunksExact<'a, u8>> {
        let [start, count, items @ ..] = edt else { return None };
        let size = usize::from(self.list.array()?.item_size).max(1);
        let is_told = (*start, *count) == (self.start, self.count) && items.len() == usize::from(self.count) * size;
        is_told.then(|| items.chunks_exact(size))
    }
}

/// Reads a part; none if the board tells other channels, or not as many values as it says.
///
/// # Errors
/// The board does not answer.
pub(crate) async fn read(
    endpoint: &Endpoint,
    (addr, node): (NodeAddr, NodeId),
    (eoj, writable): (Eoj, PropertySet),
    part: Part,
) -> Result<Option<Vec<u8>>, Error> {
    let list = part.list;
    // A board keeps the range: where a list has one part, that of the last question.
    let tries: &[bool] = match (writable.contains(list.range), part.is_whole) {
        (false, _) => &[false],
        (true, true) => &[false, true],
        (true, false) => &[true],
    };
    for is_chosen in tries {
        let epcs = [list.epc];
        let mut question = Request::get(eoj, &epcs);
        if *is_chosen {
            let range = [part.start, part.count];
            let writes = [(list.range, &range[..])];
            if !endpoint.request(addr, &Request::set(eoj, &writes).only_to(node)).await?.is_ok() {
                return Ok(None);
            }
            question = question.fresh();
        }
        let answer = endpoint.request(addr, &question).await?;
        let edt = answer.outcomes().find_map(|outcome| Some(outcome.value?.to_vec()));
        if let Some(edt) = edt.filter(|edt| part.items(edt).is_some()) {
            return Ok(Some(edt));
        }
    }
    Ok(None)
}

/// The values of an object's circuits.
#[derive(Debug, Default)]
pub(crate) struct Circuits(BTreeMap<(u8, u8), Vec<u8>>);

impl Circuits {
    /// Takes the answer for a part; the channels that have another value than before.
    pub(crate) fn take(&mut self, part: Part, edt: &[u8]) -> Vec<u8> {
        let mut changed = Vec::new();
        for (channel, item) in (part.start..).zip(part.items(edt).into_iter().flatten()) {
            // As a list of one channel, so that the tables decode it.
            let alone = [&[channel, 1][..], item].concat();
            if self.0.get(&(part.list.epc, channel)) != Some(&alone) {
                self.0.insert((part.list.epc, channel), alone);
                changed.push(channel);
            }
        }
        changed
    }

    /// True if a channel has told something.
    #[cfg(feature = "mqtt")]
    pub(crate) fn knows(&self, list: &List, channel: u8) -> bool {
        self.0.contains_key(&(list.epc, channel))
    }

    /// The value of a channel; none if it is not known, or none that the list can have.
    pub(crate) fn value(&self, list: &List, channel: u8) -> Option<Value<'_>> {
        let Value::Object(mut fields) = list.spec()?.decode(self.0.get(&(list.epc, channel))?).ok()? else {
            return None;
        };
        fields.find_map(|(_, value)| value.items().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> (&'static Class, PropertyMaps) {
        let class = class::find(BOARD).unwrap();
        let readable = LISTS.iter().flat_map(|list| [list.epc, list.range, list.number]);
        let readable = readable.fold(PropertySet::EMPTY, PropertySet::with);
        (class, PropertyMaps { readable, ..PropertyMaps::default() })
    }

    #[test]
    fn lists_agree_with_the_tables() {
        let (class, maps) = board();
        for list in &LISTS {
            let (spec, array) = (list.spec().unwrap(), list.array().unwrap());
            assert_eq!(spec.atomic, Some(list.range), "{:02X}", list.epc);
            assert!(spec.short_name.to_lowercase().ends_with(list.kind), "{}", spec.short_name);
            assert!(spec.short_name.to_lowercase().contains(list.quantity), "{}", spec.short_name);
            assert!(2 + usize::from(array.maximum) * usize::from(array.item_size) <= 242, "{:02X}", list.epc);
            assert!(class.property(list.number).unwrap().short_name.to_lowercase().ends_with(list.kind));
        }
        let known: Vec<_> = class
            .properties
            .iter()
            .filter(|spec| matches!(spec.data, Data::Object([start, ..]) if start.short_name == "startChannel"))
            .collect();
        let all = replaced(class, &maps);
        assert_eq!(
            known.iter().fold(PropertySet::EMPTY, |set, spec| set.with(spec.epc)),
            all,
            "no other lists are there"
        );
        let without = PropertyMaps { readable: PropertySet::of(&[0xB3, 0xB7, 0xB8]), ..maps };
        assert_eq!(lists(class, &without).count(), 0, "nothing tells how many channels there are");
        assert_eq!(lists(class::by_name("0288").unwrap(), &maps).count(), 0);
    }

    #[test]
    fn all_channels_are_read_in_parts() {
        let (class, maps) = board();
        for (simplex, duplex, expected) in [
            (None, None, 0),
            (Some(0), Some(0xFD), 0),
            (Some(0xFE), Some(0xFF), 0),
            (Some(1), None, 3),
            // banban525/echonetlite2mqtt 46: a board with 43 circuits.
            (Some(43), None, 3),
            (Some(60), Some(30), 6),
            (Some(61), Some(31), 6 + 2 + 1 + 1),
            (Some(252), Some(252), 15 + 9 + 10),
        ] {
            let told = [(0xB1, simplex), (0xB8, duplex)];
            let values = told.into_iter().filter_map(|(epc, number)| Some((epc, vec![number?]))).collect();
            let parts = parts(class, &maps, &values);
            assert_eq!(parts.len(), expected, "{simplex:?} {duplex:?}");
            for list in &LISTS {
                let of_list = parts.iter().filter(|part| part.list == list);
                let channels: Vec<_> = of_list.flat_map(|part| (part.start..).take(part.count.into())).collect();
                assert!(channels.iter().copied().eq(1..=list.channels(&values)), "{list:?}: {channels:?}");
            }
        }
    }

    #[test]
    fn an_answer_that_is_not_of_the_part_is_not_taken() {
        let values = HashMap::from([(0xB1, vec![62])]);
        let (class, maps) = board();
        let parts = parts(class, &maps, &values);
        let [first, second] = [parts[0], parts[1]];
        assert_eq!((second.start, second.count), (61, 2));
        let energy = |number: u8| [0, 0, 0, number];
        let right = [&[61, 2][..], &energy(7), &[0xFF, 0xFF, 0xFF, 0xFE]].concat();
        let mut circuits = Circuits::default();
        for wrong in [
            &[][..],
            &[61],
            &[61, 2],
            &right[..9],
            &[&right[..], &[0]].concat(),
            &[&right[..], &energy(9)].concat(),
            &[&[1, 2][..], &right[2..]].concat(),
            &[&[61, 1][..], &right[2..]].concat(),
            &[&[61, 3][..], &right[2..]].concat(),
            &[&[61, 3][..], &right[2..], &energy(9)].concat(),
            &[0xFD, 0xFD],
        ] {
            assert!(circuits.take(second, wrong).is_empty(), "{wrong:02X?}");
        }
        assert!(circuits.take(first, &right).is_empty());
        assert_eq!(circuits.take(second, &right), [61, 62]);
        assert!(circuits.take(second, &right).is_empty(), "nothing has changed");
        let value = |channel| circuits.value(second.list, channel);
        assert_eq!(value(61).unwrap().number().unwrap().raw, 7);
        assert_eq!(value(62).unwrap().state(), Some("noData"));
        assert_eq!((value(1), value(63)), (None, None));
        // One value that is none leaves the others alone.
        let mixed = [&[61, 2][..], &[0xFF; 4], &energy(8)].concat();
        assert_eq!(circuits.take(second, &mixed), [61, 62]);
        let value = |channel| circuits.value(second.list, channel);
        assert_eq!((value(61), value(62).unwrap().number().unwrap().raw), (None, 8));
    }
}
