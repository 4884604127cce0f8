//! The arguments of a call.

use bytes::Bytes;

use super::row::Result;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::protocol::number;
use crate::protocol::{MAX_REQUEST, Span};

/// Arguments from this length on are taken over without a copy, where the input buffer is not much larger.
const SHARE_MIN: usize = 16 * 1024;

/// The arguments of a call, the command's name first: positions in the input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buf: &'a [u8],
    spans: &'a [Span],
    /// The buffer's owner, when arguments may be taken over from it.
    owner: Option<&'a Bytes>,
    /// The declared keys, hashed and locked.
    keys: &'a [Key<'a>],
}

impl<'a> Args<'a> {
    /// Arguments at `spans` of `buf`.
    #[inline]
    pub fn new(buf: &'a [u8], spans: &'a [Span]) -> Self {
        Self { buf, spans, owner: None, keys: &[] }
    }

    /// Arguments at `spans` of a buffer that large arguments may share.
    pub fn shared(owner: &'a Bytes, spans: &'a [Span]) -> Self {
        Self { buf: owner, spans, owner: Some(owner), keys: &[] }
    }

    /// Arguments at `spans` of the same buffer.
    #[inline]
    pub fn with_spans(self, spans: &'a [Span]) -> Self {
        Self { spans, ..self }
    }

    /// The same arguments, with their keys.
    #[inline]
    pub fn with_keys<'k>(self, keys: &'k [Key<'k>]) -> Args<'k>
    where
        'a: 'k,
    {
        Args { keys, ..self }
    }

    /// The declared keys in the table's order: `MSET a 1 b 2` has two.
    #[inline]
    pub fn keys(self) -> &'a [Key<'a>] {
        self.keys
    }

    /// Declared key `index`: 0 is the first key, whichever argument it stands in.
    ///
    /// # Panics
    /// When there is none. A command whose row and arity promise the key may rely on it; one that finds its keys by a
    /// count (`numkeys`) must look at [`Args::keys`].
    #[inline]
    pub fn key(self, index: usize) -> &'a Key<'a> {
        &self.keys[index]
    }

    /// Number of arguments, the name included.
    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there is none at all.
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// Argument `index`; 0 is the command's name.
    ///
    /// # Panics
    /// When there is no such argument: the row's arity promises those that a handler names.
    #[inline]
    pub fn at(self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        &self.buf[span.start as usize..][..span.len as usize]
    }

    /// Argument `index`, if there is one.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        (index < self.len()).then(|| self.at(index))
    }

    /// The name, and what the buffer holds from there on.
    #[inline]
    pub(super) fn name_and_following(self) -> Option<(&'a [u8], &'a [u8])> {
        let span = self.spans.first()?;
        let following = &self.buf[span.start as usize..];
        Some((&following[..span.len as usize], following))
    }

    /// The arguments from `first` on.
    #[inline]
    pub fn from(self, first: usize) -> Self {
        Self { spans: &self.spans[first.min(self.spans.len())..], ..self }
    }

    /// The first `count` arguments.
    #[inline]
    pub fn first(self, count: usize) -> Self {
        Self { spans: &self.spans[..count.min(self.spans.len())], ..self }
    }

    /// The arguments one by one.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone {
        self.spans.iter().map(move |span| &self.buf[span.start as usize..][..span.len as usize])
    }

    /// Bytes from the first argument to the end of the last, with what stands between them in the input.
    #[inline]
    pub fn extent(self) -> usize {
        self.extent_to(self)
    }

    /// Bytes from the first argument to the end of the last one of a later call in the same input.
    #[inline]
    pub fn extent_to(self, later: Args<'_>) -> usize {
        match (self.spans.first(), later.spans.last()) {
            (Some(first), Some(last)) => (last.start + last.len).saturating_sub(first.start) as usize,
            _ => 0,
        }
    }

    /// Bytes of the call as clients send it.
    pub fn request_len(self) -> usize {
        let head = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 4;
        head(self.len()) + self.iter().map(|arg| head(arg.len()) + arg.len() + 2).sum::<usize>()
    }

    /// Argument `index` as an owned buffer, shared with the input when it is large.
    pub fn bytes(self, index: usize) -> Bytes {
        let arg = self.at(index);
        match self.owner {
            Some(owner) if self.takes_over(arg.len()) => owner.slice_ref(arg),
            _ => Bytes::copy_from_slice(arg),
        }
    }

    /// True if [`Args::bytes`] shares an argument of so many bytes with the input, which has little else.
    pub fn takes_over(self, len: usize) -> bool {
        self.owner.is_some_and(|owner| len >= SHARE_MIN && owner.len() < len * 2)
    }

    /// Whether argument `index` is `word`, in any case of letters.
    #[inline]
    pub fn is(self, index: usize, word: &str) -> bool {
        self.at(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Argument `index` as a 64-bit integer.
    ///
    /// # Errors
    /// `ERR value is not an integer or out of range`.
    #[inline]
    pub fn int(self, index: usize) -> Result<i64> {
        number::parse_i64(self.at(index)).ok_or(Error::NotInteger)
    }

    /// Argument `index` as a double.
    ///
    /// # Errors
    /// `ERR value is not a valid float`.
    pub fn float(self, index: usize) -> Result<f64> {
        number::parse_f64(self.at(index)).ok_or(Error::NotFloat)
    }

    /// The same arguments, which own their bytes: a copy, or the input where it is large.
    pub fn to_owned(self) -> OwnedArgs {
        if let Some(input) = self.large_input() {
            return OwnedArgs { input: Some(input.clone()), spans: self.spans.to_vec(), ..OwnedArgs::default() };
        }
        let len = self.iter().map(<[u8]>::len).sum();
        let mut owned = OwnedArgs { bytes: Vec::with_capacity(len), ..OwnedArgs::default() };
        self.iter().for_each(|arg| owned.push(arg));
        owned
    }

    /// The input, if the arguments are large and most of it.
    fn large_input(self) -> Option<&'a Bytes> {
        self.owner.filter(|_| self.takes_over(self.extent()))
    }
}

/// Arguments that own their bytes: queued by MULTI, or parked by a blocking command.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    /// Where they stand, unless in `input`.
    bytes: Vec<u8>,
    /// The input that they came with, where that is large.
    input: Option<Bytes>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    /// The arguments.
    pub fn args(&self) -> Args<'_> {
        match &self.input {
            Some(input) => Args::shared(input, &self.spans),
            None => Args::new(&self.bytes, &self.spans),
        }
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        let input = self.input.as_ref().map_or(0, Bytes::len);
        input + self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// Becomes the same as other arguments: a copy in the room that is there, or their input where it is large.
    pub fn copy_from(&mut self, args: Args<'_>) {
        self.clear();
        if let Some(input) = args.large_input() {
            self.input = Some(input.clone());
            self.spans.extend_from_slice(args.spans);
            return;
        }
        // A request's arguments lie one behind the other with a few bytes between them: one copy takes them all.
        let start = args.spans.iter().map(|span| span.start).min().unwrap_or(0);
        let end = args.spans.iter().map(|span| span.start + span.len).max().unwrap_or(0);
        self.bytes.extend_from_slice(&args.buf[start as usize..end as usize]);
        self.spans.extend(args.spans.iter().map(|span| Span { start: span.start - start, len: span.len }));
    }

    /// Forgets everything; keeps the room, unless it has become very large.
    pub fn clear(&mut self) {
        const KEPT: usize = 64 * 1024;
        self.input = None;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.spans.clear();
        self.spans.shrink_to(KEPT / size_of::<Span>());
    }

    /// Whether so many bytes more can be appended: offsets have 32 bits. There is always room for the digits of as many numbers as a call of
    /// Lua's can have arguments.
    pub fn has_room_for(&self, len: usize) -> bool {
        const NUMBERS: usize = 1 << 20;
        self.input.as_ref().map_or(self.bytes.len(), Bytes::len) + len <= MAX_REQUEST - NUMBERS
    }

    /// Takes the arguments out of their input: they are about to change.
    fn leave_input(&mut self) {
        if let Some(input) = self.input.take() {
            self.bytes = input.into();
        }
    }

    /// Appends an argument.
    #[inline]
    pub fn push(&mut self, arg: &[u8]) {
        self.leave_input();
        self.spans.push(Span { start: self.bytes.len() as u32, len: arg.len() as u32 });
        self.bytes.extend_from_slice(arg);
    }

    /// Replaces argument `index`.
    pub fn replace(&mut self, index: usize, value: &[u8]) {
        self.leave_input();
        self.spans[index] = Span { start: self.bytes.len() as u32, len: value.len() as u32 };
        self.bytes.extend_from_slice(value);
    }
}

impl<'a> FromIterator<&'a [u8]> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(words: I) -> Self {
        let mut owned = Self::default();
        words.into_iter().for_each(|word| owned.push(word));
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_arguments_stay_in_their_input_until_they_change() {
        let value = "v".repeat(SHARE_MIN);
        let input = Bytes::from(format!("SET k {value}"));
        let spans = [(0, 3), (4, 1), (6, SHARE_MIN as u32)].map(|(start, len)| Span { start, len });
        let words = |owned: &OwnedArgs| owned.args().iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        let expected = vec![b"SET".to_vec(), b"k".to_vec(), value.into_bytes()];
        let mut copied = OwnedArgs::from_iter([&b"GET"[..], b"x"]);
        copied.copy_from(Args::shared(&input, &spans));
        let mut owned = Args::shared(&input, &spans).to_owned();
        for owned in [&owned, &copied] {
            assert_eq!(words(owned), expected);
            assert_eq!(owned.args().at(2).as_ptr(), input[6..].as_ptr(), "it is not copied");
            assert!(owned.args().takes_over(SHARE_MIN) && owned.memory() >= input.len());
        }
        owned.replace(1, b"other");
        owned.push(b"NX");
        assert_eq!(words(&owned), [&expected[..1], &[b"other".to_vec()], &expected[2..], &[b"NX".to_vec()]].concat());
        assert_eq!(words(&copied), expected);
        copied.clear();
        assert!(copied.args().is_empty() && copied.memory() < SHARE_MIN);
        // Of an input that is mostly something else, they are a copy.
        assert_ne!(Args::shared(&input, &spans[..2]).to_owned().args().at(1).as_ptr(), input[4..].as_ptr());
    }
}
