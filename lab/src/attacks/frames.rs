//! Frames of HTTP/2, as far as attacks need them.

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
/// Of SETTINGS and PING.
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// The payload of the PING behind a round of a flood.
pub(super) const ROUND: [u8; 8] = *b"a round.";

/// A frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("attacks are not that large").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The first bytes of every connection, with these settings: pairs of identifier and value.
pub(super) fn preface(settings: &[(u16, u32)]) -> Vec<u8> {
    let settings: Vec<u8> =
        settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()).collect();
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &settings)].concat()
}

/// The header block of a request, which leaves the header table alone.
pub(super) fn head(method: &str, path: &str, content_type: Option<&str>) -> Vec<u8> {
    // `:scheme: http`
    let mut block = vec![0x86];
    literal(&mut block, &[0x02], method);
    literal(&mut block, &[0x04], path);
    literal(&mut block, &[0x01], "localhost");
    if let Some(content_type) = content_type {
        // 31 of the static table: a prefix of four bits, and 16 more.
        literal(&mut block, &[0x0f, 0x10], content_type);
    }
    block
}

fn literal(block: &mut Vec<u8>, name: &[u8], value: &str) {
    block.extend_from_slice(name);
    block.push(u8::try_from(value.len()).expect("attacks' names are short"));
    block.extend_from_slice(value.as_bytes());
}

/// A frame that came.
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    payload: &'a [u8],
}

impl Frame<'_> {
    /// The reason of a GOAWAY or RST_STREAM; of others nothing that means anything.
    pub(super) fn reason(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }

    /// The answer to a PING.
    pub(super) fn pong(&self) -> Option<Vec<u8>> {
        (self.kind == PING && self.flags & ACK == 0).then(|| frame(PING, ACK, 0, self.payload))
    }

    /// Whether the server has answered the PING behind a round.
    pub(super) fn is_answer_to_round(&self) -> bool {
        self.kind == PING && self.flags & ACK != 0 && self.payload == ROUND
    }

    /// Bytes that it takes.
    pub(super) fn len(&self) -> usize {
        9 + self.payload.len()
    }
}

/// The whole frames of what was read.
pub(super) fn parse(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let Some((payload, rest)) = rest.split_at_checked(length) else { break };
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push(Frame { kind: head[3], flags: head[4], stream, payload });
        bytes = rest;
    }
    frames
}
