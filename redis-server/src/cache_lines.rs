//! The places of fields among cache lines.

/// Bytes of a cache line on the processors that the server is built for, at least.
pub(crate) const LINE: usize = 64;

/// The size of what a function returns.
pub(crate) const fn size<S, T>(_: fn(&S) -> &T) -> usize {
    size_of::<T>()
}

/// Asserts that a field of a struct shares no cache line with another field.
macro_rules! assert_apart {
    ($of:ty, $field:ident) => {
        let (at, size) = (std::mem::offset_of!($of, $field), crate::cache_lines::size(|of: &$of| &of.$field));
        assert!(align_of::<$of>() % crate::cache_lines::LINE == 0, "{} begins with a line", stringify!($of));
        assert!(
            at % crate::cache_lines::LINE == 0 && size % crate::cache_lines::LINE == 0,
            "{}: {at}, {size}",
            stringify!($field)
        );
    };
}

pub(crate) use assert_apart;
