//! The part of the journal that concerns slots that move.

use std::io;
use std::sync::Arc;

use crate::cluster::{SLOTS, slot_of};
use crate::command::Args;
use crate::exec::core::{Instance, resolve};
use crate::journal::{Piece, Reader};
use crate::protocol::{Parser, RequestLimits, Span};

/// Bytes of the stream that are looked at in one round.
const ROUND: usize = 1024 * 1024;
/// Nothing of a slot is sent yet.
const NOT_YET: u64 = u64::MAX;

/// Reads the journal, and passes by what is of other slots, and what a slot's dump has shown already.
pub(super) struct Changes {
    instance: Arc<Instance>,
    reader: Reader,
    /// From where on in the journal changes of a slot count.
    since: Box<[u64]>,
    pieces: Vec<Piece>,
    spans: Vec<Span>,
}

impl Changes {
    /// Reads what comes from now on.
    pub(super) fn new(instance: &Arc<Instance>) -> Self {
        let reader = instance.journal.reader(|| ());
        let since = vec![NOT_YET; SLOTS].into();
        Self { instance: Arc::clone(instance), reader, since, pieces: Vec::new(), spans: Vec::new() }
    }

    /// A slot's dump is sent; it shows what was changed in front of `offset`.
    pub(super) fn begin(&mut self, slot: u16, offset: u64) {
        self.since[usize::from(slot)] = offset;
    }

    /// Bytes of the stream that are not looked at yet.
    pub(super) fn waiting(&self) -> u64 {
        self.instance.journal.offset().saturating_sub(self.reader.offset())
    }

    /// Whether all is looked at that stands in front of `offset`.
    pub(super) fn has_reached(&self, offset: u64) -> bool {
        self.reader.offset() >= offset
    }

    /// Appends to `commands` what is to be sent of the next part of the stream. Returns how many bytes of that were looked at.
    ///
    /// # Errors
    /// The stream is another one now, as all data is; or is none.
    pub(super) fn take(&mut self, commands: &mut Vec<u8>) -> io::Result<u64> {
        let (before, end) = (self.reader.offset(), self.instance.journal.offset());
        let mut pieces = std::mem::take(&mut self.pieces);
        self.reader.read(ROUND, &mut pieces);
        // A piece for replicas only has no keys.
        for piece in pieces.iter().filter(|piece| !piece.is_apart) {
            self.pick(piece, commands)?;
        }
        pieces.clear();
        self.pieces = pieces;
        let after = self.reader.offset();
        if after == before && end > before {
            return Err(io::Error::other("the stream of changes is another one"));
        }
        Ok(after - before)
    }

    /// Units are appended as wholes, so a piece has whole commands. The commands around them (MULTI, EXEC) have no keys, and
    /// are not needed: no client sees the slots before all of them are there.
    fn pick(&mut self, piece: &Piece, commands: &mut Vec<u8>) -> io::Result<()> {
        let limits = RequestLimits::OF_SERVERS;
        let bytes = &piece.bytes;
        let mut at = 0;
        while at < bytes.len() {
            self.spans.clear();
            let parsed = Parser::default().parse(bytes, at, &mut self.spans, &limits);
            let Ok(Some(end)) = parsed else { return Err(io::Error::other("the journal has what is no command")) };
            let slot = slot_of_call(&self.instance, Args::new(bytes, &self.spans));
            if slot.is_some_and(|slot| piece.begin + at as u64 >= self.since[usize::from(slot)]) {
                commands.extend_from_slice(&bytes[at..end]);
            }
            at = end;
        }
        Ok(())
    }
}

/// The slot of a command's keys, which are all of one.
fn slot_of_call(instance: &Instance, args: Args<'_>) -> Option<u16> {
    let row = resolve::find(instance, args)?;
    let (at, _) = *row.command.key_positions(args).first()?;
    Some(slot_of(args.at(at)))
}
