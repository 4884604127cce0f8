//! Vectors in memory, one per slot.

use std::hint::black_box;

use super::distance::{self, dot_in_order, hamming};
use super::element::{ElementType, Metric, from_brain, from_half, read, to_brain, to_half};

/// How a vector's elements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// As they are given.
    Plain(ElementType),
    /// A byte per element, and the greatest absolute element of each vector, for which 127 stands.
    Q8,
    /// A bit per element: whether it is above zero.
    Bits,
}

/// The byte of Q8 for the greatest absolute element.
const Q8_MAX: f32 = 127.0;

/// How vectors are kept and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) dimensions: usize,
    pub(crate) storage: Storage,
    pub(crate) metric: Metric,
}

/// A vector in an index' own form.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    elements: Elements,
    /// The inverse length of integers that are compared by angle; the range of Q8; otherwise 1.
    scale: f32,
}

#[derive(Clone, Debug, PartialEq)]
enum Elements {
    F32(Vec<f32>),
    F64(Vec<f64>),
    F16(Vec<u16>),
    Bf16(Vec<u16>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    Bits(Vec<u64>),
}

/// A vector, or a slot of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'v> {
    F32(&'v [f32]),
    F64(&'v [f64]),
    F16(&'v [u16]),
    Bf16(&'v [u16]),
    I8(&'v [i8], f32),
    U8(&'v [u8], f32),
    Bits(&'v [u64]),
}

impl Format {
    /// Reads elements of the storage's type, little-endian; `None` if the length is another.
    pub(crate) fn read(self, blob: &[u8]) -> Option<Vector> {
        let Storage::Plain(kind) = self.storage else { return None };
        if blob.len() != self.dimensions * kind.size() {
            return None;
        }
        let is_angle = self.metric == Metric::Cosine;
        let vector = match kind {
            ElementType::Float32 => return Some(self.encode(read(blob, f32::from_le_bytes))),
            ElementType::Float64 => {
                let mut elements = read(blob, f64::from_le_bytes);
                if is_angle {
                    let length = distance::f64_dot(&elements, &elements).sqrt();
                    elements.iter_mut().for_each(|element| *element = over(*element, length));
                }
                Vector { elements: Elements::F64(elements), scale: 1.0 }
            }
            ElementType::Float16 => return Some(self.encode(read(blob, |bytes| from_half(u16::from_le_bytes(bytes))))),
            ElementType::Bfloat16 => {
                return Some(self.encode(read(blob, |bytes| from_brain(u16::from_le_bytes(bytes)))));
            }
            ElementType::Int8 => {
                let elements = read(blob, i8::from_le_bytes);
                let square = distance::i8_dot(&elements, &elements);
                Vector { elements: Elements::I8(elements), scale: inverse_length(is_angle, square) }
            }
            ElementType::Uint8 => {
                let square = distance::u8_dot(blob, blob);
                Vector { elements: Elements::U8(blob.to_vec()), scale: inverse_length(is_angle, square) }
            }
        };
        Some(vector)
    }

    /// Takes floats into the storage's form. Their number is `dimensions`.
    pub(crate) fn encode(self, mut floats: Vec<f32>) -> Vector {
        if self.metric == Metric::Cosine {
            let length = distance::f32_dot(&floats, &floats).sqrt();
            floats.iter_mut().for_each(|element| *element = over(f64::from(*element), f64::from(length)) as f32);
        }
        self.pack(floats)
    }

    /// [`Format::encode`] without making the length 1.
    pub(crate) fn pack(self, floats: Vec<f32>) -> Vector {
        let plain = |elements| Vector { elements, scale: 1.0 };
        match self.storage {
            Storage::Plain(ElementType::Float32) => plain(Elements::F32(floats)),
            Storage::Plain(ElementType::Float64) => plain(Elements::F64(floats.into_iter().map(f64::from).collect())),
            Storage::Plain(ElementType::Float16) => plain(Elements::F16(floats.into_iter().map(to_half).collect())),
            Storage::Plain(ElementType::Bfloat16) => plain(Elements::Bf16(floats.into_iter().map(to_brain).collect())),
            // A cast saturates.
            Storage::Plain(ElementType::Int8) => plain(Elements::I8(floats.into_iter().map(|it| it as i8).collect())),
            Storage::Plain(ElementType::Uint8) => plain(Elements::U8(floats.into_iter().map(|it| it as u8).collect())),
            Storage::Q8 => {
                let range = floats.iter().fold(0.0_f32, |greatest, element| greatest.max(element.abs()));
                let scale = if range > 0.0 { Q8_MAX / range } else { 0.0 };
                let element = |value: f32| (value * scale).round() as i8;
                Vector { elements: Elements::I8(floats.into_iter().map(element).collect()), scale: range }
            }
            Storage::Bits => {
                let word = |part: &[f32]| {
                    part.iter().enumerate().fold(0, |word, (at, value)| word | u64::from(*value > 0.0) << at)
                };
                plain(Elements::Bits(floats.chunks(64).map(word).collect()))
            }
        }
    }

    /// Numbers that a row of the store has.
    fn width(self) -> usize {
        if self.storage == Storage::Bits { self.dimensions.div_ceil(64) } else { self.dimensions }
    }

    /// Bytes of a row, at most.
    pub(super) fn row_size(self) -> usize {
        self.width() * size_of::<f64>()
    }

    fn has_scales(self) -> bool {
        let is_integer = matches!(self.storage, Storage::Plain(ElementType::Int8 | ElementType::Uint8));
        self.storage == Storage::Q8 || is_integer && self.metric == Metric::Cosine
    }

    /// The distance of two vectors of this format; infinite if it is no number.
    pub(crate) fn distance(self, one: Row<'_>, other: Row<'_>) -> f64 {
        let distance = match (self.metric, self.storage) {
            (Metric::L2, _) => l2(one, other),
            (_, Storage::Q8) => self.angle(one, other).into(),
            _ => 1.0 - self.dot(one, other),
        };
        if distance.is_nan() { f64::INFINITY } else { distance }
    }

    /// The distance by angle, with the roundings of Redis' vector sets: all sums and products are of 32 bits, in their order.
    pub(crate) fn angle(self, one: Row<'_>, other: Row<'_>) -> f32 {
        match (one, other) {
            (Row::F32(one), Row::F32(other)) => 1.0 - dot_in_order(one, other),
            (Row::I8(_, range), Row::I8(_, other_range)) if range == 0.0 || other_range == 0.0 => 1.0,
            (Row::I8(one, range), Row::I8(other, other_range)) => {
                let dot = distance::i8_dot(one, other);
                let scale = (range / Q8_MAX) * (other_range / Q8_MAX);
                (1.0 - dot as f32 * scale).clamp(0.0, 2.0)
            }
            (Row::Bits(one), Row::Bits(other)) => hamming(one, other) as f32 * 2.0 / self.dimensions.max(1) as f32,
            (one, other) => self.distance(one, other) as f32,
        }
    }

    /// The vector whose elements a file has: little-endian floats, bytes, or words of bits; `None` if the size is another.
    pub(crate) fn unpack(self, bytes: &[u8], scale: f32) -> Option<Vector> {
        if bytes.len() != self.packed_size()? {
            return None;
        }
        let elements = match self.storage {
            Storage::Plain(_) => Elements::F32(read(bytes, f32::from_le_bytes)),
            Storage::Q8 => Elements::I8(read(bytes, i8::from_le_bytes)),
            Storage::Bits => {
                let mut words = read(bytes, u64::from_le_bytes);
                // Bits behind the last dimension would count as differences.
                if let Some(word) = words.last_mut().filter(|_| !self.dimensions.is_multiple_of(64)) {
                    *word &= (1 << (self.dimensions % 64)) - 1;
                }
                Elements::Bits(words)
            }
        };
        Some(Vector { elements, scale })
    }

    /// Bytes that [`Format::unpack`] takes.
    pub(crate) fn packed_size(self) -> Option<usize> {
        match self.storage {
            Storage::Plain(ElementType::Float32) => self.dimensions.checked_mul(size_of::<f32>()),
            Storage::Plain(_) => None,
            Storage::Q8 => Some(self.dimensions),
            Storage::Bits => Some(self.width() * size_of::<u64>()),
        }
    }

    fn dot(self, one: Row<'_>, other: Row<'_>) -> f64 {
        let scaled = |dot: i32, scale: f32, other: f32| f64::from(dot) * f64::from(scale) * f64::from(other);
        match (one, other) {
            (Row::F32(one), Row::F32(other)) => distance::f32_dot(one, other).into(),
            (Row::F64(one), Row::F64(other)) => distance::f64_dot(one, other),
            (Row::F16(one), Row::F16(other)) => distance::f16_dot(one, other).into(),
            (Row::Bf16(one), Row::Bf16(other)) => distance::bf16_dot(one, other).into(),
            (Row::I8(one, scale), Row::I8(other, other_scale)) => {
                scaled(distance::i8_dot(one, other), scale, other_scale)
            }
            (Row::U8(one, scale), Row::U8(other, other_scale)) => {
                scaled(distance::u8_dot(one, other), scale, other_scale)
            }
            // Bits are −1 and 1 over the root of their number.
            (Row::Bits(one), Row::Bits(other)) => {
                1.0 - 2.0 * f64::from(hamming(one, other)) / self.dimensions.max(1) as f64
            }
            _ => f64::NAN,
        }
    }
}

fn l2(one: Row<'_>, other: Row<'_>) -> f64 {
    match (one, other) {
        (Row::F32(one), Row::F32(other)) => distance::f32_l2(one, other).into(),
        (Row::F64(one), Row::F64(other)) => distance::f64_l2(one, other),
        (Row::F16(one), Row::F16(other)) => distance::f16_l2(one, other).into(),
        (Row::Bf16(one), Row::Bf16(other)) => distance::bf16_l2(one, other).into(),
        (Row::I8(one, _), Row::I8(other, _)) => distance::i8_l2(one, other).into(),
        (Row::U8(one, _), Row::U8(other, _)) => distance::u8_l2(one, other).into(),
        (Row::Bits(one), Row::Bits(other)) => hamming(one, other).into(),
        _ => f64::NAN,
    }
}

fn over(element: f64, length: f64) -> f64 {
    if length > 0.0 { element / length } else { 0.0 }
}

fn inverse_length(is_angle: bool, square: i32) -> f32 {
    if is_angle { over(1.0, f64::from(square).sqrt()) as f32 } else { 1.0 }
}

impl Vector {
    pub(crate) fn row(&self) -> Row<'_> {
        match &self.elements {
            Elements::F32(elements) => Row::F32(elements),
            Elements::F64(elements) => Row::F64(elements),
            Elements::F16(elements) => Row::F16(elements),
            Elements::Bf16(elements) => Row::Bf16(elements),
            Elements::I8(elements) => Row::I8(elements, self.scale),
            Elements::U8(elements) => Row::U8(elements, self.scale),
            Elements::Bits(elements) => Row::Bits(elements),
        }
    }
}

impl Row<'_> {
    pub(super) fn to_vector(self) -> Vector {
        let (elements, scale) = match self {
            Row::F32(row) => (Elements::F32(row.to_vec()), 1.0),
            Row::F64(row) => (Elements::F64(row.to_vec()), 1.0),
            Row::F16(row) => (Elements::F16(row.to_vec()), 1.0),
            Row::Bf16(row) => (Elements::Bf16(row.to_vec()), 1.0),
            Row::I8(row, scale) => (Elements::I8(row.to_vec()), scale),
            Row::U8(row, scale) => (Elements::U8(row.to_vec()), scale),
            Row::Bits(row) => (Elements::Bits(row.to_vec()), 1.0),
        };
        Vector { elements, scale }
    }

    /// The elements as [`Format::unpack`] takes them, and the scale.
    pub(super) fn packed(self) -> (Vec<u8>, f32) {
        match self {
            Row::F32(row) => (row.iter().flat_map(|element| element.to_le_bytes()).collect(), 1.0),
            Row::F64(row) => (row.iter().flat_map(|element| element.to_le_bytes()).collect(), 1.0),
            Row::F16(row) | Row::Bf16(row) => (row.iter().flat_map(|element| element.to_le_bytes()).collect(), 1.0),
            Row::I8(row, scale) => (row.iter().flat_map(|element| element.to_le_bytes()).collect(), scale),
            Row::U8(row, scale) => (row.to_vec(), scale),
            Row::Bits(row) => (row.iter().flat_map(|word| word.to_le_bytes()).collect(), 1.0),
        }
    }
}

/// Bytes that memory brings at once.
const CACHE_LINE: usize = 64;

/// Bytes of a row that are read ahead; the processor itself fetches what follows.
const TOUCHED: usize = 512;

/// Rows of one width, in blocks: growing moves no block, and the last ones are given back.
#[derive(Clone, Debug)]
pub(super) struct Blocks<T> {
    blocks: Vec<Vec<T>>,
    width: usize,
    /// Rows of a block are a power of two.
    shift: u32,
    rows: usize,
}

impl<T: Copy + Default> Blocks<T> {
    pub(super) fn new(width: usize, rows_per_block: usize) -> Self {
        let shift = rows_per_block.max(1).next_power_of_two().trailing_zeros();
        Self { blocks: Vec::new(), width, shift, rows: 0 }
    }

    fn place(&self, slot: usize) -> (usize, std::ops::Range<usize>) {
        let first = (slot & ((1 << self.shift) - 1)) * self.width;
        (slot >> self.shift, first..first + self.width)
    }

    #[inline(always)]
    pub(super) fn row(&self, slot: usize) -> &[T] {
        let (block, span) = self.place(slot);
        &self.blocks[block][span]
    }

    pub(super) fn row_mut(&mut self, slot: usize) -> &mut [T] {
        let (block, span) = self.place(slot);
        &mut self.blocks[block][span]
    }

    /// Appends a row; one that is too short is filled up.
    pub(super) fn push(&mut self, row: &[T]) {
        let (block, span) = self.place(self.rows);
        if block == self.blocks.len() {
            self.blocks.push(Vec::new());
        }
        let block = &mut self.blocks[block];
        if block.len() == block.capacity() {
            // Doubled, but never beyond the block.
            let most = self.width << self.shift;
            block.reserve_exact(block.len().max(self.width * 4).min(most - block.len()));
        }
        block.extend_from_slice(row);
        block.resize(span.end, T::default());
        self.rows += 1;
    }

    /// Reads each cache line of the first [`TOUCHED`] bytes of rows.
    fn touch(&self, slots: &[u32]) {
        let step = (CACHE_LINE / size_of::<T>()).max(1);
        for slot in slots {
            let row = self.row(*slot as usize);
            for element in row.iter().step_by(step).take(TOUCHED / CACHE_LINE) {
                black_box(*element);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Removes a row; the last one takes its place.
    pub(super) fn swap_remove(&mut self, slot: usize) {
        let Some(last) = self.rows.checked_sub(1) else { return };
        let (block, span) = self.place(last);
        if slot < last {
            let (target, place) = self.place(slot);
            if target == block {
                self.blocks[block].copy_within(span.clone(), place.start);
            } else {
                let (front, back) = self.blocks.split_at_mut(block);
                front[target][place].copy_from_slice(&back[0][span.clone()]);
            }
        }
        self.rows = last;
        self.blocks[block].truncate(span.start);
        if span.start == 0 {
            self.blocks.truncate(block);
        }
    }

    pub(super) fn memory(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.capacity() * size_of::<T>() + size_of::<Vec<T>>());
        blocks.sum()
    }
}

/// The vectors of an index by slot, from 0 on without holes.
#[derive(Clone, Debug)]
pub(super) struct Vectors {
    format: Format,
    rows: Rows,
    /// Empty if the format has none.
    scales: Vec<f32>,
}

#[derive(Clone, Debug)]
enum Rows {
    F32(Blocks<f32>),
    F64(Blocks<f64>),
    F16(Blocks<u16>),
    Bf16(Blocks<u16>),
    I8(Blocks<i8>),
    U8(Blocks<u8>),
    Bits(Blocks<u64>),
}

impl Vectors {
    pub(super) fn new(format: Format, block: usize) -> Self {
        let width = format.width();
        let rows = match format.storage {
            Storage::Plain(ElementType::Float32) => Rows::F32(Blocks::new(width, block)),
            Storage::Plain(ElementType::Float64) => Rows::F64(Blocks::new(width, block)),
            Storage::Plain(ElementType::Float16) => Rows::F16(Blocks::new(width, block)),
            Storage::Plain(ElementType::Bfloat16) => Rows::Bf16(Blocks::new(width, block)),
            Storage::Plain(ElementType::Int8) | Storage::Q8 => Rows::I8(Blocks::new(width, block)),
            Storage::Plain(ElementType::Uint8) => Rows::U8(Blocks::new(width, block)),
            Storage::Bits => Rows::Bits(Blocks::new(width, block)),
        };
        Self { format, rows, scales: Vec::new() }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Appends a vector of the store's format.
    pub(super) fn push(&mut self, vector: &Vector) {
        match (&mut self.rows, &vector.elements) {
            (Rows::F32(rows), Elements::F32(elements)) => rows.push(elements),
            (Rows::F64(rows), Elements::F64(elements)) => rows.push(elements),
            (Rows::F16(rows), Elements::F16(elements)) | (Rows::Bf16(rows), Elements::Bf16(elements)) => {
                rows.push(elements);
            }
            (Rows::I8(rows), Elements::I8(elements)) => rows.push(elements),
            (Rows::U8(rows), Elements::U8(elements)) => rows.push(elements),
            (Rows::Bits(rows), Elements::Bits(elements)) => rows.push(elements),
            // Vectors come from the store's own format.
            (_, _) => return,
        }
        if self.format.has_scales() {
            self.scales.push(vector.scale);
        }
    }

    pub(super) fn swap_remove(&mut self, slot: usize) {
        match &mut self.rows {
            Rows::F32(rows) => rows.swap_remove(slot),
            Rows::F64(rows) => rows.swap_remove(slot),
            Rows::F16(rows) | Rows::Bf16(rows) => rows.swap_remove(slot),
            Rows::I8(rows) => rows.swap_remove(slot),
            Rows::U8(rows) => rows.swap_remove(slot),
            Rows::Bits(rows) => rows.swap_remove(slot),
        }
        if slot < self.scales.len() {
            self.scales.swap_remove(slot);
        }
    }

    #[inline(always)]
    pub(super) fn row(&self, slot: u32) -> Row<'_> {
        let slot = slot as usize;
        let scale = || self.scales.get(slot).copied().unwrap_or(1.0);
        match &self.rows {
            Rows::F32(rows) => Row::F32(rows.row(slot)),
            Rows::F64(rows) => Row::F64(rows.row(slot)),
            Rows::F16(rows) => Row::F16(rows.row(slot)),
            Rows::Bf16(rows) => Row::Bf16(rows.row(slot)),
            Rows::I8(rows) => Row::I8(rows.row(slot), scale()),
            Rows::U8(rows) => Row::U8(rows.row(slot), scale()),
            Rows::Bits(rows) => Row::Bits(rows.row(slot)),
        }
    }

    /// The distance of a vector and a slot.
    pub(super) fn distance(&self, query: Row<'_>, slot: u32) -> f64 {
        self.format.distance(query, self.row(slot))
    }

    /// Reads a little of slots that are compared next: their memory comes at the same time, not one after the other.
    pub(super) fn touch(&self, slots: &[u32]) {
        match &self.rows {
            Rows::F32(rows) => rows.touch(slots),
            Rows::F64(rows) => rows.touch(slots),
            Rows::F16(rows) | Rows::Bf16(rows) => rows.touch(slots),
            Rows::I8(rows) => rows.touch(slots),
            Rows::U8(rows) => rows.touch(slots),
            Rows::Bits(rows) => rows.touch(slots),
        }
    }

    /// The distance of two slots.
    pub(super) fn between(&self, one: u32, other: u32) -> f64 {
        self.format.distance(self.row(one), self.row(other))
    }

    /// A slot's elements as they are kept, so of length 1 if vectors are compared by angle.
    pub(super) fn decode(&self, slot: u32) -> Vec<f32> {
        match self.row(slot) {
            Row::F32(row) => row.to_vec(),
            Row::F64(row) => row.iter().map(|element| *element as f32).collect(),
            Row::F16(row) => row.iter().map(|element| from_half(*element)).collect(),
            Row::Bf16(row) => row.iter().map(|element| from_brain(*element)).collect(),
            Row::I8(row, range) if self.format.storage == Storage::Q8 => {
                row.iter().map(|element| f32::from(*element) * range / Q8_MAX).collect()
            }
            Row::I8(row, scale) => row.iter().map(|element| f32::from(*element) * scale).collect(),
            Row::U8(row, scale) => row.iter().map(|element| f32::from(*element) * scale).collect(),
            Row::Bits(row) => {
                let bit = |at: usize| if row[at / 64] >> (at % 64) & 1 == 1 { 1.0 } else { -1.0 };
                (0..self.format.dimensions).map(bit).collect()
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        let rows = match &self.rows {
            Rows::F32(rows) => rows.memory(),
            Rows::F64(rows) => rows.memory(),
            Rows::F16(rows) | Rows::Bf16(rows) => rows.memory(),
            Rows::I8(rows) => rows.memory(),
            Rows::U8(rows) => rows.memory(),
            Rows::Bits(rows) => rows.memory(),
        };
        rows + self.scales.capacity() * size_of::<f32>()
    }
}
