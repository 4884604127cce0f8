//! The pace at which a client takes what it is sent.

/// A client's progress within a time-out: the bytes that it had [received](crate::Stream::received) when its time began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace(u64);

impl Pace {
    /// The time of a client begins that has received so many bytes.
    pub fn new(received: u64) -> Self {
        Self(received)
    }

    /// Whether the client has received at least so many bytes since its time began. If so, it begins anew.
    pub fn has_moved(&mut self, received: u64, least: u64) -> bool {
        let has_moved = received.saturating_sub(self.0) >= least;
        if has_moved {
            self.0 = received;
        }
        has_moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once() {
        let mut pace = Pace::new(1000);
        let moves = [1400, 1500, 1900, 2100].map(|received| pace.has_moved(received, 500));
        assert_eq!(moves, [false, true, false, true]);
    }
}
