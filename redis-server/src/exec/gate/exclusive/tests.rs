use super::*;
use crate::config::Config;
use crate::exec::core::Instance;
use crate::keyspace::Access;

fn instance() -> Arc<Instance> {
    Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE))
}

fn client(instance: &Instance) -> Arc<ClientShared> {
    Arc::new(ClientShared::new(instance.next_client_id(), String::new(), String::new(), -1, 0))
}

#[test]
fn an_exclusive_thread_excludes_all_others() {
    let instance = instance();
    let (turns, shared) = (2000u64, AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (instance, shared) = (&instance, &shared);
            scope.spawn(move || {
                let activity = instance.exclusive.activity();
                for turn in 0..turns {
                    if (turn + worker) % 8 == 0 {
                        let _alone = instance.exclusive.stop().expect("nobody makes it busy");
                        let before = shared.load(Relaxed);
                        std::thread::yield_now();
                        shared.store(before + 1, Relaxed);
                    } else if (turn + worker) % 8 == 1 {
                        let exclusive = &instance.exclusive;
                        while exclusive.try_enter(&activity).map(|_inside| shared.fetch_add(1, Relaxed)).is_none() {
                            std::thread::yield_now();
                        }
                    } else {
                        let _inside = instance.exclusive.enter(&activity).expect("nobody makes it busy");
                        shared.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(shared.into_inner(), 4 * turns, "no addition was lost to somebody who was not alone");
    assert!(!instance.exclusive.is_stopped());
}

#[test]
fn the_gate_refuses_all_entry_while_busy() {
    let instance = instance();
    let activity = instance.exclusive.activity();
    let alone = instance.exclusive.stop().expect("nobody is alone yet");
    instance.exclusive.make_busy();
    assert_eq!(instance.exclusive.enter(&activity).err(), Some(Busy));
    assert!(instance.exclusive.try_enter(&activity).is_none());
    assert_eq!(instance.exclusive.stop().err(), Some(Hindered::Busy));
    assert!(instance.exclusive.enter_slow(Marks::None, false).is_err());
    drop(alone);
    assert!(instance.exclusive.enter(&activity).is_ok());
}

#[test]
fn exclusive_calls_run_between_consecutive_slow_calls() {
    let instance = instance();
    let exclusive = &instance.exclusive;
    let everything = || Marks::Whole { db: None, access: Access::Write };
    let slow = instance.exclusive.enter_slow(everything(), false).expect("nobody is alone");
    assert_eq!(instance.exclusive.stop().err(), Some(Hindered::Slow));
    assert!(exclusive.forbids(&Marks::Whole { db: Some(3), access: Access::Read }));
    let held = instance.exclusive.hold(&client(&instance), exclusive.ended(), true).expect("the slow call is at work");
    assert!(!held.is_over());
    std::thread::scope(|scope| {
        let next = scope.spawn(|| instance.exclusive.enter_slow(Marks::None, false).map(drop));
        drop(slow);
        assert!(held.is_over());
        assert!(!exclusive.is_marked());
        let alone = instance.exclusive.stop().expect("the next slow call waits");
        assert!(!next.is_finished());
        drop(alone);
        assert!(!next.is_finished(), "the script has its place until it is done");
        drop(held);
        next.join().expect("it does not panic").expect("nobody is alone");
    });
    assert!(instance.exclusive.hold(&client(&instance), exclusive.ended(), false).is_none(), "no slow call is at work");
}

#[test]
fn slow_calls_wait_for_windows_that_have_not_seen_their_marks() {
    let instance = instance();
    let exclusive = &instance.exclusive;
    let activity = exclusive.activity();
    let inside = exclusive.enter(&activity).expect("nobody is alone");
    assert!(!inside.marked);
    std::thread::scope(|scope| {
        let marks = Marks::Whole { db: Some(0), access: Access::Write };
        let slow = scope.spawn(|| instance.exclusive.enter_slow(marks, false));
        while !exclusive.is_marked() {
            std::thread::yield_now();
        }
        assert!(!slow.is_finished(), "the window has begun before the marks were there");
        drop(inside);
        let slow = slow.join().expect("it does not panic");
        assert!(exclusive.enter(&activity).is_ok_and(|inside| inside.marked));
        drop(slow);
    });
}

/// The end of a slow call wakes the threads that sleep until then, with no other thread there to do it.
#[test]
fn a_finished_slow_call_wakes_waiting_threads() {
    let everything = || Marks::Whole { db: None, access: Access::Write };
    type Wait = fn(&Arc<Instance>);
    let same_marks: Wait =
        |instance| drop(instance.exclusive.enter_slow(Marks::Whole { db: None, access: Access::Read }, true));
    let alone: Wait = |instance| drop(instance.exclusive.stop_after_slow_calls());
    for wait in [same_marks, alone] {
        let instance = instance();
        let slow = instance.exclusive.enter_slow(everything(), false).expect("nobody is alone");
        let (done, is_done) = std::sync::mpsc::channel();
        let waiting = Arc::clone(&instance);
        std::thread::spawn(move || {
            wait(&waiting);
            done.send(()).expect("the test waits");
        });
        while lock(&instance.exclusive.line).sleepers == 0 {
            std::thread::yield_now();
        }
        assert!(is_done.try_recv().is_err(), "the slow call is at work");
        drop(slow);
        is_done.recv_timeout(Duration::from_secs(10)).expect("it is woken");
    }
}

#[test]
fn neither_windows_nor_scripts_nor_slow_calls_starve() {
    let instance = instance();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let instance = &instance;
            scope.spawn(move || {
                let activity = instance.exclusive.activity();
                for turn in 0..500 {
                    match (turn + worker) % 4 {
                        0 => {
                            while let Err(Hindered::Slow) = instance.exclusive.stop().map(drop) {
                                let seen = instance.exclusive.ended();
                                let Some(held) = instance.exclusive.hold(&client(instance), seen, true) else {
                                    continue;
                                };
                                while !held.is_over() {
                                    std::thread::yield_now();
                                }
                                if instance.exclusive.stop().map(drop).is_ok() {
                                    break;
                                }
                            }
                        }
                        1 => drop(instance.exclusive.enter_slow(Marks::None, true)),
                        _ => drop(instance.exclusive.enter(&activity)),
                    }
                }
            });
        }
    });
}
