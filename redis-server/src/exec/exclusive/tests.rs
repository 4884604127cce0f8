use super::*;
use crate::config::Config;
use crate::keyspace::Access;

fn instance() -> Arc<Instance> {
    Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE))
}

fn client(instance: &Instance) -> Arc<ClientShared> {
    Arc::new(ClientShared::new(instance.next_client_id(), String::new(), String::new(), -1, 0))
}

#[test]
fn who_is_alone_is_alone() {
    let instance = instance();
    let (turns, shared) = (2000u64, AtomicU64::new(0));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (instance, shared) = (&instance, &shared);
            scope.spawn(move || {
                let gate = instance.scripts.world.gate();
                for turn in 0..turns {
                    if (turn + worker) % 8 == 0 {
                        let _alone = World::stop(instance).expect("nobody makes it busy");
                        let before = shared.load(Relaxed);
                        std::thread::yield_now();
                        shared.store(before + 1, Relaxed);
                    } else if (turn + worker) % 8 == 1 {
                        let world = &instance.scripts.world;
                        while world.try_enter(&gate).map(|_inside| shared.fetch_add(1, Relaxed)).is_none() {
                            std::thread::yield_now();
                        }
                    } else {
                        let _inside = instance.scripts.world.enter(&gate).expect("nobody makes it busy");
                        shared.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(shared.into_inner(), 4 * turns, "no addition was lost to somebody who was not alone");
    assert!(!instance.scripts.world.is_stopped());
}

#[test]
fn nobody_waits_for_who_is_busy() {
    let instance = instance();
    let gate = instance.scripts.world.gate();
    let alone = World::stop(&instance).expect("nobody is alone yet");
    instance.scripts.world.make_busy();
    assert_eq!(instance.scripts.world.enter(&gate).err(), Some(Busy));
    assert!(instance.scripts.world.try_enter(&gate).is_none());
    assert_eq!(World::stop(&instance).err(), Some(Hindered::Busy));
    assert!(World::enter_slow(&instance, Marks::None, false).is_err());
    drop(alone);
    assert!(instance.scripts.world.enter(&gate).is_ok());
}

#[test]
fn who_wants_to_be_alone_is_held_by_slow_calls_and_comes_before_the_next() {
    let instance = instance();
    let world = &instance.scripts.world;
    let everything = || Marks::Whole { db: None, access: Access::Write };
    let slow = World::enter_slow(&instance, everything(), false).expect("nobody is alone");
    assert_eq!(World::stop(&instance).err(), Some(Hindered::Slow));
    assert!(world.forbids(&Marks::Whole { db: Some(3), access: Access::Read }));
    let held = World::hold(&instance, &client(&instance), world.ended(), true).expect("the slow call is at work");
    assert!(!held.is_over());
    std::thread::scope(|scope| {
        let next = scope.spawn(|| World::enter_slow(&instance, Marks::None, false).map(drop));
        drop(slow);
        assert!(held.is_over());
        assert!(!world.is_marked());
        let alone = World::stop(&instance).expect("the next slow call waits");
        assert!(!next.is_finished());
        drop(alone);
        assert!(!next.is_finished(), "the script has its place until it is done");
        drop(held);
        next.join().expect("it does not panic").expect("nobody is alone");
    });
    assert!(World::hold(&instance, &client(&instance), world.ended(), false).is_none(), "no slow call is at work");
}

#[test]
fn slow_calls_wait_for_windows_that_have_not_seen_their_marks() {
    let instance = instance();
    let world = &instance.scripts.world;
    let gate = world.gate();
    let inside = world.enter(&gate).expect("nobody is alone");
    assert!(!inside.marked);
    std::thread::scope(|scope| {
        let marks = Marks::Whole { db: Some(0), access: Access::Write };
        let slow = scope.spawn(|| World::enter_slow(&instance, marks, false));
        while !world.is_marked() {
            std::thread::yield_now();
        }
        assert!(!slow.is_finished(), "the window has begun before the marks were there");
        drop(inside);
        let slow = slow.join().expect("it does not panic");
        assert!(world.enter(&gate).is_ok_and(|inside| inside.marked));
        drop(slow);
    });
}

#[test]
fn neither_windows_nor_scripts_nor_slow_calls_starve() {
    let instance = instance();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let instance = &instance;
            scope.spawn(move || {
                let gate = instance.scripts.world.gate();
                for turn in 0..500 {
                    match (turn + worker) % 4 {
                        0 => {
                            while let Err(Hindered::Slow) = World::stop(instance).map(drop) {
                                let seen = instance.scripts.world.ended();
                                let Some(held) = World::hold(instance, &client(instance), seen, true) else { continue };
                                while !held.is_over() {
                                    std::thread::yield_now();
                                }
                                if World::stop(instance).map(drop).is_ok() {
                                    break;
                                }
                            }
                        }
                        1 => drop(World::enter_slow(instance, Marks::None, true)),
                        _ => drop(instance.scripts.world.enter(&gate)),
                    }
                }
            });
        }
    });
}
