use shuttle::thread::{JoinHandle, spawn};

use super::*;
use crate::park::model;

/// Looks of a connection whether it is asked to move.
const LOOKS: usize = 2;

/// A connection that follows whatever it is asked; where it is at last, and how often it moved.
fn connection(mut place: Place) -> JoinHandle<(Place, u64)> {
    spawn(move || {
        let mut moves = 0;
        for _ in 0..LOOKS {
            if let Some(to) = place.is_asked_to(|| 0) {
                place = place.move_to(to);
                moves += 1;
                assert_eq!(place.worker(), to);
            }
        }
        (place, moves)
    })
}

fn order(counters: &Counters, from: usize) {
    counters.order(Order { from, to: 1 - from, share: 1.0 });
}

/// Connections that move are counted throughout, each on the worker where it is. A task that waits for an empty worker wakes.
#[test]
fn connections_are_counted_while_they_move_and_workers_are_drained() {
    model(|| {
        let counters = Arc::new(Counters::new(2, 2, true));
        let places = [(), ()].map(|()| counters.take(0, true).expect("there is room for two"));
        let connections = places.map(connection);
        for from in [0, 1] {
            order(&counters, from);
            assert!(counters.open() >= 2, "who moves is counted throughout");
            assert!(counters.take(0, true).is_none(), "so there is no room for a third");
        }
        let connections = connections.map(|connection| connection.join().unwrap());
        let at = |worker| connections.iter().filter(|(place, _)| place.worker() == worker).count();
        assert_eq!((counters.open(), counters.open_on(0), counters.open_on(1)), (2, at(0), at(1)));
        assert_eq!(counters.moved.load(Relaxed), connections.iter().map(|(_, moves)| moves).sum::<u64>());
        // While some move once more, others end.
        order(&counters, 0);
        let ends = connections.map(|(place, _)| connection(place));
        let ends = ends.map(|end| spawn(move || drop(end.join().unwrap())));
        [0, 1].into_iter().for_each(|worker| shuttle::future::block_on(counters.drained(worker)));
        ends.into_iter().for_each(|end| end.join().unwrap());
        assert_eq!((counters.open(), counters.open_on(0), counters.open_on(1)), (0, 0, 0));
    });
}

/// However many accept at a time, no more are open than may be; connections that settle are dealt out, and leave nothing behind.
#[test]
fn the_limit_holds_and_those_that_settle_are_dealt_out() {
    model(|| {
        let counters = Arc::new(Counters::new(2, 2, true));
        let accepts = [(), (), ()].map(|()| {
            let counters = Arc::clone(&counters);
            spawn(move || {
                let mut place = counters.take(0, true)?;
                assert!(counters.open() >= 1);
                let place = match place.settle() {
                    Some(to) => place.move_to(to),
                    None => place,
                };
                assert!(place.is_settled());
                Some(place)
            })
        });
        let places: Vec<Place> = accepts.into_iter().filter_map(|accepts| accepts.join().unwrap()).collect();
        assert!((1..=2).contains(&places.len()), "{} are open", places.len());
        assert_eq!(counters.open(), places.len());
        let settled = |worker: usize| counters.workers[worker].settled.load(Relaxed);
        let at = |worker| places.iter().filter(|place| place.worker() == worker).count();
        assert_eq!([settled(0), settled(1)], [at(0), at(1)]);
        drop(places);
        assert_eq!((counters.open(), settled(0), settled(1)), (0, 0, 0));
    });
}

/// A worker that is asked shows that it comes to the end of its turns, and is asked again.
#[test]
fn a_worker_answers_each_liveness_probe() {
    model(|| {
        let counters = Arc::new(Counters::new(1, 1, false));
        let worker = Arc::clone(&counters);
        let answers = spawn(move || (0..2).for_each(|_| shuttle::future::block_on(worker.answer(0))));
        for _ in 0..2 {
            assert!(!counters.ask(0), "it owes nothing");
            while counters.workers[0].owes_answer.load(Relaxed) {
                shuttle::thread::yield_now();
            }
        }
        answers.join().unwrap();
    });
}
