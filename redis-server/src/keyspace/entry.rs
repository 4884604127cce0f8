//! One key with its value and expiry, in one allocation behind one pointer.
//!
//! A million keys are a million of these, so every byte counts: the hash table holds eight bytes per slot, and a
//! key of 16 bytes with a string of 100 takes one block of 128. Layout behind the 12-byte header:
//!
//! ```text
//! string:  [expiry 8, if any] key value          (value: text, or an i64 for an integer)
//! object:  pad 4, Object 16, [expiry 8, if any] key
//! ```
#![allow(
    unsafe_code,
    reason = "a thin, variable-sized node: 8 bytes per table slot instead of 16 (see the module's head)"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bytes::Bytes;

use super::buffer::Buffer;
use super::value::{Object, StrRef, Value, ValueRef};
use crate::protocol::number;
use crate::types::Hash;

/// Strings from this length on live in a buffer of their own, which replies share instead of copying.
const SHARED_MIN: usize = 16 * 1024;
/// Values of more blocks than this are heavy; freeing fewer takes a few microseconds.
const HEAVY_MIN: usize = 64;
/// Strings of so many bytes are heavy: their pages go back to the system one by one.
pub(super) const HEAVY_STRING: usize = 1024 * 1024;
/// Collections of more elements than this are vast: saving one takes a millisecond and more.
const VAST_MIN: usize = 4096;
/// Longest string that grows inside its entry: up to here moving the block costs little, and the block's size class
/// mostly has room; longer ones get a buffer with room to spare.
const GROW_INLINE_MAX: usize = 1024;
/// Longest text that can be an integer: `-9223372036854775808`.
const MAX_INT_LEN: usize = 20;

const ACCESS_MASK: u32 = (1 << 24) - 1;
/// The longest step back of the clock that is told from a long time without a use.
const STEP_BACK_SECONDS: u32 = 24 * 60 * 60;
const INT: u32 = 1 << 24;
const OBJECT: u32 = 1 << 25;
const EXPIRES: u32 = 1 << 26;
/// The string was modified in place: `OBJECT ENCODING` says `raw` however short it is.
const RAW: u32 = 1 << 27;
/// Tells entries that a snapshot has saved from others: see [`super::cut`].
pub(super) const EPOCH: u32 = 1 << 28;

const HEADER: usize = size_of::<Header>();
const OBJECT_AT: usize = 16;
const EXPIRY: usize = 8;
const ALIGN: usize = 8;

#[repr(C)]
struct Header {
    /// Low 24 bits: when or how often the entry was used (for eviction); above: the flags.
    meta: AtomicU32,
    key_len: u32,
    /// Length of the value's bytes; 0 for objects.
    value_len: u32,
}

const _: () = assert!(HEADER == 12 && size_of::<Object>() == 16 && align_of::<Object>() <= ALIGN);

/// A key, its value and its expiry.
pub struct Entry(NonNull<Header>);

// SAFETY: an entry owns its block alone, and everything in it (`Object`, bytes) is Send and Sync; `meta` is atomic.
unsafe impl Send for Entry {}
// SAFETY: as above; shared access only reads, or writes the atomic.
unsafe impl Sync for Entry {}

/// The shape of a block: the layout that its header describes.
#[derive(Clone, Copy)]
struct Shape {
    flags: u32,
    key_len: usize,
    value_len: usize,
}

impl Shape {
    fn expiry_at(self) -> usize {
        if self.flags & OBJECT == 0 { HEADER } else { OBJECT_AT + size_of::<Object>() }
    }

    fn key_at(self) -> usize {
        self.expiry_at() + if self.flags & EXPIRES == 0 { 0 } else { EXPIRY }
    }

    fn value_at(self) -> usize {
        self.key_at() + self.key_len
    }

    fn layout(self) -> Layout {
        Layout::from_size_align(self.value_at() + self.value_len, ALIGN)
            .expect("keys and values are shorter than 4 GiB")
    }
}

impl Entry {
    /// An entry for `key`; `expire_at` is in milliseconds of Unix time.
    pub fn new(key: &[u8], value: Value<'_>, expire_at: Option<u64>) -> Self {
        let expires = if expire_at.is_some() { EXPIRES } else { 0 };
        let entry = match value.compact() {
            Value::Int(value) => Self::with_bytes(key, &value.to_ne_bytes(), INT | expires),
            Value::Bytes(bytes) | Value::Text(bytes) => Self::with_bytes(key, bytes, expires),
            Value::Raw(bytes) => Self::with_bytes(key, bytes, RAW | expires),
            Value::Shared(bytes) if bytes.len() < SHARED_MIN => Self::with_bytes(key, &bytes, expires),
            Value::Shared(bytes) => Self::with_object(key, Object::Shared(Box::new(bytes)), expires),
            Value::Object(Object::Buffer(bytes)) if bytes.len() <= GROW_INLINE_MAX => {
                Self::with_bytes(key, &bytes, RAW | expires)
            }
            Value::Object(object) => Self::with_object(key, object, expires),
        };
        if let Some(at) = expire_at {
            entry.write_expiry(at);
        }
        entry
    }

    fn with_bytes(key: &[u8], value: &[u8], flags: u32) -> Self {
        let entry = Self::allocate(Shape { flags, key_len: key.len(), value_len: value.len() }, key);
        // SAFETY: `allocate` made room for exactly `value.len()` bytes at `value_at`; the block is new.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), entry.at(entry.shape().value_at()), value.len()) };
        entry
    }

    fn with_object(key: &[u8], object: Object, flags: u32) -> Self {
        let entry = Self::allocate(Shape { flags: flags | OBJECT, key_len: key.len(), value_len: 0 }, key);
        // SAFETY: OBJECT_AT is aligned for `Object` (8) and inside the block; nothing was there before.
        unsafe { entry.at(OBJECT_AT).cast::<Object>().write(object) };
        entry
    }

    /// A block with header and key; value, object and expiry are the caller's to write.
    fn allocate(shape: Shape, key: &[u8]) -> Self {
        let layout = shape.layout();
        // SAFETY: the layout is never empty: it holds the header.
        let block = unsafe { alloc(layout) };
        let Some(head) = NonNull::new(block.cast::<Header>()) else { handle_alloc_error(layout) };
        let header = Header {
            meta: AtomicU32::new(shape.flags),
            key_len: shape.key_len as u32,
            value_len: shape.value_len as u32,
        };
        let entry = Self(head);
        // SAFETY: the block begins with room for the header and has `key_len` bytes at `key_at`.
        unsafe {
            head.write(header);
            ptr::copy_nonoverlapping(key.as_ptr(), entry.at(shape.key_at()), key.len());
        }
        entry
    }

    fn header(&self) -> &Header {
        // SAFETY: the block lives as long as `self` and begins with an initialised header.
        unsafe { self.0.as_ref() }
    }

    fn header_mut(&mut self) -> &mut Header {
        // SAFETY: as in `header`; `&mut self` makes the borrow unique.
        unsafe { self.0.as_mut() }
    }

    fn shape(&self) -> Shape {
        let header = self.header();
        let flags = header.meta.load(Relaxed) & !ACCESS_MASK;
        Shape { flags, key_len: header.key_len as usize, value_len: header.value_len as usize }
    }

    /// Pointer to the byte at `offset` of the block.
    fn at(&self, offset: usize) -> *mut u8 {
        // SAFETY: callers pass offsets of their own shape, which lie within the block.
        unsafe { self.0.as_ptr().cast::<u8>().add(offset) }
    }

    fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: key and value ranges of the shape are initialised and live as long as `self`.
        unsafe { slice::from_raw_parts(self.at(offset), len) }
    }

    /// Address of the block, for prefetching.
    pub(super) fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let shape = self.shape();
        self.bytes(shape.key_at(), shape.key_len)
    }

    /// When the entry expires, in milliseconds of Unix time.
    #[inline]
    pub fn expire_at(&self) -> Option<u64> {
        let shape = self.shape();
        if shape.flags & EXPIRES == 0 {
            return None;
        }
        // SAFETY: EXPIRES says that eight initialised bytes stand at `expiry_at`; they need not be aligned.
        let at = unsafe { self.at(shape.expiry_at()).cast::<u64>().read_unaligned() };
        (at != u64::MAX).then_some(at)
    }

    /// Whether the entry's time is over at `now`, in milliseconds of Unix time.
    #[inline]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expire_at().is_some_and(|at| at <= now)
    }

    /// Whether the entry may expire, or hold what does: it does not where this says so.
    #[inline]
    pub(super) fn may_expire(&self) -> bool {
        self.shape().flags & (EXPIRES | OBJECT) != 0
    }

    fn write_expiry(&self, at: u64) {
        // SAFETY: callers have checked or set EXPIRES; see `expire_at`. Callers own the entry or borrow it mutably.
        unsafe { self.at(self.shape().expiry_at()).cast::<u64>().write_unaligned(at) }
    }

    /// Sets or clears the expiry; room for it stays in the block once it was there.
    pub(super) fn set_expire_at(&mut self, at: Option<u64>) {
        if self.shape().flags & EXPIRES != 0 {
            self.write_expiry(at.unwrap_or(u64::MAX));
        } else if at.is_some() {
            let new = match self.take_value() {
                Taken::Object(object) => Self::new(self.key(), Value::Object(object), at),
                Taken::Bytes => {
                    let shape = self.shape();
                    let value = self.bytes(shape.value_at(), shape.value_len);
                    let entry = Self::with_bytes(self.key(), value, shape.flags | EXPIRES);
                    entry.write_expiry(at.unwrap_or(u64::MAX));
                    entry
                }
            };
            new.follow(self);
            *self = new;
        }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> ValueRef<'_> {
        if let Some(object) = self.object() {
            return object.as_ref();
        }
        let shape = self.shape();
        let bytes = self.bytes(shape.value_at(), shape.value_len);
        ValueRef::Str(match bytes.try_into() {
            Ok(int) if shape.flags & INT != 0 => StrRef::Int(i64::from_ne_bytes(int)),
            _ => StrRef::Bytes { bytes, raw: shape.flags & RAW != 0 },
        })
    }

    fn object(&self) -> Option<&Object> {
        // SAFETY: OBJECT says that an initialised object stands at OBJECT_AT.
        (self.shape().flags & OBJECT != 0).then(|| unsafe { &*self.at(OBJECT_AT).cast::<Object>() })
    }

    /// The value, if it is a string.
    #[inline]
    pub fn string(&self) -> Option<StrRef<'_>> {
        let ValueRef::Str(string) = self.value() else { return None };
        Some(string)
    }

    /// The hash, if the value is one.
    pub(super) fn hash_object(&self) -> Option<&Hash> {
        match self.object() {
            Some(Object::Hash(hash)) => Some(hash),
            _ => None,
        }
    }

    /// The hash, to be changed.
    pub(super) fn hash_object_mut(&mut self) -> Option<&mut Hash> {
        match self.object_mut() {
            Some(Object::Hash(hash)) => Some(hash),
            _ => None,
        }
    }

    /// The object, when the value is not a string inside the block.
    pub fn object_mut(&mut self) -> Option<&mut Object> {
        if self.shape().flags & OBJECT == 0 {
            return None;
        }
        // SAFETY: as in `value`; `&mut self` makes the borrow unique.
        Some(unsafe { &mut *self.at(OBJECT_AT).cast::<Object>() })
    }

    /// A string's bytes, made at least `len` long by zeros behind them, to be changed in place; it is `raw` from now
    /// on. `None` for a collection.
    pub fn bytes_mut(&mut self, len: usize) -> Option<&mut [u8]> {
        self.make_raw(len)?;
        if self.shape().flags & OBJECT == 0 {
            let missing = len.saturating_sub(self.shape().value_len);
            self.extend_inline(missing);
            return Some(self.inline_mut());
        }
        let Some(Object::Buffer(buffer)) = self.object_mut() else { return None };
        let buffer = buffer.bytes_mut();
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        Some(buffer)
    }

    /// Bytes that [`bytes_mut`](Self::bytes_mut) or [`append`](Self::append) writes or copies to make a string `len` bytes
    /// long, without those that the caller writes. 0 for a collection.
    pub fn bytes_to_fill(&self, len: usize) -> usize {
        let Some(old) = self.string().map(StrRef::len) else { return 0 };
        match self.object() {
            Some(Object::Buffer(buffer)) if buffer.holds(len) => len.saturating_sub(old),
            None if len <= old => 0,
            _ => len.max(old),
        }
    }

    /// Appends to a string and returns the new length; it is `raw` from now on. `None` for a collection.
    pub fn append(&mut self, tail: &[u8]) -> Option<usize> {
        let old = self.string()?.len();
        self.make_raw(old + tail.len())?;
        if self.shape().flags & OBJECT == 0 {
            self.extend_inline(tail.len());
            self.inline_mut()[old..].copy_from_slice(tail);
        } else if let Some(Object::Buffer(buffer)) = self.object_mut() {
            let buffer = buffer.bytes_mut();
            buffer.truncate(old);
            buffer.extend_from_slice(tail);
        }
        Some(old + tail.len())
    }

    /// Turns a string into one that can be changed in place: text inside the block, or a buffer of its own if it is to
    /// grow to `len` bytes and that is much (the buffer has them then). `None` for a collection.
    fn make_raw(&mut self, len: usize) -> Option<()> {
        let shape = self.shape();
        if shape.flags & OBJECT != 0 {
            match self.object_mut()? {
                Object::Buffer(_) => {}
                // Replies on their way may still hold the shared bytes: `Vec::from` copies them only then.
                Object::Shared(shared) => {
                    let bytes = std::mem::take(&mut **shared);
                    *self.object_mut()? = Object::Buffer(Buffer::new(bytes.into()));
                }
                Object::List(_)
                | Object::Hash(_)
                | Object::Set(_)
                | Object::SortedSet(_)
                | Object::Stream(_)
                | Object::Json(_)
                | Object::Bloom(_)
                | Object::VectorSet(_) => return None,
            }
            return Some(());
        }
        if len > shape.value_len.max(GROW_INLINE_MAX) {
            // Fresh pages of the system are zero: only those of the old bytes are written.
            let mut buffer = vec![0; len];
            self.string()?.with(|old| buffer[..old.len()].copy_from_slice(old));
            drop(self.replace_value(Value::Object(Object::Buffer(Buffer::new(buffer)))));
        } else if let Some(StrRef::Int(int)) = self.string() {
            drop(self.replace_value(Value::Raw(itoa::Buffer::new().format(int).as_bytes())));
        } else {
            *self.header_mut().meta.get_mut() |= RAW;
        }
        Some(())
    }

    /// The bytes of a string inside the block, to be changed in place. The value is no object and no integer.
    fn inline_mut(&mut self) -> &mut [u8] {
        let shape = self.shape();
        debug_assert!(shape.flags & (OBJECT | INT) == 0, "the value is text inside the block");
        // SAFETY: as in `bytes`, whatever the value is; `&mut self` makes the borrow unique.
        unsafe { slice::from_raw_parts_mut(self.at(shape.value_at()), shape.value_len) }
    }

    /// Adds `extra` zeros to a string inside the block. The value is no object and no integer.
    fn extend_inline(&mut self, extra: usize) {
        let shape = self.shape();
        debug_assert!(shape.flags & (OBJECT | INT) == 0, "the value is text inside the block");
        if extra == 0 {
            return;
        }
        self.reallocate(shape.value_len + extra);
        // SAFETY: the block has `extra` bytes behind the old value now.
        unsafe { ptr::write_bytes(self.at(shape.value_at() + shape.value_len), 0, extra) };
    }

    /// Makes the value inside the block so many bytes long: in its place, where the block's size class has room for that.
    /// Bytes beyond the old length are the caller's to write. The value is no object.
    fn reallocate(&mut self, value_len: usize) {
        let shape = self.shape();
        debug_assert!(shape.flags & OBJECT == 0, "the value is inside the block");
        let layout = Shape { value_len, ..shape }.layout();
        // SAFETY: the block was allocated with the layout of its shape, and `layout` checked the new size. `realloc` keeps the content, up
        // to the shorter of both lengths.
        let block = unsafe { realloc(self.0.as_ptr().cast(), shape.layout(), layout.size()) };
        let Some(head) = NonNull::new(block.cast::<Header>()) else { handle_alloc_error(layout) };
        self.0 = head;
        self.header_mut().value_len = value_len as u32;
    }

    /// Replaces the value; the expiry stays. Returns what [`Entry::replace`] does.
    #[inline]
    pub fn replace_value(&mut self, value: Value<'_>) -> Option<Self> {
        self.replace(value, self.expire_at())
    }

    /// Replaces value and expiry, in place where the block has the right shape already. If not, the old block is returned:
    /// freeing what hangs on it may take long.
    #[must_use = "who holds a lock must not free a large value"]
    pub fn replace(&mut self, value: Value<'_>, expire_at: Option<u64>) -> Option<Self> {
        let value = value.compact();
        if self.replace_in_place(&value, expire_at) {
            return None;
        }
        let new = Self::new(self.key(), value, expire_at);
        new.follow(self);
        Some(std::mem::replace(self, new))
    }

    /// Replaces a text inside a block without expiry by one of equal length that is too long for a number, which is the most frequent case.
    /// Whether that is what they are.
    #[inline]
    pub fn overwrite_text(&mut self, value: &Value<'_>) -> bool {
        let Value::Bytes(text) = value else { return false };
        let shape = self.shape();
        let fits = shape.flags & (OBJECT | EXPIRES) == 0 && text.len() == shape.value_len && text.len() > MAX_INT_LEN;
        if fits {
            self.overwrite(text, 0);
        }
        fits
    }

    /// Replaces a string inside the block by another, and the expiry if the block has room for it.
    #[inline]
    fn replace_in_place(&mut self, value: &Value<'_>, expire_at: Option<u64>) -> bool {
        let shape = self.shape();
        let room = shape.flags & EXPIRES != 0;
        if shape.flags & OBJECT != 0 || (expire_at.is_some() && !room) {
            return false;
        }
        match value {
            Value::Int(int) => self.overwrite(&int.to_ne_bytes(), INT),
            Value::Bytes(bytes) | Value::Text(bytes) => self.overwrite(bytes, 0),
            Value::Raw(bytes) => self.overwrite(bytes, RAW),
            Value::Shared(_) | Value::Object(_) => return false,
        }
        if room {
            self.write_expiry(expire_at.unwrap_or(u64::MAX));
        }
        true
    }

    /// Puts other bytes in the place of the value, which is no object.
    fn overwrite(&mut self, value: &[u8], kind: u32) {
        if self.shape().value_len != value.len() {
            self.reallocate(value.len());
        }
        let at = self.at(self.shape().value_at());
        // SAFETY: the block's value has this length.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), at, value.len()) };
        let meta = self.header_mut().meta.get_mut();
        *meta = *meta & !(INT | RAW) | kind;
    }

    /// The 24 bits that eviction keeps per entry.
    pub fn access(&self) -> u32 {
        self.header().meta.load(Relaxed) & ACCESS_MASK
    }

    /// Seconds since the last use, at `now` in milliseconds of Unix time.
    pub fn idle_seconds(&self, now: u64) -> u32 {
        let idle = ((now / 1000) as u32).wrapping_sub(self.access()) & ACCESS_MASK;
        // A use in the future: the clock has stepped back, and the key was not idle for half a year.
        if idle > ACCESS_MASK - STEP_BACK_SECONDS { 0 } else { idle }
    }

    /// Stores the 24 bits that eviction keeps per entry. Racing readers may lose an update, never a flag:
    /// flags change only under `&mut self`, or the shard's exclusive lock.
    #[inline]
    pub fn set_access(&self, access: u32) {
        let meta = &self.header().meta;
        let old = meta.load(Relaxed);
        // An unchanged clock is the common case and keeps the cache line clean.
        if old & ACCESS_MASK != access & ACCESS_MASK {
            // Not a store: a slow call reads without the shard's lock, under which flags may change meanwhile.
            let _ = meta.compare_exchange(old, old & !ACCESS_MASK | access & ACCESS_MASK, Relaxed, Relaxed);
        }
    }

    /// Copies the usage and the snapshot's epoch from `old`, which this entry replaces.
    fn follow(&self, old: &Self) {
        self.set_access(old.access());
        self.set_epoch(old.header().meta.load(Relaxed));
    }

    /// Whether a snapshot of `epoch` has not saved the entry.
    #[inline]
    pub(super) fn is_unsaved(&self, epoch: u32) -> bool {
        (self.header().meta.load(Relaxed) ^ epoch) & EPOCH != 0
    }

    /// The entry is saved, or was made later.
    pub(super) fn set_epoch(&self, epoch: u32) {
        let meta = &self.header().meta;
        if epoch & EPOCH == 0 {
            meta.fetch_and(!EPOCH, Relaxed)
        } else {
            meta.fetch_or(EPOCH, Relaxed)
        };
    }

    /// A second pointer to the same block.
    ///
    /// # Safety
    /// As long as the second pointer is in use, the entry must be neither changed nor dropped. The second pointer itself must be forgotten
    /// and never be changed.
    pub(super) unsafe fn second(&self) -> Self {
        Self(self.0)
    }

    /// The value, leaving an empty string behind.
    pub fn into_object(mut self) -> Option<Object> {
        match self.take_value() {
            Taken::Object(object) => Some(object),
            Taken::Bytes => None,
        }
    }

    /// Moves an object out; the block is then a string without bytes and must be dropped or replaced.
    fn take_value(&mut self) -> Taken {
        let Some(object) = self.object_mut() else { return Taken::Bytes };
        Taken::Object(std::mem::replace(object, Object::Shared(Box::default())))
    }

    /// This entry under another key: value, expiry and last use go over.
    pub fn renamed(mut self, key: &[u8]) -> Self {
        let Taken::Object(object) = self.take_value() else { return self.with_key(key, None) };
        self.with_key(key, Some(object))
    }

    /// A copy under another key, with nothing shared but what never changes.
    pub fn copied(&self, key: &[u8]) -> Self {
        self.with_key(key, self.object().cloned())
    }

    /// An entry with this one's flags, expiry and last use, whose value is `object`, or this one's bytes.
    fn with_key(&self, key: &[u8], object: Option<Object>) -> Self {
        let shape = self.shape();
        let expire_at = self.expire_at();
        let flags = shape.flags & !(EXPIRES | OBJECT) | if expire_at.is_some() { EXPIRES } else { 0 };
        let entry = match object {
            Some(object) => Self::with_object(key, object, flags),
            None => Self::with_bytes(key, self.bytes(shape.value_at(), shape.value_len), flags),
        };
        if let Some(at) = expire_at {
            entry.write_expiry(at);
        }
        entry.set_access(self.access());
        entry
    }

    /// Whether freeing the value takes long: it consists of many blocks, or is a very large string.
    #[inline]
    pub fn is_heavy(&self) -> bool {
        self.is_larger_than(HEAVY_MIN)
    }

    /// Whether saving the value takes long.
    pub fn is_vast(&self) -> bool {
        self.is_larger_than(VAST_MIN)
    }

    /// True if it is a very large string that a reply holds, which a write copies.
    pub(super) fn is_in_heavy_reply(&self) -> bool {
        self.object().is_some_and(|object| match object {
            Object::Shared(bytes) => bytes.len() >= HEAVY_STRING && !bytes.is_unique(),
            Object::Buffer(buffer) => buffer.len() >= HEAVY_STRING && buffer.is_shared(),
            _ => false,
        })
    }

    /// Whether it is a collection of more than so many blocks, or a very large run of bytes.
    #[inline]
    fn is_larger_than(&self, blocks: usize) -> bool {
        self.object().is_some_and(|object| match object.as_ref() {
            ValueRef::Str(string) => string.len() >= HEAVY_STRING,
            run @ (ValueRef::Json(_) | ValueRef::Bloom(_)) => run.payload() >= HEAVY_STRING,
            collection => collection.blocks() > blocks,
        })
    }

    /// Bytes of the block and of what hangs on it.
    pub fn memory(&self) -> usize {
        self.block_size() + self.object().map_or(0, |object| object.as_ref().payload())
    }

    /// Bytes of the block itself.
    pub fn block_size(&self) -> usize {
        self.shape().layout().size()
    }
}

enum Taken {
    Bytes,
    Object(Object),
}

impl Drop for Entry {
    fn drop(&mut self) {
        let shape = self.shape();
        // SAFETY: the block was allocated with this layout, which depends on the header alone; an object is dropped
        // once, here, and nothing refers to the block any more.
        unsafe {
            if shape.flags & OBJECT != 0 {
                self.at(OBJECT_AT).cast::<Object>().drop_in_place();
            }
            dealloc(self.0.as_ptr().cast(), shape.layout());
        }
    }
}

impl<'a> Value<'a> {
    /// The smallest form: integers as such, large strings in a buffer of their own.
    fn compact(self) -> Self {
        match self {
            Self::Bytes(bytes) if bytes.len() <= MAX_INT_LEN => number::parse_i64(bytes).map_or(self, Value::Int),
            Self::Bytes(bytes) | Self::Text(bytes) | Self::Raw(bytes) if bytes.len() >= SHARED_MIN => {
                Self::Shared(Bytes::copy_from_slice(bytes))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(entry: &Entry) -> Vec<u8> {
        entry.string().expect("the entry holds a string").to_vec()
    }

    fn encoding(entry: &Entry) -> &'static str {
        entry.value().encoding()
    }

    #[test]
    fn bytes_are_filled_or_copied_only_where_there_is_no_room() {
        let mut entry = Entry::new(b"key", Value::Bytes(b"short"), None);
        assert_eq!((entry.bytes_to_fill(5), entry.bytes_to_fill(5000)), (0, 5000));
        entry.bytes_mut(5000).unwrap();
        assert_eq!(entry.bytes_to_fill(5000), 0);
        assert_eq!(entry.bytes_to_fill(6000), 6000, "it is copied to where there is room");
        entry.bytes_mut(6000).unwrap();
        assert_eq!(entry.bytes_to_fill(6001), 1, "twice 5,000 bytes have room");
        let reply = entry.string().map(|string| string.share());
        assert_eq!(entry.bytes_to_fill(10), 6000, "a reply holds the bytes");
        drop(reply);
        assert_eq!(entry.bytes_to_fill(10), 0);
    }

    #[test]
    fn strings_grow_in_place_in_every_form() {
        let long = vec![b'x'; SHARED_MIN];
        let starts = [&b""[..], b"12345", b"text", &long[..GROW_INLINE_MAX - 1], &long[..5000], &long];
        for start in starts {
            for tail in [0, 1, 30, GROW_INLINE_MAX, 3 * SHARED_MIN].map(|len| vec![b'y'; len]) {
                for expire_at in [None, Some(7)] {
                    let mut entry = Entry::new(b"key", Value::Bytes(start), expire_at);
                    entry.set_access(5);
                    let expected = [start, &tail].concat();
                    assert_eq!(entry.append(&tail), Some(expected.len()));
                    assert!(text(&entry) == expected, "{} bytes and {} more", start.len(), tail.len());
                    let mut expected = [&expected[..], &[0; 40]].concat();
                    let bytes = entry.bytes_mut(expected.len()).expect("it is a string");
                    assert!(bytes == expected);
                    bytes[0] = b'z';
                    expected[0] = b'z';
                    assert!(text(&entry) == expected);
                    assert_eq!(encoding(&entry), "raw");
                    assert_eq!((entry.key(), entry.expire_at(), entry.access()), (&b"key"[..], expire_at, 5));
                }
            }
        }
    }

    #[test]
    fn strings_of_any_length_take_the_place_of_others() {
        let long = vec![b'x'; SHARED_MIN - 1];
        let values = [&b""[..], b"7", b"-12345678901", b"text", &long[..30], &long[..100], &long[..5000], &long];
        for before in values {
            for after in values {
                for (was, is) in [(None, None), (Some(7), None), (Some(7), Some(8)), (None, Some(8))] {
                    let mut entry = Entry::new(b"key", Value::Bytes(before), was);
                    entry.set_access(5);
                    drop(entry.replace(Value::Bytes(after), is));
                    assert!(text(&entry) == after, "{} bytes behind {}", after.len(), before.len());
                    assert_eq!(encoding(&entry), encoding(&Entry::new(b"key", Value::Bytes(after), is)));
                    assert_eq!((entry.key(), entry.expire_at(), entry.access()), (&b"key"[..], is, 5));
                }
            }
        }
    }

    #[test]
    fn shared_bytes_are_never_changed() {
        let shared = Bytes::from(vec![b'x'; SHARED_MIN]);
        let mut entry = Entry::new(b"key", Value::Shared(shared.clone()), None);
        entry.bytes_mut(1).expect("it is a string")[0] = b'y';
        assert_eq!((shared[0], text(&entry)[0]), (b'x', b'y'));
    }

    #[test]
    fn encodings_follow_what_was_stored_last() {
        let long = [b'1'; 45];
        let cases: [(Value<'_>, &str); 6] = [
            (Value::Bytes(b"12"), "int"),
            (Value::Text(b"12"), "embstr"),
            (Value::Raw(b"12"), "raw"),
            (Value::Bytes(&long[..44]), "embstr"),
            (Value::Bytes(&long), "raw"),
            (Value::written(b"12".to_vec()), "raw"),
        ];
        for (value, expected) in cases {
            for start in [Value::Bytes(b"ab"), Value::Int(1), Value::Raw(b"xy"), Value::written(vec![0; 5000])] {
                for expire_at in [None, Some(9)] {
                    let mut entry = Entry::new(b"key", clone(&start), expire_at);
                    drop(entry.replace_value(clone(&value)));
                    assert_eq!((encoding(&entry), entry.expire_at()), (expected, expire_at));
                    drop(entry.replace(clone(&value), None));
                    assert_eq!((encoding(&entry), entry.expire_at()), (expected, None));
                }
            }
        }
    }

    fn clone<'a>(value: &Value<'a>) -> Value<'a> {
        match value {
            Value::Bytes(bytes) => Value::Bytes(bytes),
            Value::Text(bytes) => Value::Text(bytes),
            Value::Raw(bytes) => Value::Raw(bytes),
            Value::Int(int) => Value::Int(*int),
            Value::Shared(bytes) => Value::Shared(bytes.clone()),
            Value::Object(Object::Buffer(bytes)) => Value::written(bytes.to_vec()),
            Value::Object(_) => unreachable!("no case has a collection"),
        }
    }
}
