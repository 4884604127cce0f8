//! The blocking client on a pty whose other end acts a module out.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use echonet_lite::controller;
use echonet_lite::meter::{self, Currents, FixedTime, History, METER, Scale, epc};
use echonet_lite::serial::{Client, Config, Credentials, Error, Event, Module, SerialPort, Step};
use echonet_lite::wire::Eoj;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::module::{Fault, ID, METER as METER_ADDRESS, PASSWORD, Simulator};

/// Long enough for a loaded machine; never waited for unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// Acts the module out at one end of a pty until the other end is closed; gives the port at the other end.
fn plug_in(mut module: Simulator, piece: usize) -> (SerialPort, thread::JoinHandle<Simulator>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let port = SerialPort::open(name.to_str().unwrap()).unwrap();
    let mut line = File::from(master);
    let thread = thread::spawn(move || {
        let mut bytes = [0; 4096];
        // A pty whose other end is closed reads as an error.
        while let Ok(length @ 1..) = line.read(&mut bytes) {
            for piece in module.feed(&bytes[..length]).chunks(piece) {
                line.write_all(piece).unwrap();
            }
        }
        module
    });
    (port, thread)
}

fn config(kind: Module) -> Config {
    Config::new(kind, Credentials::new(ID, PASSWORD).unwrap()).scan_durations(0..=5)
}

#[test]
fn readings_of_every_module() {
    for kind in Module::ALL {
        for (text, echo_payload, piece) in [(true, false, 4096), (false, true, 3)] {
            let mut module = Simulator::new(kind, &[Fault::FindNeighbour, Fault::Noise]);
            (module.text, module.echo_payload, module.audible_from) = (text, echo_payload, Some(0));
            let (port, thread) = plug_in(module, piece);
            let mut client = Client::new(port, config(kind));
            let (tell, told) = mpsc::channel();
            client.observe(move |event| {
                let _ = tell.send(matches!(event, Event::Found(pan) if pan.id == 0x8888));
            });

            let address = client.join(PATIENCE).unwrap();
            assert_eq!((*address.ip(), address.port()), (METER_ADDRESS.parse().unwrap(), 3610));
            assert_eq!(client.pan().unwrap().id, 0x8888);
            assert!(told.try_iter().any(|found| found));
            read_meter(&mut client);
            drop(client);
            assert!(thread.join().unwrap().is_fault_free(), "{kind:?}");
        }
    }
}

fn read_meter(client: &mut Client<SerialPort>) {
    let epcs = [epc::COEFFICIENT, epc::UNIT, epc::CUMULATIVE, epc::POWER, epc::CURRENTS, epc::FIXED_TIME];
    let answer = client.get(METER, &epcs).unwrap();
    let value = |epc| answer.get(epc).unwrap();
    let scale = Scale::decode(answer.get(epc::COEFFICIENT), value(epc::UNIT)).unwrap();
    let count = meter::cumulative(value(epc::CUMULATIVE)).unwrap().unwrap();
    assert_eq!(scale.energy(count).to_string(), "6887.4");
    assert_eq!(meter::power(value(epc::POWER)), Ok(Some(0x0D0A)));
    assert_eq!(Currents::decode(value(epc::CURRENTS)).unwrap().to_string(), "1.5 A");
    let fixed = FixedTime::decode(value(epc::FIXED_TIME)).unwrap();
    assert_eq!(fixed.at.to_string(), "2025-05-17 12:30:00");

    let set = client.set(METER, &[(epc::HISTORY_DAY, &meter::history_day_request(0).unwrap())]).unwrap();
    assert!(set.is_ok());
    let answer = client.get(METER, &[epc::HISTORY]).unwrap();
    let history = History::decode(answer.get(epc::HISTORY).unwrap()).unwrap();
    let slots: Vec<_> = history.slots().collect();
    assert_eq!((slots.len(), slots[39], slots[40]), (48, Some(39), None));

    let notification = client.notification(Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!((notification.eoj, notification.get(0xD5)), (Eoj::new(0x0E, 0xF0, 1), Some(&[1, 2, 0x88, 1][..])));
}

#[test]
fn refusals_reach_the_caller() {
    let mut module = Simulator::new(Module::Bp35c0, &[]);
    module.audible_from = Some(0);
    let (port, _thread) = plug_in(module, 50);
    // Nothing was joined yet.
    let mut client = Client::new(port, config(Module::Bp35c0));
    assert!(matches!(client.get(METER, &[epc::POWER]), Err(Error::TimedOut(Step::Idle))));
    client.join(PATIENCE).unwrap();
    let answer = client.get(METER, &[epc::POWER, epc::SERIAL_NUMBER]).unwrap();
    assert!(!answer.is_ok() && answer.get(epc::POWER).is_some() && answer.get(epc::SERIAL_NUMBER).is_none());
    assert!(matches!(client.get(METER, &[]), Err(Error::Request(controller::RequestError::NoProperties))));
}

#[test]
fn hopeless_and_silent_modules() {
    // Three refusals half a second apart.
    let refused = vec![Fault::Refuse("SKSETPWD", "ER06"); 3];
    let (port, _thread) = plug_in(Simulator::new(Module::Bp35a1, &refused), 50);
    let error = Client::new(port, config(Module::Bp35a1)).join(PATIENCE).unwrap_err();
    let text = "could not set the Route-B password: the module refused: ER06, an argument's form or range is wrong";
    assert_eq!(error.to_string(), text);

    let (port, _thread) = plug_in(Simulator::new(Module::Bp35a1, &vec![Fault::Silent("SKRESET"); 9]), 50);
    let error = Client::new(port, config(Module::Bp35a1)).join(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.to_string(), "time over while trying to reset the module");
}

#[test]
fn port_errors() {
    let error = SerialPort::open("/dev/null").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NOTTY.raw_os_error()));
    assert!(SerialPort::open("/dev/no-such-port").is_err());
    let (port, thread) = plug_in(Simulator::new(Module::Bp35a1, &[]), 50);
    drop(port);
    thread.join().unwrap();
    // The other end goes away.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let port = SerialPort::open(name.to_str().unwrap()).unwrap();
    drop(master);
    let error = Client::new(port, config(Module::Bp35a1)).join(PATIENCE).unwrap_err();
    assert!(matches!(error, Error::Port(_)), "{error}");
}

#[cfg(feature = "net")]
#[test]
fn readings_under_tokio() {
    use echonet_lite::serial::{AsyncClient, AsyncSerialPort};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut module = Simulator::new(Module::Bp35c0, &[Fault::FindNeighbour]);
        (module.text, module.audible_from) = (false, Some(0));
        let (port, thread) = plug_in(module, 17);
        let mut client = AsyncClient::new(AsyncSerialPort::new(port).unwrap(), config(Module::Bp35c0));
        assert_eq!(client.join(PATIENCE).await.unwrap().port(), 3610);
        let answer = client.get(METER, &[epc::POWER]).await.unwrap();
        assert_eq!(meter::power(answer.get(epc::POWER).unwrap()), Ok(Some(0x0D0A)));
        let set = client.set(METER, &[(epc::HISTORY_DAY, &[0])]).await.unwrap();
        assert!(set.is_ok());
        let notification = client.notification(PATIENCE).await.unwrap().unwrap();
        assert_eq!(notification.eoj, Eoj::new(0x0E, 0xF0, 1));
        assert_eq!(client.notification(Duration::ZERO).await.unwrap(), None);
        drop(client);
        assert!(thread.join().unwrap().is_fault_free());
    });
}
