//! Lists: one listpack while small, then a deque of them.

use std::collections::{VecDeque, vec_deque};

use super::listpack::{Form, Listpack, ListpackIter, Text};

/// How large a node of a list gets.
#[derive(Clone, Copy, Debug)]
pub struct ListLimits {
    /// `list-max-listpack-size`: entries of a node if positive; -1 to -5: 4, 8, 16, 32 or 64 kB of a node.
    pub max_listpack_size: i64,
}

/// The most that a node may hold in bytes where the setting counts entries.
const SAFE_BYTES: usize = 8192;

/// The header size that Redis assumes for an entry when it checks whether the entry fits into a node.
const ENTRY_OVERHEAD: usize = 8;

impl Default for ListLimits {
    fn default() -> Self {
        Self { max_listpack_size: -2 }
    }
}

impl ListLimits {
    /// The most bytes and the most entries of a node.
    fn most(self) -> (usize, usize) {
        match self.max_listpack_size {
            0 => (usize::MAX, 1),
            size @ 1.. => (usize::MAX, usize::try_from(size).unwrap_or(usize::MAX)),
            -1 => (4096, usize::MAX),
            -2 => (8192, usize::MAX),
            -3 => (16_384, usize::MAX),
            -4 => (32_768, usize::MAX),
            _ => (65_536, usize::MAX),
        }
    }

    fn exceeded_by(self, bytes: usize, count: usize) -> bool {
        let (most_bytes, most_count) = self.most();
        bytes > if most_bytes == usize::MAX { SAFE_BYTES } else { most_bytes } || count > most_count
    }
}

/// A sequence of values with two cheap ends.
///
/// ```
/// use redis_server::types::{List, ListLimits};
///
/// let mut list = List::default();
/// list.push_back(b"a", ListLimits::default());
/// list.push_front(b"b", ListLimits::default());
/// assert_eq!(list.pop_back(ListLimits::default(), |value| value.to_vec()), Some(b"a".to_vec()));
/// ```
#[derive(Clone)]
pub struct List(Repr);

#[derive(Clone)]
enum Repr {
    Packed(Listpack),
    Quick(Box<Quick>),
}

#[derive(Clone)]
struct Quick {
    /// Never empty; no node is, unless it is the only one.
    nodes: VecDeque<Listpack>,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self(Repr::Packed(Listpack::default()))
    }
}

impl List {
    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(list) => list.len(),
            Repr::Quick(quick) => quick.len,
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `value` as the first.
    pub fn push_front(&mut self, value: &[u8], limits: ListLimits) {
        self.make_room(value, limits);
        match &mut self.0 {
            Repr::Packed(list) => list.insert(0, &[Form::new(value)]),
            Repr::Quick(quick) => {
                if !fits(&quick.nodes[0], value, limits) {
                    quick.nodes[0].shrink();
                    quick.nodes.push_front(Listpack::default());
                }
                quick.nodes[0].insert(0, &[Form::new(value)]);
                quick.len += 1;
            }
        }
    }

    /// Adds `value` as the last.
    pub fn push_back(&mut self, value: &[u8], limits: ListLimits) {
        self.make_room(value, limits);
        match &mut self.0 {
            Repr::Packed(list) => list.push_back(&[Form::new(value)]),
            Repr::Quick(quick) => {
                let last = quick.nodes.len() - 1;
                if fits(&quick.nodes[last], value, limits) {
                    quick.nodes[last].push_back(&[Form::new(value)]);
                } else {
                    quick.nodes[last].shrink();
                    let mut node = Listpack::default();
                    node.push_back(&[Form::new(value)]);
                    quick.nodes.push_back(node);
                }
                quick.len += 1;
            }
        }
    }

    /// Removes the first value and hands it to `take`, whose answer is returned.
    pub fn pop_front<R>(&mut self, limits: ListLimits, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.pop(0, 0, limits, take)
    }

    /// Removes the last value and hands it to `take`, whose answer is returned.
    pub fn pop_back<R>(&mut self, limits: ListLimits, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let node = self.node_count() - 1;
        let end = self.node(node).end();
        if end == 0 {
            return None;
        }
        self.pop(node, self.node(node).previous(end), limits, take)
    }

    /// The value at `index`.
    pub fn get(&self, index: usize) -> Option<Text<'_>> {
        if index >= self.len() {
            return None;
        }
        let (node, index) = self.locate(index);
        let node = self.node(node);
        Some(node.get(node.seek(index)).into())
    }

    /// Replaces the value at `index`; false if there is none.
    pub fn set(&mut self, index: usize, value: &[u8], limits: ListLimits) -> bool {
        if index >= self.len() {
            return false;
        }
        self.make_room(value, limits);
        let (number, index) = self.locate(index);
        let node = self.node_mut(number);
        node.replace(node.seek(index), &Form::new(value));
        self.settle(number, limits);
        true
    }

    /// Puts `value` before the one at `index`, or at the end; false if `index` is beyond that.
    pub fn insert(&mut self, index: usize, value: &[u8], limits: ListLimits) -> bool {
        if index > self.len() {
            return false;
        }
        self.make_room(value, limits);
        let (number, index) = self.locate(index);
        let node = self.node_mut(number);
        node.insert(node.seek(index), &[Form::new(value)]);
        self.change_len(1);
        self.settle(number, limits);
        true
    }

    /// Calls `visit` with the index of each value equal to `value`, from the first on or backwards from the last,
    /// until it says false or `most` values were compared.
    pub fn find(&self, value: &[u8], backwards: bool, most: usize, visit: &mut dyn FnMut(usize) -> bool) {
        let form = Form::new(value);
        let mut left = most.min(self.len());
        let mut index = if backwards { self.len() } else { 0 };
        for turn in 0..self.node_count() {
            let node = self.node(if backwards { self.node_count() - 1 - turn } else { turn });
            let mut position = if backwards { node.end() } else { 0 };
            for _ in 0..node.len().min(left) {
                let (found, next) = if backwards {
                    position = node.previous(position);
                    index -= 1;
                    (node.is_at(position, &form).then_some(index), position)
                } else {
                    index += 1;
                    (node.is_at(position, &form).then(|| index - 1), node.next(position))
                };
                position = next;
                if found.is_some_and(|index| !visit(index)) {
                    return;
                }
            }
            left -= node.len().min(left);
        }
    }

    /// Removes the first `count` values equal to `value`, for a negative count the last ones, for zero all; how many.
    pub fn remove(&mut self, value: &[u8], count: i64, limits: ListLimits) -> usize {
        let most = if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
        let form = Form::new(value);
        let mut removed = 0;
        let mut number = if count < 0 { self.node_count() } else { 0 };
        while removed < most {
            if count < 0 {
                let Some(before) = number.checked_sub(1) else { break };
                number = before;
            } else if number >= self.node_count() {
                break;
            }
            let nodes = self.node_count();
            let gone = remove_from(self.node_mut(number), &form, most - removed, count < 0);
            self.change_len(-(gone as isize));
            removed += gone;
            if gone > 0 {
                self.drop_empty(number);
            }
            // A node that is gone leaves its number to the next one.
            if count >= 0 && self.node_count() == nodes {
                number += 1;
            }
        }
        self.shrink(limits);
        removed
    }

    /// Keeps only the values from `start` up to before `end`.
    pub fn trim(&mut self, start: usize, end: usize, limits: ListLimits) {
        let end = end.min(self.len());
        if start >= end {
            *self = Self::default();
            return;
        }
        let (last, index) = self.locate(end);
        while self.node_count() > last + 1 {
            self.remove_node(last + 1);
        }
        let node = self.node_mut(last);
        node.remove(node.seek(index), node.len() - index);
        self.change_len(-((self.len() - end) as isize));
        self.drop_empty(last);
        let (first, index) = self.locate(start);
        for _ in 0..first {
            self.remove_node(0);
        }
        self.node_mut(0).remove(0, index);
        self.change_len(-(start as isize));
        self.drop_empty(0);
        self.shrink(limits);
    }

    /// All values in order.
    pub fn iter(&self) -> ListIter<'_> {
        self.range(0, self.len())
    }

    /// The values from `start` up to before `end`; both are cut to the list.
    pub fn range(&self, start: usize, end: usize) -> ListIter<'_> {
        let end = end.min(self.len());
        if start >= end {
            return ListIter::default();
        }
        let (first, from) = self.locate(start);
        let (last, to) = self.locate(end);
        let left = end - start;
        match &self.0 {
            Repr::Quick(quick) if first != last => ListIter {
                front: quick.nodes[first].range(from, quick.nodes[first].len()),
                nodes: quick.nodes.range(first + 1..last),
                back: quick.nodes[last].range(0, to),
                left,
            },
            Repr::Quick(_) | Repr::Packed(_) => {
                ListIter { front: self.node(first).range(from, to), left, ..ListIter::default() }
            }
        }
    }

    /// The reply of `OBJECT ENCODING`: the name that Redis 7.0 has for every list, however small.
    pub fn encoding(&self) -> &'static str {
        "quicklist"
    }

    /// [`Self::encoding`], as it is since Redis 7.2: `listpack` for what is one.
    pub fn encoding_by_size(&self) -> &'static str {
        match self.0 {
            Repr::Packed(_) => "listpack",
            Repr::Quick(_) => "quicklist",
        }
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Repr::Packed(list) => list.memory(),
            Repr::Quick(quick) => {
                let nodes: usize = quick.nodes.iter().map(Listpack::memory).sum();
                size_of::<Quick>() + quick.nodes.capacity() * size_of::<Listpack>() + nodes
            }
        }
    }

    fn node_count(&self) -> usize {
        match &self.0 {
            Repr::Packed(_) => 1,
            Repr::Quick(quick) => quick.nodes.len(),
        }
    }

    fn node(&self, number: usize) -> &Listpack {
        match &self.0 {
            Repr::Packed(list) => list,
            Repr::Quick(quick) => &quick.nodes[number],
        }
    }

    fn node_mut(&mut self, number: usize) -> &mut Listpack {
        match &mut self.0 {
            Repr::Packed(list) => list,
            Repr::Quick(quick) => &mut quick.nodes[number],
        }
    }

    fn remove_node(&mut self, number: usize) {
        if let Repr::Quick(quick) = &mut self.0 {
            quick.nodes.remove(number);
        }
    }

    fn change_len(&mut self, by: isize) {
        if let Repr::Quick(quick) = &mut self.0 {
            quick.len = quick.len.strict_add_signed(by);
        }
    }

    /// The node of `index` and the index within; of the end: the last node and its length. Walks whole nodes from
    /// the nearer end.
    fn locate(&self, index: usize) -> (usize, usize) {
        let Repr::Quick(quick) = &self.0 else { return (0, index) };
        if index <= quick.len / 2 {
            let mut left = index;
            for (number, node) in quick.nodes.iter().enumerate() {
                if left < node.len() {
                    return (number, left);
                }
                left -= node.len();
            }
        }
        let mut left = quick.len - index;
        for (number, node) in quick.nodes.iter().enumerate().rev() {
            if left <= node.len() {
                return (number, node.len() - left);
            }
            left -= node.len();
        }
        (0, 0)
    }

    fn pop<R>(
        &mut self,
        number: usize,
        position: usize,
        limits: ListLimits,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let node = self.node_mut(number);
        if node.is_empty() {
            return None;
        }
        let taken = take(&Text::from(node.get(position)));
        node.remove(position, 1);
        self.change_len(-1);
        self.drop_empty(number);
        self.shrink(limits);
        Some(taken)
    }

    /// Leaves the compact form if `value` does not fit into it.
    #[inline]
    fn make_room(&mut self, value: &[u8], limits: ListLimits) {
        if let Repr::Packed(list) = &self.0
            && limits.exceeded_by(list.bytes() + value.len(), list.len() + 1)
        {
            self.grow();
        }
    }

    fn grow(&mut self) {
        if let Repr::Packed(list) = &mut self.0 {
            let quick = Quick { len: list.len(), nodes: VecDeque::from([std::mem::take(list)]) };
            self.0 = Repr::Quick(Box::new(quick));
        }
    }

    /// Back to the compact form when one node is left and half full at most.
    #[inline]
    fn shrink(&mut self, limits: ListLimits) {
        let Repr::Quick(quick) = &mut self.0 else { return };
        let (most_bytes, most_count) = limits.most();
        if quick.nodes.len() == 1 && quick.nodes[0].bytes() <= most_bytes / 2 && quick.len <= most_count / 2 {
            self.0 = Repr::Packed(std::mem::take(&mut quick.nodes[0]));
        }
    }

    /// Removes the node if it is empty and not the only one.
    fn drop_empty(&mut self, number: usize) {
        if self.node_count() > 1 && self.node(number).is_empty() {
            self.remove_node(number);
        }
    }

    /// Restores the limits after a change within a node.
    fn settle(&mut self, number: usize, limits: ListLimits) {
        let node = self.node(number);
        if limits.exceeded_by(node.bytes(), node.len()) {
            self.grow();
            self.split(number, limits);
        } else {
            self.shrink(limits);
        }
    }

    /// Halves the node until it and what it is split into keep the limits or hold one value.
    fn split(&mut self, number: usize, limits: ListLimits) {
        let Repr::Quick(quick) = &mut self.0 else { return };
        let node = &mut quick.nodes[number];
        if node.len() < 2 || !limits.exceeded_by(node.bytes(), node.len()) {
            return;
        }
        let middle = node.len() / 2;
        let upper = node.split_off(node.seek(middle), middle);
        quick.nodes.insert(number + 1, upper);
        self.split(number + 1, limits);
        self.split(number, limits);
    }
}

/// Whether `value` may be added to `node`.
#[inline]
fn fits(node: &Listpack, value: &[u8], limits: ListLimits) -> bool {
    node.is_empty() || !limits.exceeded_by(node.bytes() + value.len() + ENTRY_OVERHEAD, node.len() + 1)
}

/// Removes at most `most` entries equal to `form`; how many.
fn remove_from(node: &mut Listpack, form: &Form<'_>, most: usize, backwards: bool) -> usize {
    let mut removed = 0;
    let mut position = if backwards { node.end() } else { 0 };
    for _ in 0..node.len() {
        if backwards {
            position = node.previous(position);
        }
        if node.is_at(position, form) {
            node.remove(position, 1);
            removed += 1;
            if removed == most {
                break;
            }
        } else if !backwards {
            position = node.next(position);
        }
    }
    removed
}

/// Walks values of a [`List`], from both ends.
#[derive(Clone, Default)]
pub struct ListIter<'a> {
    front: ListpackIter<'a>,
    nodes: vec_deque::Iter<'a, Listpack>,
    back: ListpackIter<'a>,
    left: usize,
}

impl<'a> Iterator for ListIter<'a> {
    type Item = Text<'a>;

    #[inline]
    fn next(&mut self) -> Option<Text<'a>> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(value) = self.front.next() {
                return Some(value);
            }
            match self.nodes.next() {
                Some(node) => self.front = node.iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for ListIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(value) = self.back.next_back() {
                return Some(value);
            }
            match self.nodes.next_back() {
                Some(node) => self.back = node.iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

impl ExactSizeIterator for ListIter<'_> {}

#[cfg(test)]
mod tests {
    use super::super::testing::Rng;
    use super::*;

    const SIZES: [i64; 5] = [-1, 5, 0, 1, 128];

    fn value(rng: &mut Rng) -> Vec<u8> {
        match rng.below(50) {
            0 => vec![b'x'; rng.below(10_000)],
            1..20 => rng.below(5).to_string().into_bytes(),
            _ => format!("{:1$}", rng.below(5), rng.below(40) + 1).into_bytes(),
        }
    }

    impl List {
        fn is_packed(&self) -> bool {
            matches!(self.0, Repr::Packed(_))
        }
    }

    fn check(list: &List, model: &VecDeque<Vec<u8>>, rng: &mut Rng) {
        assert_eq!(list.len(), model.len());
        let (start, end) = (rng.below(model.len() + 1), rng.below(model.len() + 2));
        let expected: Vec<_> = model.iter().take(end).skip(start).cloned().collect();
        assert_eq!(list.range(start, end).map(|text| text.to_vec()).collect::<Vec<_>>(), expected);
        assert!(list.range(start, end).rev().map(|text| text.to_vec()).eq(expected.into_iter().rev()));
        let (mut both, mut ends) = (list.iter(), model.iter());
        while both.len() > 0 {
            let (value, expected) =
                if rng.below(2) == 0 { (both.next(), ends.next()) } else { (both.next_back(), ends.next_back()) };
            assert_eq!(value.as_deref(), expected.map(Vec::as_slice));
        }
    }

    fn remove(model: &mut VecDeque<Vec<u8>>, value: &[u8], count: i64) -> usize {
        let mut found: Vec<usize> = (0..model.len()).filter(|&i| model[i] == value).collect();
        let most = if count == 0 { found.len() } else { found.len().min(count.unsigned_abs() as usize) };
        let removed: Vec<usize> = if count < 0 { found.split_off(found.len() - most) } else { found[..most].into() };
        removed.iter().rev().for_each(|&i| drop(model.remove(i)));
        removed.len()
    }

    fn step(list: &mut List, model: &mut VecDeque<Vec<u8>>, rng: &mut Rng, limits: ListLimits) {
        let value = value(rng);
        let index = rng.below(model.len() + 2);
        match rng.below(40) {
            0..10 => {
                list.push_back(&value, limits);
                model.push_back(value);
            }
            10..20 => {
                list.push_front(&value, limits);
                model.push_front(value);
            }
            20..25 => assert_eq!(list.pop_front(limits, <[u8]>::to_vec), model.pop_front()),
            25..30 => assert_eq!(list.pop_back(limits, <[u8]>::to_vec), model.pop_back()),
            30..33 => {
                assert_eq!(list.set(index, &value, limits), index < model.len());
                if index < model.len() {
                    model[index] = value;
                }
            }
            33..36 => {
                assert_eq!(list.insert(index, &value, limits), index <= model.len());
                if index <= model.len() {
                    model.insert(index, value);
                }
            }
            36 => {
                let count = rng.below(5) as i64 - 2;
                assert_eq!(list.remove(&value, count, limits), remove(model, &value, count));
            }
            37 if rng.below(10) == 0 => {
                let end = rng.below(model.len() + 3);
                list.trim(index, end, limits);
                *model = model.iter().take(end).skip(index).cloned().collect();
            }
            _ => {
                assert_eq!(list.get(index).as_deref(), model.get(index).map(Vec::as_slice));
                let most = rng.below(model.len() + 2);
                let (mut forwards, mut backwards) = (vec![], vec![]);
                list.find(&value, false, most, &mut |index| {
                    forwards.push(index);
                    true
                });
                list.find(&value, true, most, &mut |index| {
                    backwards.push(index);
                    backwards.len() < 2
                });
                let len = model.len();
                assert!(forwards.into_iter().eq((0..len.min(most)).filter(|&i| model[i] == value)));
                let expected = (len.saturating_sub(most)..len).rev().filter(|&i| model[i] == value).take(2);
                assert!(backwards.into_iter().eq(expected));
            }
        }
    }

    #[test]
    fn behaves_like_a_deque() {
        for (seed, size) in SIZES.into_iter().enumerate() {
            let limits = ListLimits { max_listpack_size: size };
            let (mut list, mut model, mut rng) = (List::default(), VecDeque::new(), Rng::new(seed as u64));
            let mut encodings = [0, 0];
            for _ in 0..6000 {
                step(&mut list, &mut model, &mut rng, limits);
                check(&list, &model, &mut rng);
                encodings[usize::from(list.is_packed())] += 1;
            }
            assert!(encodings[0] > 0 && encodings[1] > 0, "both forms are met: {encodings:?}");
        }
    }

    #[test]
    fn returns_to_the_compact_form_at_half_the_limit() {
        let limits = ListLimits { max_listpack_size: 10 };
        let mut list = List::default();
        for len in 1..=11 {
            list.push_back(b"value", limits);
            assert_eq!(list.is_packed(), len <= 10);
        }
        for len in (1..11).rev() {
            list.pop_back(limits, |_| ());
            assert_eq!(list.is_packed(), len <= 5, "{len}");
        }
    }

    #[test]
    fn large_lists_stay_compact() {
        let mut list = List::default();
        for number in 0..100_000 {
            list.push_front(format!("value:{number}").as_bytes(), ListLimits::default());
        }
        assert!(list.memory() < 100_000 * 15, "{}", list.memory());
        assert_eq!(list.get(70_000).as_deref(), Some(&b"value:29999"[..]));
    }
}
