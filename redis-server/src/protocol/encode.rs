//! Commands, as clients and primaries write them.

/// Appends a command.
pub fn encode_command<'w>(bytes: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    length(bytes, b'*', words.len());
    for word in words {
        bytes.reserve(word.len() + 16);
        length(bytes, b'$', word.len());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}

fn length(bytes: &mut Vec<u8>, kind: u8, length: usize) {
    bytes.push(kind);
    bytes.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    bytes.extend_from_slice(b"\r\n");
}
