//! Clients that are slow to send or to take, or send what nobody reads.

use std::io;
use std::mem;
use std::task::{Context, Poll};

use axum::http::StatusCode;

use super::Conn;
use crate::engine::app::App;
use crate::engine::state::{Call, Close, Served, State, Step};
use crate::engine::upload::BodyError;
use crate::engine::watch::Phase;
use crate::engine::worker::Scratch;

impl<A: App> Conn<A> {
    /// Reads the rest of a body that no handler reads, so that the next request can be found behind it.
    pub(super) fn discard(&mut self, cx: &mut Context<'_>, scratch: &Scratch) -> io::Result<Step> {
        if !scratch.out.is_empty() {
            return Ok(Step::Flush);
        }
        let State::Discarding(mut rest, left) = mem::replace(&mut self.state, State::Waiting) else {
            return Ok(Step::Again);
        };
        rest.discard(&mut self.input);
        if rest.is_done() {
            self.slot.renew(if self.input.is_empty() { Phase::Idle } else { Phase::Head });
            return Ok(Step::Again);
        }
        if self.output.len() == 0 {
            self.slot.stay(Phase::Lingering);
        }
        Ok(match self.read(cx)? {
            Poll::Ready(count) if (1..left).contains(&count) && rest.error().is_none() => {
                self.state = State::Discarding(rest, left - count);
                Step::Again
            }
            Poll::Ready(_) => Step::Ended(Served::Over),
            Poll::Pending => {
                self.state = State::Discarding(rest, left);
                Step::Wait
            }
        })
    }

    /// The socket takes no more for now.
    pub(super) fn note_blocked(&mut self) {
        self.has_waited = true;
        if self.slot.phase() != Phase::Writing {
            self.pace.begin(self.stream.progress(self.sent), self.worker.watch.least(Phase::Writing));
            self.slot.enter(Phase::Writing);
        }
    }

    /// Whether the client has taken enough of the answer since its time to do so began; then the next time begins. A byte now and then is
    /// not enough.
    fn is_taking(&mut self, phase: Phase) -> bool {
        let now = self.stream.progress(self.sent);
        // Bytes on their way outlast the time between requests, and that for the client to close.
        let may_be = match phase {
            Phase::Writing => true,
            Phase::Idle | Phase::Lingering => now.under_way > 0,
            Phase::Head | Phase::Body | Phase::Busy => false,
            // Those of HTTP/2.
            Phase::Free | Phase::Silent | Phase::Asked | Phase::Young | Phase::Old => false,
        };
        may_be && self.pace.has_moved(now.received, self.worker.watch.least(phase))
    }

    /// The client took too long. True if the connection ends without another word.
    pub(super) fn expire(&mut self, scratch: &mut Scratch) -> bool {
        let phase = self.slot.phase();
        if self.is_taking(phase) {
            self.slot.renew(phase);
            return false;
        }
        if phase != Phase::Idle {
            self.worker.stats().timeouts.add(1);
        }
        match (phase, &mut self.state) {
            (Phase::Head, State::Waiting) => {
                self.slot.renew(Phase::Writing);
                self.refuse(StatusCode::REQUEST_TIMEOUT, "the request came too slowly", scratch);
                false
            }
            (Phase::Body, State::Calling(Call { upload, .. }) | State::Sending(_, _, upload)) => {
                if let Some(upload) = upload {
                    upload.fail(BodyError::TooSlow);
                }
                self.slot.renew(Phase::Busy);
                false
            }
            (Phase::Idle, _) => {
                self.slot.renew(Phase::Writing);
                self.close = Close::Yes;
                false
            }
            _ => true,
        }
    }
}
