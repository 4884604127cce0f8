//! The budget for a peer's frames: it limits the work that they cause, as other limits do with memory.

use std::time::{Duration, Instant};

use crate::frame::Kind;

/// After this long a peer may send as much again.
const PERIOD: Duration = Duration::from_secs(1);

/// Control frames that each sent DATA frame justifies. A client that returns the window at once sends one WINDOW_UPDATE
/// for the stream and one for the connection. grpc-go, grpc-java and gRPC's C core add a PING to measure the round
/// trip.
const DATA_WORTH: i64 = 3;

/// Bytes of DATA that justify a frame where the peer's window cuts the DATA short. A peer that opens its windows byte by byte
/// earns nothing; one whose windows are 256 bytes pays its two WINDOW_UPDATEs.
const BYTES_WORTH: usize = 128;

/// Bytes from which on a CONTINUATION costs nothing: it carries a header block.
const BLOCK_WORTH: usize = 512;

/// A count of frames that carry nothing. Requests, their data and their answers earn credit; all other frames cost.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    credit: i64,
    most: i64,
    /// Bytes sent in DATA that have earned nothing yet; fewer than [`BYTES_WORTH`].
    remainder: usize,
    /// When the credit was full last.
    began: Instant,
}

impl Budget {
    pub(crate) fn new(most: u32, now: Instant) -> Self {
        let most = if most == 0 { i64::MAX / 2 } else { i64::from(most) };
        Self { credit: most, most, remainder: 0, began: now }
    }

    /// A frame with a payload of `length` bytes was received.
    #[inline]
    pub(crate) fn weigh(&mut self, kind: Kind, length: usize) {
        let worth = match kind {
            // An empty frame is charged once that is known; so is a refused request.
            Kind::Data | Kind::Headers => 1,
            Kind::Continuation if length >= BLOCK_WORTH => 0,
            // With the request that it ends it costs one.
            Kind::RstStream => -2,
            Kind::Priority
            | Kind::Settings
            | Kind::PushPromise
            | Kind::Ping
            | Kind::GoAway
            | Kind::WindowUpdate
            | Kind::Continuation
            | Kind::PriorityUpdate
            | Kind::Unknown => -1,
        };
        self.earn(worth);
    }

    #[inline]
    pub(crate) fn charge(&mut self, cost: i64) {
        self.credit -= cost;
    }

    /// A head or trailers were sent.
    #[inline]
    pub(crate) fn sent_block(&mut self) {
        self.earn(1);
    }

    /// DATA was sent: all bytes of the handler, or a part cut to the windows and the output (`is_cut`). Of such a part
    /// only bytes count, because the peer's windows choose how many frames it takes.
    #[inline]
    pub(crate) fn sent_data(&mut self, bytes: usize, is_cut: bool) {
        let bytes = self.remainder + bytes;
        self.remainder = bytes % BYTES_WORTH;
        let whole = if is_cut { 0 } else { DATA_WORTH };
        self.earn(whole + (bytes / BYTES_WORTH) as i64);
    }

    #[inline]
    fn earn(&mut self, worth: i64) {
        self.credit = (self.credit + worth).min(self.most);
    }

    /// Whether the peer has sent too much.
    #[inline]
    pub(crate) fn is_spent(&mut self, now: Instant) -> bool {
        self.credit < 0 && !self.refill(now)
    }

    #[cold]
    fn refill(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.began) >= PERIOD;
        if is_due {
            (self.began, self.credit) = (now, self.most);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a round trip: frames received with their lengths, and frames sent.
    enum Step {
        Heard(Kind, usize),
        Head,
        Data(usize),
        /// DATA that the peer's windows cut short.
        Cut(usize),
    }

    use Step::{Cut, Data, Head, Heard};

    fn ping() -> Step {
        Heard(Kind::Ping, 8)
    }

    fn window() -> Step {
        Heard(Kind::WindowUpdate, 4)
    }

    fn cancel() -> Step {
        Heard(Kind::RstStream, 4)
    }

    fn call() -> Step {
        Heard(Kind::Headers, 40)
    }

    fn message() -> Step {
        Heard(Kind::Data, 10)
    }

    /// The round in which the budget is spent, of so many; no time passes.
    fn spent_after(rounds: u32, round: &[Step]) -> Option<u32> {
        let now = Instant::now();
        let mut budget = Budget::new(10_000, now);
        (0..rounds).find(|_| {
            for step in round {
                match *step {
                    Heard(kind, length) => budget.weigh(kind, length),
                    Head => budget.sent_block(),
                    Data(bytes) => budget.sent_data(bytes, false),
                    Cut(bytes) => budget.sent_data(bytes, true),
                }
            }
            budget.is_spent(now)
        })
    }

    /// Frames of a round trip as clients send them, seen on the wire: none is cut off, at whatever speed.
    #[test]
    fn honest_clients_never_spend_it() {
        let rows: &[(&str, &[Step])] = &[
            ("grpc-go, a stream of ping-pong", &[message(), Data(12), window(), ping()]),
            ("grpc-go, with the stream's window", &[message(), Data(12), window(), window(), ping()]),
            ("C core, a stream of ping-pong", &[message(), Data(5), ping(), window(), window()]),
            ("a stream of answers", &[Data(12), window(), window(), ping()]),
            ("a stream of empty messages", &[Data(5), window(), window(), ping()]),
            ("short calls", &[call(), message(), Head, Data(12), Head, window(), window(), ping()]),
            ("every second call cancelled", &[call(), message(), cancel(), call(), message(), Head, Data(12), Head]),
            ("every second GET cancelled", &[call(), cancel(), call(), Head, Data(12)]),
            (
                "streams left behind their first message",
                &[call(), message(), Head, Data(12), window(), ping(), cancel()],
            ),
            (
                "a priority and a change of it for each GET",
                &[call(), Heard(Kind::Priority, 5), Heard(Kind::PriorityUpdate, 9), Head, Data(1)],
            ),
            ("windows of 256 bytes", &[Cut(256), window(), window()]),
            ("windows of 1 KiB given back by halves", &[Cut(512), window(), window(), Cut(512), window(), window()]),
            ("an upload in small pieces", &[message(), message(), ping()]),
            (
                "headers of 64 KiB",
                &[
                    call(),
                    Heard(Kind::Continuation, 16_384),
                    Heard(Kind::Continuation, 16_384),
                    Heard(Kind::Continuation, 900),
                    Head,
                    Data(1),
                ],
            ),
        ];
        for (what, round) in rows {
            assert_eq!(spent_after(1_000_000, round), None, "{what}");
        }
    }

    #[test]
    fn unproductive_frames_exhaust_the_budget() {
        let rows: &[(&str, &[Step], u32)] = &[
            ("PING", &[ping()], 10_000),
            ("windows of a byte", &[window(), Cut(1)], 10_080),
            ("windows of a byte, on the connection too", &[window(), window(), Cut(1)], 5_020),
            ("windows of 100 bytes, on the connection too", &[window(), window(), Cut(100)], 8_210),
            ("calls that end at once", &[call(), cancel()], 10_000),
            ("five frames for an answer", &[Data(1), ping(), ping(), ping(), window(), window()], 5_020),
            ("short CONTINUATION", &[Heard(Kind::Continuation, 100)], 10_000),
        ];
        for (what, round, most) in rows {
            let rounds = spent_after(1_000_000, round);
            assert!(rounds.is_some_and(|rounds| rounds <= *most), "{what}: {rounds:?}");
        }
    }

    #[test]
    fn credit_comes_back() {
        let now = Instant::now();
        let mut budget = Budget::new(200, now);
        (0..300).for_each(|_| budget.weigh(Kind::Ping, 8));
        assert!(budget.is_spent(now + Duration::from_millis(999)));
        assert!(!budget.is_spent(now + PERIOD));
    }

    #[test]
    fn no_limit() {
        let now = Instant::now();
        let mut budget = Budget::new(0, now);
        (0..100_000).for_each(|_| budget.weigh(Kind::Ping, 8));
        assert!(!budget.is_spent(now));
    }
}
