//! Runs the bytes that have been read, window by window; replies leave early where they grow large.

use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;

use bytes::Bytes;

use super::conn::{Conn, Progress, TURN_INPUT};
use crate::clients::client::flag;
use crate::exec::core::Scratch;
use crate::exec::run::outcome::Passed;
use crate::exec::run::pipeline::{Received, Runner, SEND_EARLY, is_turn_over};

/// Arguments that a worker keeps room for between batches.
const SPANS_KEPT: usize = 4 * 1024;

impl Conn {
    /// Parses and runs the complete commands of `input`, or a turn's worth of them. Returns how much of it is done with.
    pub(super) fn process(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
        input: &[u8],
        owner: Option<&Bytes>,
    ) -> (usize, Progress) {
        let received = Received { bytes: input, owner };
        scratch.reply.set_resp3(self.client.resp3);
        let mut used = 0;
        let began = self.worker.ticked();
        self.worker.was_alone.set(false);
        let progress = loop {
            let before = used;
            let runner = Runner { worker: &self.worker, client: &mut self.client, reply: &mut scratch.reply, began };
            let passed = self.pipeline.run(runner, received, &mut scratch.spans, &mut used);
            match passed {
                Ok(Passed::Done) if self.client.close => break Progress::Close,
                // An unfinished command at the end waits for more input.
                Ok(Passed::Done) if used > before && used < input.len() && !self.pipeline.parser.in_command() => {}
                Ok(Passed::Done) => break Progress::Done,
                Ok(Passed::Blocked(waiting)) => {
                    self.wait(waiting);
                    break Progress::Held;
                }
                Ok(Passed::Interrupted(interrupted)) => {
                    self.let_run(interrupted);
                    break Progress::Held;
                }
                Ok(Passed::Lent(pending)) => {
                    self.lend(pending);
                    break Progress::Held;
                }
                Ok(Passed::Held(held)) => {
                    self.hold(held);
                    break Progress::Held;
                }
                Ok(Passed::Paused(until)) => {
                    self.pause(until);
                    break Progress::Held;
                }
                Err(error) => {
                    scratch.reply.error(&format_args!("ERR {error}"));
                    break Progress::Close;
                }
            }
            if let Err(progress) = self.send_early(cx, scratch) {
                break progress;
            }
            if used >= TURN_INPUT || is_turn_over(&self.worker, began) {
                self.stalled = true;
                break Progress::Done;
            }
        };
        self.client.shared.active_at.store(self.worker.now_ms(), Relaxed);
        scratch.spans.clear();
        scratch.spans.shrink_to(SPANS_KEPT);
        (used, progress)
    }

    /// Sends replies before more of them are made, when there are many.
    ///
    /// # Errors
    /// No more commands are to run for now: the client does not read, or is gone.
    #[inline]
    fn send_early(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<(), Progress> {
        if scratch.reply.len() > SEND_EARLY {
            if self.send(cx, scratch).is_err() {
                return Err(Progress::Close);
            }
            // The bytes that wait may exceed maxmemory-clients.
            self.note_buffers();
            if self.client.shared.has_flag(flag::GONE) {
                return Err(Progress::Close);
            }
        }
        if self.must_read_first() {
            self.tell_of_pause();
            self.stalled = true;
            return Err(Progress::Done);
        }
        Ok(())
    }
}
