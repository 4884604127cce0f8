//! The driver alone, in virtual time: every step, and the faults that it can meet.

use std::time::Duration;

use echonet_lite::node::Instant;
use echonet_lite::serial::{
    COMMAND_MAX, Cause, Config, Credentials, Event, Module, Pan, PayloadMode, SendError, Skstack, Step,
};

use crate::module::{Fault, ID, METER, PASSWORD, Simulator};

const GET_POWER: &[u8] = b"\x10\x81\x12\x34\x05\xFF\x01\x02\x88\x01\x62\x01\xE7\x00";
const POWER: &[u8] = b"\x10\x81\x12\x34\x02\x88\x01\x05\xFF\x01\x72\x01\xE7\x04\0\0\r\n";

fn credentials() -> Credentials {
    Credentials::new(ID, PASSWORD).unwrap()
}

/// A driver, its module, and a clock that moves only when nothing else does.
struct Bench {
    driver: Skstack,
    module: Simulator,
    now: Instant,
    /// The size of the pieces in which the module's bytes arrive.
    piece: usize,
    log: Vec<String>,
    received: Vec<Vec<u8>>,
}

impl Bench {
    fn new(config: Config, module: Simulator, piece: usize) -> Self {
        let mut driver = Skstack::new(config);
        let now = Instant(1);
        driver.start(now);
        Self { driver, module, now, piece, log: Vec::new(), received: Vec::new() }
    }

    /// Lets everything happen that happens without waiting.
    fn settle(&mut self) {
        let mut command = [0; COMMAND_MAX];
        loop {
            self.take_events();
            let Some(length) = self.driver.poll_transmit(&mut command) else {
                return;
            };
            let answer = self.module.feed(&command[..length]);
            for mut bytes in answer.chunks(self.piece) {
                while !bytes.is_empty() {
                    bytes = &bytes[self.driver.receive(self.now, bytes)..];
                    self.take_events();
                }
            }
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.driver.poll_event() {
            self.log.push(match event {
                Event::Version(version) => format!("version {version}"),
                Event::Scanning(duration) => format!("scan {duration}"),
                Event::Found(pan) => format!("found {:04X}", pan.id),
                Event::Joining(_) => "join".into(),
                Event::Joined(meter) => format!("joined {}", meter.port()),
                Event::Received(datagram) => {
                    self.received.push(datagram.payload.to_vec());
                    "received".into()
                }
                Event::Sent => "sent".into(),
                Event::NotSent(cause) => format!("not sent: {cause:?}"),
                Event::Limited => "limited".into(),
                Event::Unlimited => "unlimited".into(),
                Event::Lost(loss) => format!("lost: {loss:?}"),
                Event::Failed(failure) => {
                    format!(
                        "failed: {:?} {:?} {:?}",
                        failure.step,
                        failure.cause,
                        failure.retry_in.map(|pause| pause.as_secs())
                    )
                }
            });
        }
    }

    /// Moves the clock to the next deadline; `false` if there is none.
    fn wait(&mut self) -> bool {
        let Some(due) = self.driver.poll_timeout() else {
            return false;
        };
        self.now = self.now.max(due);
        self.driver.handle_timeout(self.now);
        self.settle();
        true
    }

    /// Runs until the driver is in this step.
    fn reach(&mut self, step: Step) {
        self.settle();
        for _ in 0..1000 {
            if self.driver.step() == step || !self.wait() {
                break;
            }
        }
        assert_eq!(self.driver.step(), step, "{:?}", self.log);
    }
}

const JOINED: &str = "version 1.2.10, scan 4, scan 5, found 8888, join, joined 3610, received";

/// From reset to one answer of the meter, for every module, payload form, and size of pieces.
#[track_caller]
fn check(name: &str, faults: &[Fault], expected: &str) {
    for kind in Module::ALL {
        for text in [true, false] {
            for piece in [1, 7, usize::MAX] {
                let mut module = Simulator::new(kind, faults);
                module.text = text;
                let mut bench = Bench::new(Config::new(kind, credentials()), module, piece);
                bench.reach(Step::Session);
                let what = format!("{name}: {kind:?}, text {text}, pieces of {piece}, {:?}", bench.log);
                bench.received.clear();
                while bench.received.is_empty() {
                    bench.reach(Step::Session);
                    bench.driver.send(bench.now, GET_POWER).unwrap();
                    bench.settle();
                    while bench.driver.can_send() == Err(SendError::Busy) {
                        bench.wait();
                    }
                    assert!(bench.log.len() < 100, "{what}");
                    // The announcement after a rejoin is no answer.
                    bench.received.retain(|payload| payload[10] != 0x73);
                }
                assert_eq!(bench.received, [POWER], "{what}");
                assert_eq!(bench.log.join(", "), expected, "{what}");
                assert!(bench.module.is_fault_free(), "{what}");
                assert_eq!(bench.driver.meter().map(|meter| *meter.ip()), METER.parse().ok());
            }
        }
    }
}

#[test]
fn goes_well() {
    check("nothing wrong", &[], &format!("{JOINED}, sent, received"));
}

#[test]
fn commands_are_repeated() {
    for command in ["SKRESET", "SKVER", "SKSETPWD", "SKSETRBID", "SKLL64", "SKSREG", "ROPT"] {
        let usual = format!("{JOINED}, sent, received");
        check(command, &[Fault::Silent(command)], &usual);
        check(command, &[Fault::Silent(command), Fault::Silent(command)], &usual);
        check(command, &[Fault::Refuse(command, "ER10")], &usual);
        check(command, &[Fault::Refuse(command, "ER09"), Fault::Silent(command)], &usual);
    }
    check("firmware without ROPT", &[Fault::Refuse("ROPT", "ER04")], &format!("{JOINED}, sent, received"));
    check("firmware that is silent at ROPT", &vec![Fault::Silent("ROPT"); 3], &format!("{JOINED}, sent, received"));
    check(
        "the first scan is lost",
        &[Fault::Silent("SKSCAN")],
        "version 1.2.10, scan 4, scan 5, found 8888, join, joined 3610, received, sent, received",
    );
}

#[test]
fn steps_fail_and_begin_again() {
    let silent = |name| vec![Fault::Silent(name); 3];
    check("silent module", &silent("SKRESET"), &format!("failed: Reset Silent Some(5), {JOINED}, sent, received"));
    check(
        "silent in the middle",
        &[silent("SKSETPWD"), silent("SKSETRBID")].concat(),
        &format!(
            "version 1.2.10, failed: Password Silent Some(5), version 1.2.10, failed: Id Silent Some(10), {JOINED}, sent, received"
        ),
    );
    check("denied twice", &[Fault::Deny, Fault::Deny], &format!("{JOINED}, sent, received"));
}

#[test]
fn hopeless_steps_end() {
    let refusals = |name, code| vec![Fault::Refuse(name, code); 3];
    for (command, step) in [("SKSETPWD", "Password"), ("SKSETRBID", "Id"), ("SKSCAN", "Scan")] {
        let module = Simulator::new(Module::Bp35a1, &refusals(command, "ER06"));
        let mut bench = Bench::new(Config::new(Module::Bp35a1, credentials()), module, 5);
        bench.reach(Step::Idle);
        assert!(!bench.wait(), "{step}: there is nothing to wait for");
        let last = bench.log.last().unwrap();
        assert_eq!(*last, format!("failed: {step} Refused(ER06) None"));
    }
    // The wrong type of module is told from the count of arguments.
    let mut bench =
        Bench::new(Config::new(Module::Bp35c0, credentials()), Simulator::new(Module::Bp35a1, &[]), usize::MAX);
    bench.reach(Step::Idle);
    assert_eq!(bench.log.last().unwrap(), "failed: Scan Refused(ER05) None");
}

#[test]
fn no_meter() {
    let mut module = Simulator::new(Module::Bp35c0, &[]);
    module.audible_from = None;
    let config = Config::new(Module::Bp35c0, credentials()).scan_durations(3..=6);
    let mut bench = Bench::new(config, module, 100);
    bench.reach(Step::Idle);
    assert_eq!(bench.log.join(", "), "version 1.2.10, scan 3, scan 4, scan 5, scan 6, failed: Scan NoMeter Some(5)");
    // It comes back.
    bench.module.audible_from = Some(3);
    bench.reach(Step::Session);
}

#[test]
fn never_admitted() {
    let faults = [Fault::Deny, Fault::Deny, Fault::Deny];
    let mut bench = Bench::new(Config::new(Module::Bp35a1, credentials()), Simulator::new(Module::Bp35a1, &faults), 3);
    bench.settle();
    while bench.driver.step() != Step::Idle {
        assert!(bench.wait());
    }
    // Both networks that the scan found were tried; the weaker one has another address.
    assert_eq!(
        bench.log.join(", "),
        "version 1.2.10, scan 4, scan 5, found 8888, join, join, failed: Join NotAdmitted Some(5)"
    );
    bench.module = Simulator::new(Module::Bp35a1, &[]);
    bench.reach(Step::Session);
}

#[test]
fn sending_fails() {
    check("not transmitted", &[Fault::NoTransmit], &format!("{JOINED}, not sent: NotTransmitted, sent, received"));
    check("no answer", &[Fault::NoAnswer], &format!("{JOINED}, sent, sent, received"));
    check("neighbour", &[Fault::FindNeighbour], &format!("{JOINED}, sent, received"));
    check("forged", &[Fault::Forge], &format!("{JOINED}, sent, received"));
    check("noise", &[Fault::Noise], &format!("{JOINED}, sent, received"));
    check("limited", &[Fault::Limit], &format!("{JOINED}, sent, limited, unlimited, received"));
    check(
        "refused",
        &[Fault::Refuse("SKSENDTO", "ER09")],
        &format!("{JOINED}, not sent: Refused(ER09), sent, received"),
    );
    check("silent", &[Fault::Silent("SKSENDTO")], &format!("{JOINED}, not sent: Silent, sent, received"));
    check(
        "unreachable",
        &vec![Fault::NoTransmit; 3],
        &format!(
            "{JOINED}, not sent: NotTransmitted, not sent: NotTransmitted, not sent: NotTransmitted, lost: Unreachable, \
             version 1.2.10, join, joined 3610, received, sent, received"
        ),
    );
}

#[test]
fn sessions_end() {
    let again = "join, joined 3610, received, sent, received";
    check("expired", &[Fault::Expire], &format!("{JOINED}, sent, lost: Expired, {again}"));
    check("closed", &[Fault::Close], &format!("{JOINED}, sent, lost: Closed, {again}"));
    check("expired, then denied", &[Fault::Expire, Fault::Deny], &format!("{JOINED}, sent, lost: Expired, {again}"));
}

#[test]
fn known_network() {
    let pan = Pan { channel: 0x21, id: 0x8888, address: 0x001D_1290_1234_5678, quality: 0 };
    let config = Config::new(Module::Rl7023, credentials()).pan(pan);
    let mut bench = Bench::new(config, Simulator::new(Module::Rl7023, &[]), 1);
    bench.reach(Step::Session);
    assert_eq!(bench.log.join(", "), "version 1.2.10, join, joined 3610, received");

    // It moved to another channel: found by a scan after all.
    let config = Config::new(Module::Rl7023, credentials()).pan(Pan { id: 0x8889, ..pan });
    let mut bench = Bench::new(config, Simulator::new(Module::Rl7023, &[]), 1);
    bench.reach(Step::Idle);
    bench.reach(Step::Session);
    assert!(bench.log.contains(&"found 8888".to_owned()), "{:?}", bench.log);
}

#[test]
fn payload_forms() {
    for (text, wanted, written) in [
        (true, PayloadMode::Keep, None),
        (true, PayloadMode::Text, None),
        (true, PayloadMode::Binary, Some("WOPT 00")),
        (false, PayloadMode::Text, Some("WOPT 01")),
        (false, PayloadMode::Binary, None),
    ] {
        let mut module = Simulator::new(Module::Bp35a1, &[]);
        module.text = text;
        let mut bench = Bench::new(Config::new(Module::Bp35a1, credentials()).payload(wanted), module, 4);
        bench.reach(Step::Session);
        let found = bench.module.commands.iter().find(|command| command.starts_with("WOPT"));
        assert_eq!(found.map(String::as_str), written, "{text} {wanted:?}");
    }
}

#[test]
fn sending_has_its_rules() {
    let mut bench = Bench::new(Config::new(Module::Bp35a1, credentials()), Simulator::new(Module::Bp35a1, &[]), 9);
    assert_eq!(bench.driver.send(bench.now, GET_POWER), Err(SendError::NotJoined));
    bench.reach(Step::Session);
    assert_eq!(bench.driver.send(bench.now, &[]), Err(SendError::Length));
    assert_eq!(bench.driver.send(bench.now, &[0; 1233]), Err(SendError::Length));
    assert_eq!(bench.driver.send(bench.now, GET_POWER), Ok(()));
    assert_eq!(bench.driver.send(bench.now, GET_POWER), Err(SendError::Busy));
    bench.settle();
    let limit = b"EVENT 32 FE80:0000:0000:0000:021D:1290:0003:C890\r\n";
    bench.driver.receive(bench.now, limit);
    bench.settle();
    assert_eq!(bench.driver.send(bench.now, GET_POWER), Err(SendError::Limited));
    // The end of the limit is never told: it ends with the hour that the law counts in.
    let before = bench.now;
    assert!(bench.wait());
    assert_eq!(bench.now.since(before), Duration::from_secs(3600));
    assert_eq!(bench.driver.send(bench.now, GET_POWER), Ok(()));
}

#[test]
fn strangers_are_ignored() {
    let mut bench = Bench::new(Config::new(Module::Bp35a1, credentials()), Simulator::new(Module::Bp35a1, &[]), 9);
    bench.reach(Step::Session);
    bench.received.clear();
    let tail = "FE80::1 0E1A 0E1A 001D129012345678";
    for line in [
        // Not encrypted; another sender; a port that is the module's business; nonsense.
        format!("ERXUDP {METER} {tail} 0 0001 10\r\n"),
        format!("ERXUDP FE80::BAD {tail} 1 0001 10\r\n"),
        format!("ERXUDP {METER} FE80::1 02CC 02CC 001D129012345678 1 0001 10\r\n"),
        format!("ERXUDP {METER} {tail} 1 0002 10\r\n"),
    ] {
        bench.driver.receive(bench.now, line.as_bytes());
    }
    bench.settle();
    assert_eq!((bench.received.len(), bench.driver.ignored()), (0, 2));
}

#[test]
fn secrets_stay_secret() {
    let mut bench = Bench::new(Config::new(Module::Bp35a1, credentials()), Simulator::new(Module::Bp35a1, &[]), 9);
    bench.reach(Step::Session);
    let shown = format!("{:?} {:?}", bench.driver, Cause::Silent);
    assert!(!shown.contains(PASSWORD) && !shown.contains(ID), "{shown}");
}
