//! The controller on top of the driver, in virtual time: requests while the session does not stand.

use echonet_lite::controller::Request;
use echonet_lite::meter::{METER, epc, power};
use echonet_lite::node::Instant;
use echonet_lite::serial::{COMMAND_MAX, Config, Credentials, Error, Link, Module, PAYLOAD_MAX};

use crate::module::{Fault, ID, PASSWORD, Simulator};

const HOUR: Instant = Instant(3_600_000_000);

struct Bench {
    link: Link,
    module: Simulator,
    now: Instant,
}

impl Bench {
    fn new(kind: Module, faults: &[Fault]) -> Self {
        let config = Config::new(kind, Credentials::new(ID, PASSWORD).unwrap());
        let mut bench = Self { link: Link::new(config, 7), module: Simulator::new(kind, faults), now: Instant(1) };
        bench.link.start(bench.now);
        bench.until(HOUR, |bench| bench.link.joined().map(Result::unwrap));
        bench
    }

    /// Runs until there is a result, moving the clock where nothing else happens.
    fn until<R>(&mut self, deadline: Instant, mut result: impl FnMut(&mut Self) -> Option<R>) -> R {
        let mut command = [0; COMMAND_MAX];
        loop {
            if let Some(result) = result(self) {
                return result;
            }
            if let Some(length) = self.link.poll_transmit(self.now, &mut command) {
                let answer = self.module.feed(&command[..length]);
                self.link.receive(self.now, &answer);
                continue;
            }
            let due = self.link.poll_timeout().map_or(deadline, |due| due.min(deadline));
            assert!(self.now < HOUR, "{:?}", self.link);
            self.now = self.now.max(due);
            self.link.handle_timeout(self.now);
        }
    }

    fn power(&mut self) -> Result<i32, Error> {
        let pending = self.link.request(self.now, &Request::get(METER, &[epc::POWER]))?;
        let answer = self.until(pending.deadline(), |bench| bench.link.answer(bench.now, &pending))?;
        Ok(power(answer.get(epc::POWER).unwrap()).unwrap().unwrap())
    }
}

#[test]
fn requests_survive() {
    let rows: &[(&str, &[Fault])] = &[
        ("nothing wrong", &[]),
        ("no answer", &[Fault::NoAnswer, Fault::NoAnswer]),
        ("not transmitted", &[Fault::NoTransmit]),
        ("expired", &[Fault::Expire]),
        ("closed", &[Fault::Close, Fault::Deny]),
        ("forged", &[Fault::Forge]),
        ("limited", &[Fault::Limit]),
        ("silent", &[Fault::Silent("SKSENDTO")]),
    ];
    for (name, faults) in rows {
        for kind in Module::ALL {
            let mut bench = Bench::new(kind, &[]);
            bench.module = bench.module.with_faults(faults);
            for _ in 0..2 {
                assert_eq!(bench.power().unwrap(), 0x0D0A, "{name} {kind:?}");
            }
            assert!(bench.module.is_fault_free(), "{name}");
        }
    }
}

#[test]
fn requests_end_without_a_session() {
    let mut bench = Bench::new(Module::Bp35a1, &[]);
    bench.module = bench.module.with_faults(&[Fault::Expire]);
    bench.module.audible_from = None;
    bench.module.deaf = true;
    let before = bench.now;
    let error = bench.power().unwrap_err();
    assert!(matches!(error, Error::Failed(_)), "{error}");
    assert!(bench.now.since(before).as_secs() <= 300, "{:?}", bench.now);
}

#[test]
fn long_requests_are_refused() {
    let mut bench = Bench::new(Module::Bp35a1, &[]);
    let value = [0; 255];
    let writes: Vec<_> = (0xF0..0xF6).map(|epc| (epc, &value[..])).collect();
    let result = bench.link.request(bench.now, &Request::set(METER, &writes));
    let text = result.err().unwrap().to_string();
    assert!(text.contains(&PAYLOAD_MAX.to_string()), "{text}");
}
