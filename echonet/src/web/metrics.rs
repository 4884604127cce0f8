//! `/metrics`: the state of the home in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use echonet_lite::class::{Data, PropertySpec, Scaled, Unit, Value};

use super::Web;
use super::device::Resource;
use super::home::{Home, Known};
use crate::{circuits, render};

/// The text format of Prometheus.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Properties that would have the names of metrics for whole devices, or for all states.
const TAKEN: [&str; 2] = ["state", "up"];

/// Units whose names have no plural.
const SINGULAR: [Unit; 7] =
    [Unit::Celsius, Unit::Percent, Unit::Ppm, Unit::Lux, Unit::Kilolux, Unit::Millihertz, Unit::Kine];

pub(super) async fn metrics(State(web): State<Web>) -> Response {
    web.home.was_scraped();
    ([(CONTENT_TYPE, FORMAT)], text(&web.home)).into_response()
}

/// The metrics of one name.
struct Family {
    kind: &'static str,
    help: String,
    lines: String,
}

/// All metrics, by name.
#[derive(Default)]
struct Families(BTreeMap<String, Family>);

fn text(home: &Home) -> String {
    let mut families = Families::default();
    for known in home.state().devices() {
        families.device(known);
    }
    let mut text = String::new();
    for (name, Family { kind, help, lines }) in families.0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
    }
    text
}

impl Families {
    fn add(&mut self, name: String, kind: &'static str, help: &str, labels: &str, value: impl std::fmt::Display) {
        let family = self.0.entry(name.clone());
        let family = family.or_insert_with(|| Family { kind, help: escaped(help), lines: String::new() });
        let _ = writeln!(family.lines, "{name}{{{labels}}} {value}");
    }

    /// The metrics of a device. One that does not answer has no values.
    fn device(&mut self, known: &Known) {
        let device = &known.device;
        let (class, instance) = (device.class.short_name, device.eoj.instance());
        let labels = format!("device=\"{}\",class=\"{class}\",instance=\"{instance}\"", device.id);
        self.add("echonet_up".into(), "gauge", "1 while the device answers.", &labels, u8::from(!known.is_lost()));
        if known.is_lost() {
            return;
        }
        let replaced = circuits::replaced(device.class, &device.maps);
        let is_shown = |resource: &Resource<'_>| resource.is_readable && !replaced.contains(resource.spec.epc);
        for resource in device.resources().filter(is_shown) {
            let value = known.values.get(&resource.spec.epc);
            let Some((spec, value)) = value.and_then(|edt| render::decode(device.class, resource.spec.epc, edt)) else {
                continue;
            };
            self.value(known, spec, &labels, "", (value, spec.data));
        }
        self.circuits(known, &labels);
    }

    /// The metrics of a board's circuits.
    fn circuits(&mut self, known: &Known, labels: &str) {
        for (list, channel, path, number) in known.device.circuit_numbers(&known.circuits, &known.values) {
            let field = if path.is_empty() { String::new() } else { format!(",field=\"{path}\"") };
            let labels = format!("{labels},kind=\"{}\",circuit=\"{channel}\"{field}", list.kind);
            let (kind, end) = if list.quantity == "energy" { ("counter", "_total") } else { ("gauge", "") };
            let name = format!("echonet_circuit_{}{}{end}", list.quantity, unit(number.unit));
            let help = format!("The {} of a circuit of a distribution board.", list.quantity);
            self.add(name, kind, &help, &labels, number.digits());
        }
    }

    /// The metrics of a value, or of its fields. Lists are histories, which are no state.
    fn value(&mut self, known: &Known, spec: &PropertySpec, labels: &str, path: &str, of: (Value<'_>, &'static Data)) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let labelled = || if path.is_empty() { labels.to_owned() } else { format!("{labels},field=\"{path}\"") };
        match of {
            (Value::Number(number), data) => {
                let factor = known.device.factor(render::coefficients(data), &known.values);
                if let Some(number) = factor.and_then(|factor| factor.times(number)) {
                    self.number(spec, &labelled(), number);
                }
            }
            (Value::Level(step), _) => self.number(spec, &labelled(), Scaled::whole(step.level.into())),
            (Value::State(named), _) => {
                let all = format!("{},property=\"{}\",value=\"{}\"", labelled(), spec.short_name, named.name());
                self.add("echonet_state".into(), "gauge", "1 for the present state of a property.", &all, 1);
                let switched = match named.name() {
                    "on" | "true" => 1,
                    "off" | "false" => 0,
                    _ => return,
                };
                self.number(spec, &labelled(), Scaled::whole(switched));
            }
            (Value::Object(fields), _) => {
                fields.for_each(|(field, value)| {
                    self.value(known, spec, labels, &below(field.short_name), (value, field.data));
                });
            }
            (Value::Bitmap(flags), _) => {
                flags.iter().for_each(|(flag, value)| {
                    self.value(known, spec, labels, &below(flag.name), (value, flag.data));
                });
            }
            _ => {}
        }
    }

    fn number(&mut self, spec: &PropertySpec, labels: &str, number: Scaled) {
        let is_total = spec.short_name.to_ascii_lowercase().contains("cumulative") && number.unit != Unit::None;
        let (kind, end) = if is_total { ("counter", "_total") } else { ("gauge", "") };
        let name = format!("echonet_{}{}{end}", property(spec.short_name), unit(number.unit));
        self.add(name, kind, spec.name(), labels, number.digits());
    }
}

/// The end of a name with a unit: `_kilowatt_hours`, `_cubic_metres_per_hour`.
fn unit(unit: Unit) -> String {
    if unit == Unit::None {
        return String::new();
    }
    let name = snake(&format!("{unit:?}"));
    match name.split_once("_per_") {
        _ if SINGULAR.contains(&unit) => format!("_{name}"),
        Some((counted, per)) => format!("_{counted}s_per_{per}"),
        None => format!("_{name}s"),
    }
}

/// The name of a property: `room_temperature`, or `property_state` where the name alone is another metric.
fn property(name: &str) -> String {
    let name = snake(name);
    if TAKEN.contains(&name.as_str()) { format!("property_{name}") } else { name }
}

/// `roomTemperature` as `room_temperature`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        match letter {
            'A'..='Z' if snake.is_empty() => snake.push(letter.to_ascii_lowercase()),
            'A'..='Z' => snake.extend(['_', letter.to_ascii_lowercase()]),
            'a'..='z' | '0'..='9' => snake.push(letter),
            _ => snake.push('_'),
        }
    }
    snake
}

/// A text of the tables as it stands behind HELP.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;

    #[test]
    fn names_of_units() {
        for (of, expected) in [
            (Unit::None, ""),
            (Unit::Celsius, "_celsius"),
            (Unit::Watt, "_watts"),
            (Unit::KilowattHour, "_kilowatt_hours"),
            (Unit::CubicMetrePerHour, "_cubic_metres_per_hour"),
            (Unit::WattPerMillihertz, "_watts_per_millihertz"),
        ] {
            assert_eq!(unit(of), expected);
        }
    }

    #[test]
    fn properties_have_other_names_than_the_metrics_of_devices() {
        for (name, expected) in
            [("state", "property_state"), ("up", "property_up"), ("upTime", "up_time"), ("states", "states")]
        {
            assert_eq!(property(name), expected);
        }
    }

    #[test]
    fn every_property_makes_a_name_that_prometheus_takes() {
        for spec in class::all().iter().flat_map(|class| class.properties) {
            let name = snake(spec.short_name);
            assert!(name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')), "{name}");
            assert!(!name.is_empty() && !name.contains("__") && !name.starts_with('_'), "{name}");
        }
    }
}
