//! `echonet serve`: emulates objects of any class.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use echonet_lite::class::Class;
use echonet_lite::emulate::{Emulated, Moment};
use echonet_lite::net::{Endpoint, Interface};
use echonet_lite::node::{Config, Identity, Node, Object};
use echonet_lite::wire::Eoj;
use serde_json::json;
use tokio::sync::mpsc;

use crate::commands::{Options, Serve};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::render::{self, Property};
use crate::{data, link, names};

/// Room for what is sent later: some three hundred notifications.
const STORE: usize = 16_384;
/// Writes that may wait to be printed; of a faster writer some are only counted.
const WAITING: usize = 1024;
/// The product code (0x8C) of emulated devices.
const PRODUCT: &[u8] = b"echonet";
/// The highest instance of a class.
const INSTANCES: u8 = 127;

type Emulation = Node<Vec<Emulated>, STORE>;

/// A property that another node wrote.
struct Written {
    class: &'static Class,
    eoj: Eoj,
    epc: u8,
    edt: Vec<u8>,
}

/// Where writes are told to be printed, and how many could not be because too many waited.
#[derive(Clone)]
struct News {
    written: mpsc::Sender<Written>,
    missed: Arc<AtomicU64>,
}

impl News {
    fn tell(&self, written: Written) {
        // Without a task to print it, it is set all the same.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.written.try_send(written) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(crate) async fn run(args: &Serve, options: &Options, out: &Output) -> Result<(), Failure> {
    let maker = names::bytes(&args.maker)?;
    let maker = maker.try_into().map_err(|_| Failure::Input("a maker's code has three bytes: 000077".to_owned()))?;
    let serial = args.serial.unwrap_or_else(|| std::process::id().into());
    let (sender, mut written) = mpsc::channel(WAITING);
    let news = News { written: sender, missed: Arc::default() };
    let mut objects = Vec::new();
    for (class, eoj) in places(&args.objects)? {
        let class = data::variant(class, Some(maker), Some(PRODUCT));
        objects.push(emulate(class, eoj, args.mandatory, (maker, serial), news.clone()));
    }
    let eojs: Vec<_> = objects.iter().map(|object| object.eoj()).collect();
    let mut config = Config::new(Identity::new(maker, serial));
    config.multicast_delay = args.delay;
    let device = Emulation::with_store(config, objects);
    let endpoint = link::builder(options).serve(device).bind().await?;
    tell(&eojs, &endpoint.interfaces(), out)?;

    let mut lines = lines_of_stdin();
    let mut end = std::pin::pin!(link::after(options.timeout));
    loop {
        tokio::select! {
            () = &mut end => return Ok(()),
            Some(Written { class, eoj, epc, edt }) = written.recv() => {
                event("set", eoj, Some(Property::of(Some(class), epc, &edt)), out)?;
                let missed = news.missed.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    out.remark(format_args!("{missed} writes came faster than they could be printed"));
                }
            }
            Some(line) = lines.recv() => match obey(&endpoint, &line, out) {
                Err(Failure::Input(error)) => eprintln!("error: {error}"),
                result => result?,
            },
        }
    }
}

/// The objects that are asked for; those without a number get the next one that is free.
fn places(texts: &[String]) -> Result<Vec<(&'static Class, Eoj)>, Failure> {
    let mut places: Vec<(&'static Class, Eoj)> = Vec::new();
    for text in texts {
        let is_taken = |eoj: Eoj, places: &[(_, Eoj)]| places.iter().any(|(_, other)| *other == eoj);
        let eoj = match names::class(text) {
            Ok(class) => {
                let mut all = (1..=INSTANCES).map(|instance| class.code.instance(instance));
                let free = all.find(|eoj| !is_taken(*eoj, &places));
                free.ok_or_else(|| Failure::Input(format!("more than {INSTANCES} of {class}")))?
            }
            // An object; if it is none either, its error says more of what there is.
            Err(error) if !text.contains(':') && text.trim_start_matches("0x").len() != 6 => return Err(error),
            Err(_) => names::object(text)?,
        };
        let class = names::class(&eoj.class_code().to_string())?;
        if eoj.instance() == 0 || eoj.group() == 0x0E || class.code.to_u16() == 0 {
            return Err(Failure::Input(format!(
                "`{text}` cannot be served: name a device class, and an instance from 1"
            )));
        }
        if is_taken(eoj, &places) {
            return Err(Failure::Input(format!("{} is named twice", render::object(eoj))));
        }
        places.push((class, eoj));
    }
    Ok(places)
}

fn emulate(class: &'static Class, eoj: Eoj, mandatory: bool, (maker, serial): ([u8; 3], u64), news: News) -> Emulated {
    let mut object = Emulated::new(class, eoj.instance(), mandatory, maker, serial);
    object.on_write(move |eoj, epc, edt| news.tell(Written { class, eoj, epc, edt: edt.to_vec() }));
    object
}

fn tell(eojs: &[Eoj], interfaces: &[Interface], out: &Output) -> Result<(), Failure> {
    for &eoj in eojs {
        event("serving", eoj, None, out)?;
    }
    for interface in interfaces {
        out.remark(format_args!("listening on {interface}"));
    }
    Ok(())
}

fn event(what: &str, eoj: Eoj, property: Option<Property<'_>>, out: &Output) -> Result<(), Failure> {
    let moment = Moment::now();
    let json = || {
        let object = render::object_json(eoj);
        let mut value = json!({ "time": moment.to_string(), "event": what, "object": object });
        if let Some(property) = property {
            value["property"] = serde_json::Value::Object(property.json());
        }
        value
    };
    out.result(json, || match property {
        Some(property) => {
            format!("{moment:#} {what} {} {} {}", render::object(eoj), property.name(), property.text())
        }
        None => format!("{what} {}", render::object(eoj)),
    })
}

/// Lines that are typed, from a thread of their own that ends with the program.
fn lines_of_stdin() -> mpsc::Receiver<String> {
    // The thread waits while so many are not yet obeyed.
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Does what a line says: `homeAirConditioner:1 operationStatus=off` changes a value and announces it; without values
/// it shows all there are.
fn obey(endpoint: &Endpoint<Emulation>, line: &str, out: &Output) -> Result<(), Failure> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(());
    }
    let (object, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let eoj = names::object(object)?;
    let unknown = || Failure::Input(format!("{} is not served", render::object(eoj)));
    if text.trim().is_empty() {
        let rows = endpoint.with_node(|node| {
            let object = node.objects().iter().find(|object| object.eoj() == eoj)?;
            let rows = object.values().map(|(epc, edt)| {
                let property = Property::of(Some(object.class()), epc, edt);
                let [epc, name] = property.cells();
                [epc, name, property.text()]
            });
            Some(rows.collect::<Vec<_>>())
        });
        return out.line(table(["EPC", "PROPERTY", "VALUE"], rows.ok_or_else(unknown)?));
    }
    // Values have spaces in them (22 °C), so a line writes one property.
    let class = endpoint.with_node(|node| {
        node.objects().iter().find(|object| object.eoj() == eoj).map(Emulated::class).ok_or_else(unknown)
    })?;
    let (epc, edt) = names::write(Some(class), eoj, text.trim())?;
    let told = endpoint.with_node(|node| {
        let object = node.objects_mut().iter_mut().find(|object| object.eoj() == eoj).ok_or_else(unknown)?;
        if !object.put(epc, &edt) {
            let name = Property::of(Some(class), epc, &[]).name();
            return Err(Failure::Input(format!("{} has no {name}", render::object(eoj))));
        }
        Ok::<_, Failure>(node.notify(eoj, epc))
    })?;
    if let Err(error) = told {
        out.remark(format_args!("not announced: {error}"));
    }
    event("changed", eoj, Some(Property::of(Some(class), epc, &edt)), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_writer_fills_no_memory() {
        let (sender, mut written) = mpsc::channel(WAITING);
        let news = News { written: sender, missed: Arc::default() };
        let class = names::class("generalLighting").ok().unwrap();
        let mut light = emulate(class, class.code.instance(1), false, ([0, 0, 0x77], 1), news.clone());
        let writes = WAITING + 500;
        for _ in 0..writes {
            light.set(0x80, &[0x31]).unwrap();
        }
        let waiting = core::iter::from_fn(|| written.try_recv().ok()).count();
        assert_eq!((waiting, news.missed.load(Ordering::Relaxed)), (WAITING, 500));
    }
}
