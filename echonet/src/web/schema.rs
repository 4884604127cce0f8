//! The values of a property, as JSON Schema with the words that the guideline adds: `unit`, `values` with their `edt`,
//! `coefficient`.

use echonet_lite::class::{Class, Data, Number, Numeric, PropertySpec, Scaled, State, States, Unit};
use serde_json::{Map, Value as Json, json};

use super::value::is_plain;
use crate::circuits::{List, list};

/// The standard version, the identification number and the maker have forms of their own in the API.
pub(super) const PROTOCOL: u8 = 0x82;
pub(super) const ID: u8 = 0x83;
pub(super) const MANUFACTURER: u8 = 0x8A;

/// The property with all circuits of a distribution board.
pub(super) const CIRCUITS: &str = "circuits";

/// Names in both languages.
pub(super) fn descriptions(japanese: &str, english: &str) -> Json {
    json!({ "ja": japanese, "en": english })
}

/// The names of a class.
pub(super) fn of_class(class: &Class) -> Json {
    descriptions(class.name_ja(), class.name())
}

/// The schema of a property's value.
pub(super) fn of(spec: &PropertySpec) -> Json {
    let text = || json!({ "type": "string" });
    match spec.epc {
        PROTOCOL => json!({ "type": "object", "properties": { "type": text(), "version": text() } }),
        MANUFACTURER => {
            let names = json!({ "type": "object", "properties": { "ja": text(), "en": text() } });
            json!({ "type": "object", "properties": { "code": text(), "descriptions": names } })
        }
        ID => text(),
        _ => of_data(spec.data),
    }
}

/// The schema of a type.
pub(super) fn of_data(data: &'static Data) -> Json {
    let text = |format: &str, pattern: &str| json!({ "type": "string", "format": format, "pattern": pattern });
    match data {
        Data::Number(number) => of_number(number),
        Data::Numeric(codes) => {
            let number = |code: &Numeric| json_of(i64::from(code.number), code.exponent);
            let values =
                codes.iter().map(|code| json!({ "value": number(code), "edt": format!("0x{:02X}", code.code) }));
            json!({
                "type": "number", "enum": codes.iter().map(number).collect::<Json>(), "values": values.collect::<Json>(),
            })
        }
        Data::State(states) => one_of(of_states(*states)),
        Data::Level(level) if is_plain(*level) => {
            json!({ "type": "number", "minimum": 1, "maximum": level.maximum, "multipleOf": 1 })
        }
        Data::Level(level) => {
            json!({ "type": "string", "pattern": format!("^level [0-9]+ from {:#X}$", level.base) })
        }
        Data::Bitmap(bitmap) => {
            let fields = bitmap.flags.iter().map(|flag| (flag.name.to_owned(), of_data(flag.data)));
            json!({ "type": "object", "properties": fields.collect::<Map<_, _>>() })
        }
        Data::Date => text("date", "^([0-9]{4}-[0-9]{2}-[0-9]{2}|unset)$"),
        Data::Time(_) => text("time", "^([0-9]{1,3}:[0-9]{2}(:[0-9]{2})?|unset)$"),
        Data::DateTime { .. } => {
            text("date-time", "^([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?|unset)$")
        }
        Data::Text { maximum, .. } => json!({ "type": "string", "maxLength": maximum }),
        Data::Raw { minimum, maximum } => {
            json!({ "type": "string", "pattern": format!("^0x([0-9A-Fa-f]{{2}}){{{minimum},{maximum}}}$") })
        }
        Data::Array(array) => json!({
            "type": "array", "minItems": array.minimum, "maxItems": array.maximum, "items": of_data(array.items),
        }),
        Data::Object(fields) => {
            let properties = fields.iter().map(|field| {
                let mut schema = Map::new();
                schema.insert("descriptions".into(), json!({ "en": field.name() }));
                if let Json::Object(rest) = of_data(field.data) {
                    schema.extend(rest);
                }
                (field.short_name.to_owned(), schema.into())
            });
            let names: Json = fields.iter().map(|field| field.short_name).collect();
            json!({ "type": "object", "properties": properties.collect::<Map<_, _>>(), "required": names })
        }
        Data::OneOf(arms) => one_of(
            arms.iter()
                .flat_map(|arm| match arm {
                    Data::State(states) => of_states(*states),
                    arm => vec![of_data(arm)],
                })
                .collect(),
        ),
    }
}

/// Alternatives, of which there may be only one.
fn one_of(mut schemas: Vec<Json>) -> Json {
    if schemas.len() == 1 { schemas.remove(0) } else { json!({ "oneOf": schemas }) }
}

fn of_number(number: &Number) -> Json {
    let mut schema = Map::new();
    schema.insert("type".into(), "number".into());
    if number.unit != Unit::None {
        schema.insert("unit".into(), unit(number.unit).into());
    }
    // A coefficient moves the bounds and the steps.
    if number.coefficients.is_empty() {
        schema.insert("minimum".into(), json_of(number.minimum, number.exponent));
        schema.insert("maximum".into(), json_of(number.maximum, number.exponent));
        schema.insert("multipleOf".into(), json_of(1, number.exponent));
    } else {
        let codes: Json = number.coefficients.iter().map(|epc| format!("{epc:#04X}")).collect();
        schema.insert("coefficient".into(), codes);
    }
    schema.into()
}

/// The guideline writes units with letters that every keyboard has.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Celsius => "Celsius",
        Unit::Degree => "degree",
        Unit::CubicMetre => "m3",
        Unit::CubicMetrePerHour => "m3/h",
        Unit::CubicCentimetre => "cm3",
        Unit::CubicCentimetrePerMinute => "cm3/min",
        other => other.symbol(),
    }
}

fn json_of(raw: i64, exponent: i8) -> Json {
    let digits = Scaled { raw, exponent, unit: Unit::None }.to_string();
    serde_json::from_str(&digits).unwrap_or(Json::Null)
}

/// Truths and names are schemas of their own.
fn of_states(states: States) -> Vec<Json> {
    let (truths, names): (Vec<&State>, Vec<_>) =
        states.all.iter().partition(|state| matches!(state.name, "true" | "false"));
    let values = |of: &[&State], value: fn(&str) -> Json| -> Json {
        let digits = 2 * usize::from(states.size.max(1));
        of.iter()
            .map(|state| {
                let mut entry = json!({ "value": value(state.name), "edt": format!("0x{:0digits$X}", state.code) });
                if state.read_only {
                    entry["readOnly"] = true.into();
                }
                entry
            })
            .collect()
    };
    let mut schemas = Vec::new();
    if !truths.is_empty() {
        schemas.push(json!({ "type": "boolean", "values": values(&truths, |name| (name == "true").into()) }));
    }
    if !names.is_empty() {
        let mut distinct: Vec<_> = names.iter().map(|state| state.name).collect();
        let mut seen = std::collections::HashSet::new();
        distinct.retain(|name| seen.insert(*name));
        schemas.push(json!({ "type": "string", "enum": distinct, "values": values(&names, |name| name.into()) }));
    }
    schemas
}

/// The description of the property with all circuits.
pub(super) fn circuits() -> Json {
    json!({
        "descriptions": descriptions("回路ごとの計測値", "Measured values of each circuit"),
        "writable": false,
        "observable": false,
        "schema": { "type": "array", "items": { "type": "object", "properties": {
            "circuit": { "type": "number", "minimum": 1, "maximum": 252 },
            "kind": { "type": "string", "enum": ["simplex", "duplex"] },
            "energy": measured("energy"),
            "current": measured("current"),
            "power": measured("power"),
        } } },
    })
}

/// The schema of a quantity: of simplex channels, or of duplex ones.
fn measured(quantity: &str) -> Json {
    let of_kind = |kind: &str| list(kind, quantity).and_then(List::items).map(of_data);
    let mut schemas: Vec<_> = ["simplex", "duplex"].into_iter().filter_map(of_kind).collect();
    schemas.dedup();
    schemas.push(json!({ "type": "null" }));
    json!({ "oneOf": schemas })
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;

    #[test]
    fn schemas_after_data_types() {
        let check = |class: &str, property: &str, expected: Json| {
            let spec = class::by_name(class).unwrap().property_by_name(property).unwrap();
            assert_eq!(of(spec), expected, "{class} {property}");
        };
        check(
            "generalLighting",
            "lightLevel",
            json!({ "type": "number", "unit": "%", "minimum": 0, "maximum": 100, "multipleOf": 1 }),
        );
        check(
            "temperatureSensor",
            "value",
            json!({
                "type": "number", "unit": "Celsius", "minimum": -273.2, "maximum": 3276.6, "multipleOf": 0.1,
            }),
        );
        check(
            "generalLighting",
            "operationStatus",
            json!({
                "type": "boolean", "values": [{ "value": true, "edt": "0x30" }, { "value": false, "edt": "0x31" }],
            }),
        );
        check(
            "homeAirConditioner",
            "targetTemperature",
            json!({ "oneOf": [
            { "type": "number", "unit": "Celsius", "minimum": 0, "maximum": 50, "multipleOf": 1 },
            { "type": "string", "enum": ["undefined"], "values": [{ "value": "undefined", "edt": "0xFD", "readOnly": true }] },
        ] }),
        );
        check(
            "lvSmartElectricEnergyMeter",
            "E0",
            json!({ "oneOf": [
            { "type": "number", "unit": "kWh", "coefficient": ["0xD3", "0xE1"] },
            { "type": "string", "enum": ["noData"], "values": [{ "value": "noData", "edt": "0xFFFFFFFE", "readOnly": true }] },
        ] }),
        );
        check(
            "generalLighting",
            "onTimerTime",
            json!({
                "type": "string", "format": "time", "pattern": "^([0-9]{1,3}:[0-9]{2}(:[0-9]{2})?|unset)$",
            }),
        );
        check("homeAirConditioner", "id", json!({ "type": "string" }));
    }

    #[test]
    fn circuits_have_a_form_for_each_kind() {
        let description = circuits();
        let forms = |quantity: &str| {
            let schema = &description["schema"]["items"]["properties"][quantity]["oneOf"];
            schema.as_array().unwrap().len()
        };
        assert_eq!(["energy", "current", "power"].map(forms), [3, 2, 2], "{description}");
    }
}
