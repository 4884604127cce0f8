//! The order of a large sorted set: a B+ tree of (score, id) that counts what lies below each node.
//!
//! The tree does not know the members that ids stand for; the caller of a search brings the comparison. Every question is asked as "how
//! many keys, from the first on, satisfy this": ranks are the only positions.

use std::ops::Range;

/// Keys of a leaf; a leaf then takes 760 bytes, just under an allocator's size class.
const LEAF: usize = 63;

/// Children of a branch.
const BRANCH: usize = 32;

/// Keys of a leaf, and children of a branch, of a tree that is made at once: full enough to save memory, with room for
/// additions before nodes split.
const LEAF_FILL: usize = LEAF * 7 / 8;
const BRANCH_FILL: usize = BRANCH * 7 / 8;

/// A key: score and id of an element.
pub(super) type Key = (f64, u32);

#[derive(Clone)]
pub(super) struct RankTree {
    root: Node,
    len: usize,
}

#[derive(Clone)]
enum Node {
    Leaf(Box<Leaf>),
    Branch(Vec<Child>),
}

#[derive(Clone)]
struct Child {
    /// The first key below.
    first: Key,
    /// Keys below.
    count: usize,
    node: Node,
}

#[derive(Clone)]
pub(super) struct Leaf {
    scores: [f64; LEAF],
    ids: [u32; LEAF],
    len: u32,
}

impl Default for RankTree {
    fn default() -> Self {
        Self { root: Node::Leaf(Leaf::new()), len: 0 }
    }
}

impl RankTree {
    /// The tree of `keys`, which are in order.
    pub(super) fn from_sorted(keys: &[Key]) -> Self {
        let mut level: Vec<Node> =
            shares(keys.len(), LEAF_FILL).map(|share| Leaf::of(&keys[share])).map(Node::Leaf).collect();
        while level.len() > 1 {
            let shares = shares(level.len(), BRANCH_FILL);
            let mut nodes = level.into_iter();
            level = shares
                .map(|share| {
                    let mut children = Vec::with_capacity(BRANCH);
                    children.extend(nodes.by_ref().take(share.len()).map(Child::new));
                    Node::Branch(children)
                })
                .collect();
        }
        level.pop().map_or_else(Self::default, |root| Self { root, len: keys.len() })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds `key`, before which the keys belong that satisfy `before`.
    pub(super) fn insert(&mut self, key: Key, before: &impl Fn(Key) -> bool) {
        self.len += 1;
        if let Some(right) = self.root.insert(key, true, before) {
            let left = std::mem::replace(&mut self.root, Node::Branch(Vec::with_capacity(BRANCH)));
            if let Node::Branch(children) = &mut self.root {
                children.extend([Child::new(left), Child::new(right)]);
            }
        }
    }

    /// Removes the last of the keys that satisfy `up_to`.
    pub(super) fn remove(&mut self, up_to: &impl Fn(Key) -> bool) {
        self.len -= 1;
        self.root.remove(up_to);
        while let Node::Branch(children) = &mut self.root
            && children.len() == 1
            && let Some(child) = children.pop()
        {
            self.root = child.node;
        }
    }

    /// Gives `key` another score; `up_to` makes the test whether a key precedes or is the given one.
    pub(super) fn change<F: Fn(Key) -> bool>(&mut self, key: Key, score: f64, up_to: impl Fn(Key) -> F) {
        let (old_place, new_place) = (up_to(key), up_to((score, key.1)));
        if !self.change_in_leaf(score, &old_place, &new_place) {
            self.remove(&old_place);
            self.insert((score, key.1), &new_place);
        }
    }

    /// Gives the last of the keys that satisfy `up_to` another score, where that moves it only within its leaf: one
    /// descent instead of two. `before` is true of the keys before its new place. False: nothing has changed.
    fn change_in_leaf(&mut self, score: f64, up_to: &impl Fn(Key) -> bool, before: &impl Fn(Key) -> bool) -> bool {
        let mut node = &mut self.root;
        let mut is_root = true;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let old = leaf.count_while(up_to) - 1;
                    let count = leaf.count_while(before);
                    let new = if count > old { count - 1 } else { count };
                    // The branches above know the first key.
                    let stays = is_root || (old > 0 && new > 0);
                    if stays {
                        leaf.change(old, new, score);
                    }
                    return stays;
                }
                Node::Branch(children) => {
                    let index = child_index(children, up_to);
                    let leaves = !before(children[index].first)
                        || children.get(index + 1).is_some_and(|next| before(next.first));
                    if leaves {
                        return false;
                    }
                    node = &mut children[index].node;
                    is_root = false;
                }
            }
        }
    }

    /// Gives the last of the keys that satisfy `up_to`, which has the id `old`, the id `new`.
    pub(super) fn set_id(&mut self, old: u32, new: u32, up_to: &impl Fn(Key) -> bool) {
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let index = leaf.count_while(up_to) - 1;
                    leaf.ids[index] = new;
                    return;
                }
                Node::Branch(children) => {
                    let index = child_index(children, up_to);
                    let child = &mut children[index];
                    if child.first.1 == old {
                        child.first.1 = new;
                    }
                    node = &mut child.node;
                }
            }
        }
    }

    /// How many keys satisfy `wanted`, which must be true of the keys up to some place and false after it.
    pub(super) fn count_while(&self, wanted: &impl Fn(Key) -> bool) -> usize {
        let (mut node, mut count) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(leaf) => return count + leaf.count_while(wanted),
                Node::Branch(children) => {
                    let index = child_index(children, wanted);
                    count += children[..index].iter().map(|child| child.count).sum::<usize>();
                    node = &children[index].node;
                }
            }
        }
    }

    /// The leaf of the key with this rank, and the place in it. There must be such a key.
    pub(super) fn select(&self, rank: usize) -> (&Leaf, usize) {
        let (mut node, mut left) = (&self.root, rank);
        loop {
            match node {
                Node::Leaf(leaf) => return (leaf, left),
                Node::Branch(children) => {
                    let mut index = 0;
                    while left >= children[index].count {
                        left -= children[index].count;
                        index += 1;
                    }
                    node = &children[index].node;
                }
            }
        }
    }

    /// Heap bytes.
    pub(super) fn memory(&self) -> usize {
        self.root.memory()
    }
}

/// Cuts `0..len` into the fewest parts of at most `most`, all about the same size.
fn shares(len: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = len.div_ceil(most);
    (0..parts).map(move |part| len * part / parts..len * (part + 1) / parts)
}

/// The child that holds the last key that satisfies `wanted`; the first one where none does.
#[inline]
fn child_index(children: &[Child], wanted: &impl Fn(Key) -> bool) -> usize {
    children[1..].partition_point(|child| wanted(child.first))
}

impl Child {
    fn new(node: Node) -> Self {
        Self { first: node.first(), count: node.count(), node }
    }
}

impl Node {
    fn first(&self) -> Key {
        match self {
            Self::Leaf(leaf) => leaf.key(0),
            Self::Branch(children) => children[0].first,
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Branch(children) => children.iter().map(|child| child.count).sum(),
        }
    }

    /// Adds a key; the right half if the node had to be split. `rightmost` nodes are split at their end, so that
    /// ascending additions leave full nodes behind.
    fn insert(&mut self, key: Key, rightmost: bool, before: &impl Fn(Key) -> bool) -> Option<Self> {
        match self {
            Self::Leaf(leaf) => leaf.insert(key, rightmost, before).map(Self::Leaf),
            Self::Branch(children) => {
                let index = child_index(children, before);
                let last = index == children.len() - 1;
                let child = &mut children[index];
                let split = child.node.insert(key, rightmost && last, before);
                child.first = child.node.first();
                let Some(right) = split else {
                    child.count += 1;
                    return None;
                };
                child.count = child.node.count();
                children.insert(index + 1, Child::new(right));
                if children.len() < BRANCH {
                    return None;
                }
                let middle = if rightmost && last { BRANCH - 1 } else { BRANCH / 2 };
                let mut right = Vec::with_capacity(BRANCH);
                right.extend(children.drain(middle..));
                Some(Self::Branch(right))
            }
        }
    }

    fn remove(&mut self, up_to: &impl Fn(Key) -> bool) {
        match self {
            Self::Leaf(leaf) => {
                let index = leaf.count_while(up_to) - 1;
                leaf.remove(index);
            }
            Self::Branch(children) => {
                let index = child_index(children, up_to);
                let child = &mut children[index];
                child.node.remove(up_to);
                child.count -= 1;
                if child.count == 0 {
                    children.remove(index);
                    return;
                }
                child.first = child.node.first();
                if child.node.is_sparse() {
                    merge(children, index);
                }
            }
        }
    }

    fn is_sparse(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.len() < LEAF / 4,
            Self::Branch(children) => children.len() < BRANCH / 4,
        }
    }

    /// Appends a node of the same height if both are roomy together; else gives it back.
    fn absorb(&mut self, right: Self) -> Option<Self> {
        match (&mut *self, right) {
            (Self::Leaf(left), Self::Leaf(right)) if left.len() + right.len() <= LEAF * 3 / 4 => {
                left.append(&right);
                None
            }
            (Self::Branch(left), Self::Branch(mut right)) if left.len() + right.len() <= BRANCH * 3 / 4 => {
                left.append(&mut right);
                None
            }
            (_, right) => Some(right),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Leaf(_) => size_of::<Leaf>(),
            Self::Branch(children) => {
                let below: usize = children.iter().map(|child| child.node.memory()).sum();
                children.capacity() * size_of::<Child>() + below
            }
        }
    }
}

/// Merges the child number `index` with a neighbour where both fit into one node.
fn merge(children: &mut Vec<Child>, index: usize) {
    for left in [Some(index), index.checked_sub(1)].into_iter().flatten() {
        if left + 1 >= children.len() {
            continue;
        }
        let mut right = children.remove(left + 1);
        match children[left].node.absorb(right.node) {
            None => {
                children[left].count += right.count;
                return;
            }
            Some(node) => {
                right.node = node;
                children.insert(left + 1, right);
            }
        }
    }
}

impl Leaf {
    fn new() -> Box<Self> {
        Box::new(Self { scores: [0.0; LEAF], ids: [0; LEAF], len: 0 })
    }

    /// A leaf of `keys`, which are in order and not too many.
    fn of(keys: &[Key]) -> Box<Self> {
        let mut leaf = Self::new();
        for (index, &(score, id)) in keys.iter().enumerate() {
            leaf.scores[index] = score;
            leaf.ids[index] = id;
        }
        leaf.len = keys.len() as u32;
        leaf
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn key(&self, index: usize) -> Key {
        (self.scores[index], self.ids[index])
    }

    #[inline]
    fn count_while(&self, wanted: &impl Fn(Key) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if wanted(self.key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn insert(&mut self, key: Key, rightmost: bool, before: &impl Fn(Key) -> bool) -> Option<Box<Self>> {
        let index = self.count_while(before);
        if self.len() < LEAF {
            self.insert_at(index, key);
            return None;
        }
        let middle = if rightmost && index == LEAF { LEAF } else { LEAF / 2 };
        let mut right = Self::new();
        let moved = LEAF - middle;
        right.scores[..moved].copy_from_slice(&self.scores[middle..]);
        right.ids[..moved].copy_from_slice(&self.ids[middle..]);
        right.len = moved as u32;
        self.len = middle as u32;
        if index > middle || middle == LEAF {
            right.insert_at(index - middle, key);
        } else {
            self.insert_at(index, key);
        }
        Some(right)
    }

    fn insert_at(&mut self, index: usize, (score, id): Key) {
        let len = self.len();
        self.scores.copy_within(index..len, index + 1);
        self.ids.copy_within(index..len, index + 1);
        self.scores[index] = score;
        self.ids[index] = id;
        self.len += 1;
    }

    fn remove(&mut self, index: usize) {
        let len = self.len();
        self.scores.copy_within(index + 1..len, index);
        self.ids.copy_within(index + 1..len, index);
        self.len -= 1;
    }

    /// Moves the key at `old` to `new` and gives it another score.
    fn change(&mut self, old: usize, new: usize, score: f64) {
        let id = self.ids[old];
        if old < new {
            self.scores.copy_within(old + 1..=new, old);
            self.ids.copy_within(old + 1..=new, old);
        } else {
            self.scores.copy_within(new..old, new + 1);
            self.ids.copy_within(new..old, new + 1);
        }
        self.scores[new] = score;
        self.ids[new] = id;
    }

    fn append(&mut self, right: &Self) {
        let (len, more) = (self.len(), right.len());
        self.scores[len..len + more].copy_from_slice(&right.scores[..more]);
        self.ids[len..len + more].copy_from_slice(&right.ids[..more]);
        self.len += right.len;
    }
}
