//! Where requests end, and what is answered.

use std::collections::HashMap;

use base64::Engine as _;

/// The protocols of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// GET, SET and PING on a table of its own for each connection.
    #[default]
    Redis,
    /// Answers every request with `hello` and its path.
    Http,
    /// Echoes every message.
    WebSocket,
    /// Property 80 is 30.
    EchonetTcp,
    EchonetUdp,
}

/// A table of Redis' keys.
pub(crate) type Keys = HashMap<Vec<u8>, Vec<u8>>;

impl Dialect {
    /// The answer to a request that only begins a conversation, and is none of those that are counted.
    pub(crate) fn greeting(self, request: &[u8]) -> Option<Vec<u8>> {
        let is_greeting = self == Self::WebSocket && request.starts_with(b"GET ");
        is_greeting.then(|| {
            let head = String::from_utf8_lossy(request);
            let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
            // Section 1.3 of RFC 6455.
            let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
            let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
            let accept = base64::engine::general_purpose::STANDARD.encode(digest);
            let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
            format!("{head}Sec-WebSocket-Accept: {accept}\r\n\r\n").into_bytes()
        })
    }

    /// How long the first request of the input is, if it is complete.
    pub(crate) fn request(self, input: &[u8]) -> Option<usize> {
        match self {
            Self::Redis => words(input).map(|(_, length)| length),
            Self::WebSocket if input.starts_with(b"GET ") => {
                input.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4)
            }
            Self::WebSocket => frame(input).map(|(_, length)| length),
            Self::Http => {
                let head = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                let text = String::from_utf8_lossy(&input[..head]).to_ascii_lowercase();
                let body = text.split_once("content-length: ").map_or(0, |(_, rest)| {
                    rest.split("\r\n").next().and_then(|length| length.parse().ok()).unwrap_or(0)
                });
                (input.len() >= head + body).then_some(head + body)
            }
            Self::EchonetTcp | Self::EchonetUdp => {
                let mut end = 12;
                for _ in 0..*input.get(11)? {
                    end += 2 + usize::from(*input.get(end + 1)?);
                }
                (end <= input.len()).then_some(end)
            }
        }
    }

    /// The answer to a complete request; a wrong one has one byte that is another.
    pub(crate) fn answer(self, request: &[u8], keys: &mut Keys, is_wrong: bool) -> Vec<u8> {
        let (mut answer, place) = match self {
            Self::Redis => redis(request, keys),
            Self::WebSocket => {
                let (payload, _) = frame(request).expect("it is complete");
                let mut answer = vec![0x81];
                match payload.len() {
                    length @ 0..=125 => answer.push(length as u8),
                    length => answer.extend([&[126][..], &(length as u16).to_be_bytes()].concat()),
                }
                let place = answer.len();
                answer.extend(payload);
                (answer, place)
            }
            Self::Http => {
                let path = request.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
                let body = [b"hello ", path].concat();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                ([head.as_bytes(), &body].concat(), head.len())
            }
            Self::EchonetTcp | Self::EchonetUdp => {
                let head = [&request[..4], &request[7..10], &request[4..7], &[request[10] + 0x10, 1, request[12]]];
                let head = head.concat();
                let lists: &[u8] = if request[10] == 0x62 { b"\x01\x30" } else { b"\0" };
                let place = head.len() + lists.len() - 1;
                ([&head, lists].concat(), place)
            }
        };
        if is_wrong {
            answer[place] ^= 1;
        }
        answer
    }
}

/// The answer, and the place of a byte that can be made wrong without breaking the protocol.
fn redis(request: &[u8], keys: &mut Keys) -> (Vec<u8>, usize) {
    let (words, _) = words(request).expect("it is complete");
    match (words[0].to_ascii_uppercase().as_slice(), &words[1..]) {
        (b"SET", [key, value, ..]) => {
            keys.insert(key.to_vec(), value.to_vec());
            (b"+OK\r\n".to_vec(), 2)
        }
        (b"GET", [key]) => match keys.get(*key) {
            Some(value) => {
                let head = format!("${}\r\n", value.len());
                ([head.as_bytes(), value, b"\r\n"].concat(), head.len())
            }
            None => (b"$-1\r\n".to_vec(), 0),
        },
        (b"ECHO", [word]) => {
            let head = format!("${}\r\n", word.len());
            ([head.as_bytes(), word, b"\r\n"].concat(), head.len())
        }
        (b"PING", _) => (b"+PONG\r\n".to_vec(), 1),
        _ => (b"-ERR unknown command\r\n".to_vec(), 1),
    }
}

/// The payload of a masked frame, shorter than 64 KiB, and the length of all of it.
fn frame(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (length, head) = match *input.get(1)? & 0x7f {
        126 => (usize::from(u16::from_be_bytes([*input.get(2)?, *input.get(3)?])), 4),
        length => (usize::from(length), 2),
    };
    let (mask, payload) = input.get(head..head + 4 + length)?.split_at(4);
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Some((payload, head + 4 + length))
}

pub(super) fn words(input: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let number = |at: usize| -> Option<(usize, usize)> {
        let end = at + input.get(at..)?.windows(2).position(|two| two == b"\r\n")?;
        let number = std::str::from_utf8(input.get(at + 1..end)?).ok()?.parse().ok()?;
        Some((number, end + 2))
    };
    let (count, mut at) = number(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, start) = number(at)?;
        words.push(input.get(start..start + length)?);
        at = start + length + 2;
    }
    (at <= input.len()).then_some((words, at))
}
