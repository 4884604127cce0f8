//! Entry points of the fuzz targets of this workspace: parsers of bytes from Redis that are private otherwise.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::Format;
use crate::redis::budget::Budget;
use crate::redis::mux::{Limits, Mux};
use crate::redis::reply::Elements;

/// How many replies each of the callers waits for.
const CALLERS: [u32; 3] = [1, 2, 1];

/// Bytes of an answer that a caller takes.
const MAX_ANSWER: usize = 4096;

/// Takes bytes as replies of Redis. Nothing panics, pieces make no difference, and each caller's answer is whole.
///
/// # Panics
/// If one of these is not so.
pub fn replies_of_redis(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let whole = answers(bytes, bytes.len().max(1));
    assert_eq!(answers(bytes, usize::from(cut) + 1), whole, "in pieces of {}", usize::from(cut) + 1);
    for (replies, answer) in CALLERS.into_iter().zip(&whole.0) {
        let Some(Ok(answer)) = answer else { continue };
        let mut elements = Elements::new(answer);
        (0..replies).for_each(|_| elements.pass());
        assert!(elements.rest().is_empty(), "an answer is as many replies as were asked for");
        assert!(Elements::new(answer).count() <= answer.len());
        for format in [Format::Json, Format::MessagePack, Format::Raw] {
            format.render(answer, (replies > 1).then_some(replies as usize));
        }
    }
}

/// The answer of each caller, and whether the connection goes on.
type Seen = (Vec<Option<Result<Vec<u8>, String>>>, bool);

fn answers(bytes: &[u8], step: usize) -> Seen {
    let now = Instant::now();
    let answer_timeout = Duration::from_secs(1);
    let limits = Limits { max_answer: MAX_ANSWER, max_waiting: 10, max_unsent: 1000, answer_timeout };
    let mut mux = Mux::new(limits, &Budget::new(1 << 20), now);
    let ask = |replies| mux.push(replies, now, |out| out.push(b'x')).expect("there is room");
    let tickets = CALLERS.map(ask);
    mux.sent(CALLERS.len());
    let (mut unread, mut goes_on) = (Vec::new(), true);
    for piece in bytes.chunks(step) {
        unread.extend_from_slice(piece);
        match mux.received(&unread, now) {
            Ok(taken) => drop(unread.drain(..taken)),
            Err(_) => {
                goes_on = false;
                break;
            }
        }
    }
    let taken = tickets.map(|ticket| match mux.poll(ticket, &Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => Some(Ok(answer.to_vec())),
        Poll::Ready(Err(failure)) => Some(Err(failure.to_string())),
        Poll::Pending => None,
    });
    (taken.into(), goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A little of what the fuzzer does, in every test run: good replies, damaged in the same way each time.
    #[test]
    fn damaged_replies() {
        const GOOD: [&[u8]; 4] = [
            b"$3\r\nfoo\r\n+OK\r\n*2\r\n:1\r\n$-1\r\n-ERR no\r\n",
            b"%1\r\n+k\r\n~2\r\n#t\r\n,1.5\r\n|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n_\r\n(123\r\n",
            b"=7\r\ntxt:abc\r\n!3\r\nERR\r\n>2\r\n+a\r\n+b\r\n*0\r\n",
            b"*1\r\n*1\r\n*1\r\n$0\r\n\r\n:9223372036854775808\r\n,inf\r\n+\r\n",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for round in 0..50_000 {
            let mut bytes = GOOD[round % GOOD.len()].to_vec();
            bytes.insert(0, random(8) as u8);
            for _ in 0..random(4) {
                let (at, new) = (random(bytes.len()), b"\r\n$*%+-:|~>_,#=!(0192x\xff"[random(23)]);
                match random(3) {
                    0 => bytes[at] = new,
                    1 => bytes.insert(at, new),
                    _ => drop(bytes.remove(at)),
                }
                if bytes.is_empty() {
                    bytes.push(0);
                }
            }
            replies_of_redis(&bytes);
        }
    }
}
