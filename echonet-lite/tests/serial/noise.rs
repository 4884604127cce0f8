//! Noise on the line: the module's bytes arrive changed, with losses and additions.

use echonet_lite::node::Instant;
use echonet_lite::serial::{COMMAND_MAX, Config, Credentials, Message, Module, Skstack, Step};
use proptest::prelude::*;

use crate::module::{ID, PASSWORD, Simulator};

/// The damage to every so many-th byte.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Change(u8),
    Lose,
    Add(u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![any::<u8>().prop_map(Damage::Change), Just(Damage::Lose), any::<u8>().prop_map(Damage::Add)]
}

/// Runs a driver until it has a session; its module's first bytes are damaged at the given distances.
fn check(kind: Module, text: bool, damages: &[(usize, Damage)]) {
    let mut module = Simulator::new(kind, &[]);
    module.text = text;
    let mut driver = Skstack::new(Config::new(kind, Credentials::new(ID, PASSWORD).unwrap()));
    let (mut now, mut command) = (Instant(1), [0; COMMAND_MAX]);
    let mut damages = damages.iter().copied();
    let mut next = damages.next();
    driver.start(now);
    for _ in 0..10_000 {
        while driver.poll_event().is_some() {}
        if let Some(length) = driver.poll_transmit(&mut command) {
            let mut line = Vec::new();
            for byte in module.feed(&command[..length]) {
                match &mut next {
                    None => line.push(byte),
                    Some((distance @ 1.., _)) => {
                        *distance -= 1;
                        line.push(byte);
                    }
                    Some((0, damage)) => {
                        match *damage {
                            Damage::Change(other) => line.push(other),
                            Damage::Lose => {}
                            Damage::Add(other) => line.extend([other, byte]),
                        }
                        next = damages.next();
                    }
                }
            }
            let mut bytes = &line[..];
            while !bytes.is_empty() {
                bytes = &bytes[driver.receive(now, bytes)..];
                while driver.poll_event().is_some() {}
            }
        } else if driver.step() == Step::Session {
            return;
        } else if let Some(due) = driver.poll_timeout() {
            now = now.max(due);
            driver.handle_timeout(now);
        } else {
            // Given up on what looked like a refusal three times; a user starts again.
            driver.start(now);
        }
    }
    panic!("no session: {driver:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn sessions_come_in_the_end(
        kind in prop::sample::select(&Module::ALL[..]),
        text: bool,
        damages in prop::collection::vec((0..200_usize, damage()), 0..30),
    ) {
        check(kind, text, &damages);
    }

    #[test]
    fn lines_never_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::parse(&line);
    }

    #[test]
    fn likely_lines_never_panic(line in "(ERXUDP|EVENT|FAIL|EVER|  Addr|  Channel:|OK|SKSENDTO)[ :A-F0-9]{0,120}") {
        let _ = Message::parse(line.as_bytes());
    }
}
