//! Values of properties as JSON, both ways.

use echonet_lite::class::{Data, Level, PropertySpec, Scaled, Value};
use serde_json::{Map, Value as Json};

use super::problem::Problem;
use crate::render::{arms, coefficients};

/// The product of the values of some properties of the same object; none if one of them is not known.
pub(super) type Factors<'a> = &'a dyn Fn(&'static [u8]) -> Option<Scaled>;

/// A value of a type as JSON: numbers without their unit, multiplied with their coefficients (`null` where those are
/// not known), `true` and `false` as those, everything else as text.
pub(super) fn json(value: Value<'_>, data: &'static Data, factors: Factors<'_>) -> Json {
    match value {
        Value::Number(number) => {
            let product = factors(coefficients(data)).and_then(|factor| factor.times(number));
            // Digits are JSON.
            product.and_then(|number| serde_json::from_str(&number.digits().to_string()).ok()).unwrap_or(Json::Null)
        }
        Value::State(named) => match named.name() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            name => name.into(),
        },
        Value::Level(step) if is_plain(step.series) => step.level.into(),
        Value::Bitmap(flags) => {
            let fields = flags.iter().map(|(flag, value)| (flag.name.to_owned(), json(value, flag.data, factors)));
            Json::Object(fields.collect())
        }
        Value::Array(items) => {
            let of =
                arms(data).iter().find_map(|arm| if let Data::Array(array) = arm { Some(array.items) } else { None });
            items.map(|item| of.map_or_else(|| item.to_string().into(), |of| json(item, of, factors))).collect()
        }
        Value::Object(fields) => {
            let fields = fields.map(|(field, value)| (field.short_name.to_owned(), json(value, field.data, factors)));
            Json::Object(fields.collect())
        }
        text => text.to_string().into(),
    }
}

/// Whether a level's number says which one it is: most series begin at 0x31, others tell their beginning.
pub(super) fn is_plain(level: Level) -> bool {
    level.base == 0x31 || level.size == 0
}

/// The EDT that JSON says.
///
/// # Errors
/// JSON of another type than the property's, or a value that it cannot have.
pub(super) fn edt(spec: &'static PropertySpec, json: &Json) -> Result<Vec<u8>, Problem> {
    if let (Data::Text { .. }, Json::String(text)) = (spec.data, json) {
        let mut edt = [0; 255];
        let length = spec.encode(Value::Text(text), &mut edt).map_err(|error| Problem::range(error.to_string()))?;
        return Ok(edt[..length].to_vec());
    }
    if !fits(spec.data, json) {
        let wrong = format!("{}: {} is not of the type {:.200}", spec.short_name, excerpt(json), spec.data.to_string());
        return Err(Problem::mistyped(wrong));
    }
    parse(spec, &text(json))
}

/// The EDT that a text says, as it stands in a query.
///
/// # Errors
/// It is no value that the property can have.
pub(super) fn parse(spec: &'static PropertySpec, text: &str) -> Result<Vec<u8>, Problem> {
    let mut edt = [0; 255];
    let length = spec.parse(text, &mut edt).map_err(|error| Problem::range(error.to_string()))?;
    Ok(edt[..length].to_vec())
}

/// Whether JSON is of the type that a value has, whatever its value.
fn fits(data: &'static Data, json: &Json) -> bool {
    let is_bool = |name: &str| matches!(name, "true" | "false");
    match (data, json) {
        (Data::Number(_) | Data::Numeric(_), Json::Number(_)) => true,
        (Data::Level(level), Json::Number(_)) => is_plain(*level),
        (Data::Level(level), Json::String(text)) => !is_plain(*level) && text.starts_with("level ") && is_simple(text),
        (Data::State(states), Json::Bool(_)) => states.all.iter().any(|state| is_bool(state.name)),
        (Data::State(states), Json::String(text)) => {
            states.all.iter().any(|state| !is_bool(state.name)) && !text.starts_with("0x") && is_simple(text)
        }
        (Data::Date | Data::Time(_) | Data::DateTime { .. }, Json::String(text)) => {
            !text.starts_with("0x") && is_simple(text)
        }
        (Data::Raw { .. }, Json::String(text)) => text.starts_with("0x") && is_simple(text),
        (Data::Bitmap(bitmap), Json::Object(map)) => {
            let has = |name: &String| bitmap.flags.iter().find(|flag| flag.name == *name);
            map.iter().all(|(name, value)| has(name).is_some_and(|flag| fits(flag.data, value)))
        }
        (Data::Array(array), Json::Array(items)) => items.iter().all(|item| fits(array.items, item)),
        (Data::Object(fields), Json::Object(map)) => {
            let has = |name: &str| map.get(name);
            fields.len() == map.len()
                && fields.iter().all(|field| has(field.short_name).is_some_and(|value| fits(field.data, value)))
        }
        (Data::OneOf(arms), json) => arms.iter().any(|arm| fits(arm, json)),
        _ => false,
    }
}

/// Whether a text is no more than one value where it stands among others.
fn is_simple(text: &str) -> bool {
    !text.contains(['"', ',', '[', ']', '{', '}'])
}

/// JSON as the tables' reader of texts takes it.
fn text(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        Json::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => format!("{{{}}}", fields(map).join(", ")),
        other => other.to_string(),
    }
}

fn fields(map: &Map<String, Json>) -> Vec<String> {
    map.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect()
}

/// The beginning of a client's value.
pub(super) fn excerpt(json: &Json) -> String {
    format!("`{:.60}`", json.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;
    use serde_json::json as document;

    fn spec(class: &str, property: &str) -> &'static PropertySpec {
        class::by_name(class).unwrap().property_by_name(property).unwrap()
    }

    fn one(_: &'static [u8]) -> Option<Scaled> {
        Some(crate::render::ONE)
    }

    #[test]
    fn values_both_ways() {
        let check = |class: &str, property: &str, value: Json, bytes: &[u8]| {
            let spec = spec(class, property);
            assert_eq!(edt(spec, &value).unwrap(), bytes, "{property} {value}");
            assert_eq!(json(spec.decode(bytes).unwrap(), spec.data, &one), value, "{property} {bytes:02X?}");
        };
        check("generalLighting", "operationStatus", document!(true), &[0x30]);
        check("generalLighting", "lightLevel", document!(42), &[42]);
        check("generalLighting", "operationMode", document!("color"), &[0x45]);
        check("generalLighting", "onTimerTime", document!("14:30"), &[14, 30]);
        check("generalLighting", "rgb", document!({ "red": 255, "green": 0, "blue": 7 }), &[255, 0, 7]);
        check("temperatureSensor", "value", document!(-12.3), &(-123i16).to_be_bytes());
        check("homeAirConditioner", "airFlowLevel", document!(3), &[0x33]);
        check("homeAirConditioner", "airFlowLevel", document!("auto"), &[0x41]);
        check("homeAirConditioner", "targetTemperature", document!(25), &[25]);
        check("homeAirConditioner", "installationLocation", document!("0x08"), &[8]);
        check("lvSmartElectricEnergyMeter", "E1", document!(0.1), &[1]);
        check("solidStateLighting", "lightSourceStatusList", document!(["on", "off"]), &[0x30, 0x31]);
    }

    #[test]
    fn wrong_types_and_wrong_values_are_told_apart() {
        let check = |class: &str, property: &str, value: Json, kind: &str, part: &str| {
            let problem = edt(spec(class, property), &value).unwrap_err().json();
            assert_eq!(problem["type"], kind, "{property} {value}: {problem}");
            assert!(problem["message"].as_str().unwrap().contains(part), "{property} {value}: {problem}");
        };
        check("generalLighting", "operationStatus", document!("on"), "typeError", "operationStatus: `\"on\"`");
        check("generalLighting", "operationStatus", document!(1), "typeError", "true, false");
        check("generalLighting", "lightLevel", document!("42"), "typeError", "0..=100 %");
        check("generalLighting", "lightLevel", document!(101), "rangeError", "101 is not in 0..=100 %");
        check("generalLighting", "lightLevel", document!(1.5), "rangeError", "1.5 is not a multiple of 1 %");
        check("generalLighting", "lightLevel", document!(1e300), "rangeError", "lightLevel".get(..0).unwrap());
        check("generalLighting", "operationMode", document!("0x42"), "typeError", "auto");
        check("generalLighting", "operationMode", document!("bright"), "rangeError", "`bright` is not one of auto");
        check("generalLighting", "rgb", document!({ "red": 255, "green": 0 }), "typeError", "rgb");
        check("generalLighting", "rgb", document!({ "red": 255, "green": 0, "blue": 256 }), "rangeError", "blue");
        check("generalLighting", "onTimerTime", document!("24:00"), "rangeError", "24:00");
        check("generalLighting", "onTimerTime", document!("1, 2"), "typeError", "1, 2");
        check("homeAirConditioner", "targetTemperature", document!(null), "typeError", "null");
    }

    /// Every value of every class can be read back from its own JSON.
    #[test]
    fn defaults_of_all_classes_come_back() {
        let (mut count, mut buffer) = (0, [0; 255]);
        for class in class::all() {
            for spec in class.all_properties().filter(|spec| spec.access.set.is_applicable()) {
                let (least, most) = spec.data.sizes();
                for fill in [0x00, 0x01, 0x0A, 0x30, 0x31, 0x41, 0x42] {
                    let bytes = vec![fill; least.max(1).min(most)];
                    let Ok(value) = spec.decode(&bytes) else { continue };
                    let said = json(value, spec.data, &one);
                    let is_read_only = spec.parse(&value.to_string(), &mut buffer).is_err();
                    let is_code = matches!(value, Value::Overflow | Value::Underflow | Value::Unset);
                    if is_read_only || is_code {
                        continue;
                    }
                    let back = edt(spec, &said)
                        .unwrap_or_else(|problem| panic!("{class} {:02X} {said}: {}", spec.epc, problem.json()));
                    assert_eq!(json(spec.decode(&back).unwrap(), spec.data, &one), said, "{class} {:02X}", spec.epc);
                    count += 1;
                }
            }
        }
        assert!(count > 1000, "{count} values");
    }
}
