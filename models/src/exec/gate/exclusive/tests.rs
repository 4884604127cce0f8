use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst as Seq};
use shuttle::thread;

use super::*;
use crate::exec::core::Instance;
use crate::exec::gate::Marks;
use crate::keyspace::Access;
use crate::park::model;

/// The threads at work, as a witness sees them.
#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    alone: AtomicUsize,
    writes: AtomicUsize,
}

impl Seen {
    fn inside(&self) {
        self.inside.fetch_add(1, Seq);
        assert_eq!(self.alone.load(Seq), 0, "somebody was alone");
        self.inside.fetch_sub(1, Seq);
    }

    fn alone(&self) {
        assert_eq!(self.alone.fetch_add(1, Seq), 0, "somebody else was alone");
        assert_eq!(self.inside.load(Seq) + self.writes.load(Seq), 0, "somebody was at work");
        self.alone.fetch_sub(1, Seq);
    }

    /// A slow call that changes everything.
    fn write(&self) {
        assert_eq!(self.writes.fetch_add(1, Seq), 0, "another slow call had the same marks");
        assert_eq!(self.alone.load(Seq), 0, "somebody was alone");
        self.writes.fetch_sub(1, Seq);
    }
}

type Scene = (Arc<Instance>, Arc<Seen>);

fn scene() -> Scene {
    (Arc::default(), Arc::default())
}

fn spawn((instance, seen): &Scene, act: impl FnOnce(&Arc<Instance>, &Seen) + Send + 'static) -> thread::JoinHandle<()> {
    let (instance, seen) = (Arc::clone(instance), Arc::clone(seen));
    thread::spawn(move || act(&instance, &seen))
}

fn everything() -> Marks {
    Marks::Whole { db: None, access: Access::Write }
}

/// A window of a worker: it does not touch what is marked.
fn window(instance: &Arc<Instance>, seen: &Seen) {
    let activity = instance.exclusive.activity();
    for _ in 0..2 {
        let inside = instance.exclusive.enter(&activity).expect("nobody is busy");
        if !inside.marked {
            assert_eq!(seen.writes.load(Seq), 0, "a slow call was at work with all of it");
        }
        seen.inside();
        drop(inside);
    }
}

/// A slow call that writes everything.
fn slow(instance: &Arc<Instance>, seen: &Seen) {
    let slow = instance.exclusive.enter_slow(everything(), true).expect("it is patient");
    seen.write();
    drop(slow);
}

#[test]
fn stop_is_exclusive_and_all_threads_finish() {
    model(|| {
        let scene = scene();
        let stop = |instance: &Arc<Instance>, seen: &Seen| {
            let alone = instance.exclusive.stop().expect("there are no slow calls");
            seen.alone();
            drop(alone);
        };
        let threads = [spawn(&scene, window), spawn(&scene, window), spawn(&scene, stop), spawn(&scene, stop)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(!scene.0.exclusive.is_stopped());
    });
}

#[test]
fn slow_calls_with_the_same_marks_come_one_after_the_other_and_windows_see_them() {
    model(|| {
        let scene = scene();
        let threads = [spawn(&scene, slow), spawn(&scene, window), spawn(&scene, slow)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(!scene.0.exclusive.is_marked());
    });
}

#[test]
fn a_stop_waiting_for_slow_calls_is_woken() {
    model(|| {
        let scene = scene();
        let stop = |instance: &Arc<Instance>, seen: &Seen| {
            let alone = instance.exclusive.stop_after_slow_calls().expect("nobody is busy");
            seen.alone();
            drop(alone);
        };
        let threads = [spawn(&scene, slow), spawn(&scene, stop), spawn(&scene, slow)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A connection that is held has a reason to try again, or is woken.
#[test]
fn no_connection_is_held_for_ever() {
    model(|| {
        let scene = scene();
        let script = |instance: &Arc<Instance>, seen: &Seen| {
            let client = Arc::new(ClientShared::default());
            let (park, waker) = crate::park::Park::new();
            client.wake_by(&waker);
            let mut held = None;
            loop {
                let before = instance.exclusive.ended();
                match instance.exclusive.stop() {
                    Ok(alone) => {
                        seen.alone();
                        drop(alone);
                        break;
                    }
                    Err(hindered) => assert_eq!(hindered, Hindered::Slow),
                }
                // The place in front of further slow calls is kept until the next one is had.
                held = match instance.exclusive.hold(&client, before, true) {
                    Some(next) => Some(next),
                    None => continue,
                };
                while held.as_ref().is_some_and(|held| !held.is_over()) {
                    client.wake_by(&waker);
                    if held.as_ref().is_some_and(|held| !held.is_over()) {
                        park.sleep();
                    }
                }
            }
            drop(held);
        };
        let threads = [spawn(&scene, slow), spawn(&scene, script), spawn(&scene, slow)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
