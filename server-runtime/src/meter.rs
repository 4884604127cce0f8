//! What an HTTP/2 client sends beside its requests, counted.
//!
//! h2 answers every PING and SETTINGS, and takes every reset, WINDOW_UPDATE and empty frame, for as long as they come.
//! Their memory is bounded, the work they make is not. So frames are weighed here as they are read: those that carry a
//! call or its data are worth something, others cost, and so does time pass.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes of a frame's head (RFC 9113 section 4.1).
const HEAD: usize = 9;

/// Bytes before the first frame of a client (RFC 9113 section 3.4).
const PREFACE: usize = 24;

/// After this long a client may send as much again.
const PERIOD: Duration = Duration::from_secs(1);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;

/// Weighs frames of HTTP/2 as a server reads them, from the client's preface on.
#[derive(Debug)]
pub struct Meter {
    /// Bytes of a frame that are not looked at.
    skip: usize,
    head: [u8; HEAD],
    /// Bytes of the head that are there.
    filled: usize,
    credit: i64,
    most: i64,
    began: Instant,
}

impl Meter {
    /// Allows `most` frames that carry nothing in each period.
    pub fn new(most: u32) -> Self {
        let most = i64::from(most);
        Self { skip: PREFACE, head: [0; HEAD], filled: 0, credit: most, most, began: Instant::now() }
    }

    /// Looks at bytes as they come. False when there was too much; then it is false ever after.
    #[inline]
    pub fn read(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if self.skip > 0 {
                break;
            }
            if self.filled == 0
                && let Some((head, rest)) = bytes.split_first_chunk::<HEAD>()
            {
                (self.head, bytes) = (*head, rest);
                self.weigh();
                continue;
            }
            let wanted = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + wanted].copy_from_slice(&bytes[..wanted]);
            self.filled += wanted;
            bytes = &bytes[wanted..];
            if self.filled == HEAD {
                self.filled = 0;
                self.weigh();
            }
        }
        self.credit >= 0 || self.refill()
    }

    /// What is sent to a client lets it send windows, acknowledgements and resets for it.
    #[inline]
    pub fn wrote(&mut self, bytes: usize) {
        self.credit = (self.credit + (bytes / 512) as i64).min(self.most);
    }

    #[inline]
    fn weigh(&mut self) {
        let [high, middle, low, kind, ..] = self.head;
        self.skip = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.credit += match kind {
            DATA if self.skip > 0 => 1,
            HEADERS => 1,
            // With the call that it ends it costs one.
            RST_STREAM => -2,
            _ => -1,
        };
        self.credit = self.credit.min(self.most);
    }

    #[cold]
    fn refill(&mut self) -> bool {
        let now = Instant::now();
        if now.duration_since(self.began) < PERIOD {
            return false;
        }
        (self.began, self.credit) = (now, self.most);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let length = (length as u32).to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 1];
        bytes.resize(HEAD + usize::from(length[2]) * 256 + usize::from(length[3]), b'x');
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn frames_that_carry_nothing_run_out() {
        // Kinds and lengths of frames, and whether a thousand of each are too many.
        async fn check(frames: &[(u8, usize)], is_fine: bool) {
            let round: Vec<u8> = frames.iter().flat_map(|(kind, length)| frame(*kind, *length)).collect();
            let all = [vec![b'P'; PREFACE], round.repeat(1000)].concat();
            for size in [1, 2, 8, 9, 10, 17, 1000, all.len()] {
                let mut meter = Meter::new(500);
                let fine = all.chunks(size).all(|bytes| meter.read(bytes));
                assert_eq!(fine, is_fine, "{frames:?} in pieces of {size}");
                tokio::time::advance(PERIOD).await;
                assert!(meter.read(b""), "time gives it back");
            }
        }
        check(&[(HEADERS, 40), (DATA, 7)], true).await;
        check(&[(HEADERS, 40), (DATA, 7), (8, 4), (6, 8)], true).await;
        check(&[(DATA, 300)], true).await;
        check(&[(DATA, 0)], false).await;
        check(&[(6, 8)], false).await;
        check(&[(4, 0)], false).await;
        check(&[(8, 4)], false).await;
        check(&[(HEADERS, 40), (RST_STREAM, 4)], false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_lets_windows_come() {
        let mut meter = Meter::new(500);
        assert!(meter.read(&[b'P'; PREFACE]));
        for _ in 0..10_000 {
            meter.wrote(16 * 1024);
            assert!(meter.read(&frame(8, 4)) && meter.read(&frame(6, 8)));
        }
    }
}
