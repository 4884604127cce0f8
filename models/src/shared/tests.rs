use shuttle::thread::{JoinHandle, spawn};

use super::*;
use crate::park::{Park, model};

/// Bytes of a piece, too many to stand together with others.
const PIECE: usize = SMALL + 44;

const PIECES: usize = 3;

/// Bytes that the connection is told of.
const DUE: usize = 2 * PIECE;

fn pipe(releases: &Arc<Releases>) -> Arc<Pipe> {
    let pipe = Pipe::new(releases, None);
    (0..PIECES).for_each(|_| pipe.push(vec![0; PIECE].into()));
    pipe
}

/// A handler that takes all that is there, or lets go of it.
fn handler(pipe: &Arc<Pipe>, reads: bool) -> JoinHandle<()> {
    let pipe = Arc::clone(pipe);
    spawn(move || {
        let cx = Context::from_waker(Waker::noop());
        while reads && matches!(pipe.poll_take(&cx), Poll::Ready(Taken::Piece(_))) {}
        pipe.abandon();
    })
}

/// A connection that sleeps until the released bytes are due, and ends when fewer than that are left. Returns the number of bytes that it
/// was told of.
fn listen(park: &Park, releases: &Releases, pipes: &[Arc<Pipe>]) -> usize {
    let mut told = 0;
    while told + DUE <= pipes.len() * PIECES * PIECE {
        park.sleep();
        if releases.are_due() {
            told += pipes.iter().map(|pipe| pipe.take_released()).sum::<usize>();
        }
    }
    told
}

/// The connection wakes for taken pieces, in whatever order handlers take them, and however late the connection checks.
#[test]
fn the_connection_is_told_of_what_is_taken() {
    model(|| {
        let (park, waker) = Park::new();
        let releases = Arc::new(Releases::new(DUE));
        releases.watch(&waker);
        let pipes = [pipe(&releases), pipe(&releases)];
        let handlers = [handler(&pipes[0], true), handler(&pipes[1], false)];
        let told = listen(&park, &releases, &pipes);
        handlers.into_iter().for_each(|handler| handler.join().unwrap());
        let left: usize = pipes.iter().map(|pipe| pipe.take_released()).sum();
        assert_eq!(told + left, 2 * PIECES * PIECE);
        assert_eq!(releases.bytes.load(Relaxed), 0);
    });
}

/// Bytes that are taken of an ended stream's body leave the account, and the next stream still wakes the connection.
#[test]
fn a_stream_that_ends_leaves_nothing_behind() {
    model(|| {
        let (park, waker) = Park::new();
        let releases = Arc::new(Releases::new(DUE));
        releases.watch(&waker);
        let ended = pipe(&releases);
        let first = handler(&ended, true);
        ended.detach();
        let next = [pipe(&releases)];
        let second = handler(&next[0], true);
        let told = listen(&park, &releases, &next);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(told + next[0].take_released(), PIECES * PIECE);
        assert_eq!(releases.bytes.load(Relaxed), 0);
    });
}
