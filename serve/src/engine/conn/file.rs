//! Files that a connection sends from the system's cache.

use std::io;
use std::task::{Context, Poll};

use server_runtime::end_turn;

use super::Conn;
use crate::engine::app::App;
use crate::engine::sending_file::Piece;
use crate::engine::state::{State, Step};
use crate::engine::watch::Phase;
use crate::engine::worker::Scratch;
use crate::tuning::FILE_PIECE;

impl<A: App> Conn<A> {
    /// Sends the next piece of a file, once its head is sent.
    pub(super) fn send_file(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<Step> {
        if self.output.len() > 0 {
            return Ok(if scratch.out.is_empty() { Step::Wait } else { Step::Flush });
        }
        let State::SendingFile(sending, close) = &mut self.state else { return Ok(Step::Again) };
        if !scratch.out.is_empty() {
            let Poll::Ready(count) = self.stream.poll_write_head(cx, &scratch.out)? else { return Ok(Step::Flush) };
            self.worker.stats().sent.add(count as u64);
            self.sent += count as u64;
            scratch.out.drain(..count);
            if !scratch.out.is_empty() {
                return Ok(Step::Flush);
            }
        }
        let is_turn = match sending.poll(cx, &mut self.stream) {
            Poll::Ready(Ok(Piece::Sent(count))) => {
                self.worker.stats().sent.add(count as u64);
                self.sent += count as u64;
                count as u64 >= FILE_PIECE
            }
            Poll::Ready(Ok(Piece::Read(bytes))) => {
                self.output.add(bytes, &mut scratch.out);
                false
            }
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending if sending.waits_for_disk() => {
                self.slot.stay(Phase::Busy);
                return self.read_ahead(cx);
            }
            Poll::Pending => {
                self.note_blocked();
                return Ok(Step::Wait);
            }
        };
        if sending.left() == 0 {
            let close = *close;
            self.sent(close, None);
        } else if is_turn {
            end_turn(cx);
            return Ok(Step::Wait);
        }
        Ok(Step::Again)
    }
}
