//! Indexes that come while the thread that fills them is at work.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use super::catch_up;
use crate::config::Config;
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Instance, Worker};
use crate::runtime::embedded::Session;

/// The more scans wait, the longer a thread looks through them. Scans that come meanwhile stay wanted.
const ROUNDS: usize = 20;
const INDEXES: usize = 200;

#[test]
fn each_index_is_filled_while_others_come() {
    let instance = Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE));
    let mut session = Session::new(Rc::new(Worker::new(Arc::clone(&instance))));
    // No thread feeds the indexes but that of the test.
    assert!(instance.search.begin_feeding());
    session.receive(b"HSET d t word\r\nFT.CREATE first SCHEMA t TEXT\r\n");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                instance.search.work(instance.database(0), now_ms());
            }
        });
        let empty = (0..ROUNDS).find_map(|_| {
            (0..INDEXES).for_each(|at| session.receive(format!("FT.CREATE i{at} SCHEMA t TEXT\r\n").as_bytes()));
            catch_up(&instance, now_ms(), &|| false);
            let empty = instance.search.indexes().iter().filter(|index| index.engine().is_empty()).count();
            (0..INDEXES).for_each(|at| session.receive(format!("FT.DROPINDEX i{at}\r\n").as_bytes()));
            (empty > 0).then_some(empty)
        });
        is_over.store(true, Relaxed);
        assert_eq!(empty, None);
    });
}
