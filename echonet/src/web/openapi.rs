//! The API as an OpenAPI document, with the schemas of all classes from their tables.

use echonet_lite::class::{self, Class, PropertySpec};
use serde_json::{Map, Value as Json, json};

use super::{bulks, groups, histories, request, schema};
use crate::data;

/// A request that can be made.
struct Operation {
    path: &'static str,
    method: &'static str,
    summary: &'static str,
    /// The parameters of its query, by their names among the components.
    query: &'static [&'static str],
    /// The schema of its body.
    body: Option<&'static str>,
    /// The status of its answer, and the schema.
    answer: (u16, Option<&'static str>),
}

/// An operation without a query and a body that answers 200.
const fn operation(method: &'static str, path: &'static str, answer: &'static str, summary: &'static str) -> Operation {
    Operation { path, method, summary, query: &[], body: None, answer: (200, Some(answer)) }
}

impl Operation {
    const fn page(self) -> Self {
        Self { query: &["offset", "limit"], ..self }
    }

    const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    const fn makes(self) -> Self {
        Self { answer: (201, self.answer.1), ..self }
    }

    const fn ends(self) -> Self {
        Self { answer: (204, None), ..self }
    }
}

const OPERATIONS: [Operation; 28] = [
    operation("get", "/elapi", "Versions", "Versions of the API"),
    operation("get", "/elapi/v1", "Services", "Services of this version"),
    operation("get", "/elapi/v1/devices", "Devices", "Devices of the home").page(),
    operation("get", "/elapi/v1/devices/{id}", "Description", "What a device has: its device description"),
    operation("get", "/elapi/v1/devices/{id}/properties", "Values", "All properties of a device, asked for now"),
    operation("get", "/elapi/v1/devices/{id}/properties/{name}", "Values", "A property of a device, asked for now"),
    operation("put", "/elapi/v1/devices/{id}/properties/{name}", "Values", "Sets a property").body("Values"),
    operation("post", "/elapi/v1/devices/{id}/actions/{name}", "Values", "Has a device do something").body("Values"),
    operation("get", "/elapi/v1/groups", "Groups", "Groups of devices").page(),
    operation("post", "/elapi/v1/groups", "Group", "Makes a group").body("NewGroup").makes(),
    operation("get", "/elapi/v1/groups/{id}", "Group", "A group, and what all its devices have"),
    operation("put", "/elapi/v1/groups/{id}", "Group", "Makes a group anew").body("NewGroup"),
    operation("delete", "/elapi/v1/groups/{id}", "Group", "Deletes a group").ends(),
    operation("get", "/elapi/v1/groups/{id}/properties", "Results", "All properties of all devices"),
    operation("get", "/elapi/v1/groups/{id}/properties/{name}", "Results", "A property of all devices"),
    operation("put", "/elapi/v1/groups/{id}/properties/{name}", "Results", "Sets a property of all devices")
        .body("Values"),
    operation("post", "/elapi/v1/groups/{id}/actions/{name}", "Results", "Has all devices do something").body("Values"),
    operation("get", "/elapi/v1/bulks", "Bulks", "Bulks of requests").page(),
    operation("post", "/elapi/v1/bulks", "Bulk", "Makes a bulk").body("NewBulk").makes(),
    operation("get", "/elapi/v1/bulks/{id}", "Bulk", "A bulk"),
    operation("put", "/elapi/v1/bulks/{id}", "Bulk", "Makes a bulk anew").body("NewBulk"),
    operation("delete", "/elapi/v1/bulks/{id}", "Bulk", "Deletes a bulk").ends(),
    operation("post", "/elapi/v1/bulks/{id}/actions/execute", "Results", "Makes the requests of a bulk").body("Empty"),
    operation("get", "/elapi/v1/histories", "Histories", "Histories of properties").page(),
    operation("post", "/elapi/v1/histories", "History", "Begins a history").body("NewHistory").makes(),
    operation("get", "/elapi/v1/histories/{id}", "History", "A history"),
    operation("delete", "/elapi/v1/histories/{id}", "History", "Deletes a history").ends(),
    operation(
        "get",
        "/elapi/v1/histories/{id}/properties/history",
        "Entries",
        "The values of a history, the oldest first",
    )
    .page(),
];

/// The document.
pub(super) fn document() -> Json {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ECHONET Lite Web API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The devices of a home, as `echonet web` serves them. Values are those of the schemas that bear the names of device types.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "bearer": [] }, { "key": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "X-Elapi-key" },
            },
            "parameters": {
                "offset": parameter("offset", "Entries to leave out", json!({ "type": "integer", "minimum": 0, "default": 0 })),
                "limit": parameter("limit", "Entries to give", json!({ "type": "integer", "minimum": 1, "maximum": request::MOST, "default": 100 })),
            },
            "responses": { "problem": answer("Why nothing was done", "Problem") },
            "schemas": schemas(),
        },
    })
}

fn parameter(name: &str, description: &str, schema: Json) -> Json {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

fn reference(kind: &str, name: &str) -> Json {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn answer(description: &str, schema: &str) -> Json {
    json!({ "description": description, "content": { "application/json": { "schema": reference("schemas", schema) } } })
}

fn paths() -> Map<String, Json> {
    let mut paths = Map::new();
    for of in &OPERATIONS {
        let tag = of.path.split('/').nth(3).unwrap_or("services");
        let (status, schema) = of.answer;
        let good = schema.map_or_else(|| json!({ "description": "Done" }), |schema| answer("Done", schema));
        let mut operation = json!({
            "operationId": format!("{}_{}", of.method, of.path.trim_start_matches('/').replace(['/', '{', '}'], "_")),
            "tags": [tag],
            "summary": of.summary,
            "responses": { status.to_string(): good, "default": reference("responses", "problem") },
        });
        if !of.query.is_empty() {
            operation["parameters"] = of.query.iter().map(|name| reference("parameters", name)).collect();
        }
        if let Some(schema) = of.body {
            operation["requestBody"] = json!({
                "required": of.method == "put" || schema.starts_with("New"),
                "content": { "application/json": { "schema": reference("schemas", schema) } },
            });
        }
        let item = paths.entry(of.path).or_insert_with(|| item(of.path));
        item[of.method] = operation;
    }
    let stream =
        json!({ "type": "string", "description": "Events device, property, status and gone; their data is JSON" });
    paths.insert(
        "/events".into(),
        json!({ "get": {
        "operationId": "events", "tags": ["services"], "summary": "The home, and what changes in it",
        "responses": {
            "200": { "description": "Server-sent events", "content": { "text/event-stream": { "schema": stream } } },
            "default": reference("responses", "problem"),
        },
    } }),
    );
    paths
}

/// A path, with the parameters that stand in it.
fn item(path: &str) -> Json {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let of = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let parameters: Vec<_> = names.map(of).collect();
    if parameters.is_empty() { json!({}) } else { json!({ "parameters": parameters }) }
}

/// The schemas of bodies and answers, and every class under its own name.
fn schemas() -> Map<String, Json> {
    let mut schemas = Map::new();
    for fixed in [of_devices(), of_groups_and_bulks(), of_histories()] {
        if let Json::Object(fixed) = fixed {
            schemas.extend(fixed);
        }
    }
    for class in crate::names::classes().filter(|class| class.code != class::NODE_PROFILE.code) {
        schemas.insert(class.short_name.to_owned(), of_class(class));
    }
    schemas
}

fn text() -> Json {
    json!({ "type": "string" })
}

fn number() -> Json {
    json!({ "type": "integer" })
}

fn anything() -> Json {
    json!({ "type": "object" })
}

/// Names by their languages.
fn names() -> Json {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn object(properties: &Json) -> Json {
    json!({ "type": "object", "properties": properties })
}

fn array(items: &Json) -> Json {
    json!({ "type": "array", "items": items })
}

/// A part of a list under a name.
fn list(name: &str, items: &Json) -> Json {
    let mut properties = json!({ "hasMore": { "type": "boolean" }, "limit": number(), "offset": number() });
    properties[name] = array(items);
    json!({ "type": "object", "properties": properties, "required": [name, "hasMore", "limit", "offset"] })
}

fn of_devices() -> Json {
    let types = ["rangeError", "referenceError", "typeError", "timeoutError", "deviceError"];
    let service = object(&json!({ "name": text(), "descriptions": names(), "total": number() }));
    let result = object(&json!({ "deviceId": text(), "status": number(), "body": anything() }));
    let version = object(&json!({ "id": text(), "status": text() }));
    let profile = object(&json!({
        "id": { "type": "string", "pattern": "^[0-9A-Za-z-]+$" }, "deviceType": text(), "protocol": anything(),
        "manufacturer": { "type": ["object", "null"] },
    }));
    json!({
        "Empty": { "type": "object", "maxProperties": 0 },
        "Values": { "type": "object", "description": "Values by the names of their properties" },
        "Problem": {
            "type": "object", "required": ["type", "message"],
            "properties": { "type": { "enum": types }, "message": text() },
        },
        "Versions": object(&json!({ "versions": array(&version) })),
        "Services": object(&json!({ "v1": array(&service) })),
        "Devices": list("devices", &profile),
        "Description": {
            "type": "object", "required": ["deviceType", "eoj", "descriptions", "properties"],
            "properties": {
                "deviceType": text(), "eoj": text(), "descriptions": names(), "properties": anything(), "actions": anything(),
            },
        },
        "Results": object(&json!({ "results": array(&result) })),
    })
}

fn of_groups_and_bulks() -> Json {
    let named = object(&json!({ "id": text(), "descriptions": names() }));
    let call = json!({
        "type": "object", "required": ["method", "path"], "additionalProperties": false,
        "properties": { "method": { "enum": ["GET", "PUT", "POST"] }, "path": text(), "body": anything() },
    });
    json!({
        "Groups": list("groups", &named),
        "NewGroup": {
            "type": "object", "required": ["devices"], "additionalProperties": false,
            "properties": {
                "descriptions": names(),
                "devices": { "type": "array", "items": text(), "minItems": 1, "maxItems": groups::MEMBERS, "uniqueItems": true },
            },
        },
        "Group": object(&json!({
            "id": text(), "descriptions": names(), "devices": array(&text()), "properties": anything(), "actions": anything(),
        })),
        "Bulks": list("bulks", &named),
        "NewBulk": {
            "type": "object", "required": ["requests"], "additionalProperties": false,
            "properties": {
                "descriptions": names(), "mode": { "enum": ["sequential", "parallel"], "default": "sequential" },
                "requests": { "type": "array", "items": call, "minItems": 1, "maxItems": bulks::REQUESTS },
            },
        },
        "Bulk": object(&json!({
            "id": text(), "descriptions": names(), "mode": text(), "requests": array(&call), "actions": anything(),
        })),
    })
}

fn of_histories() -> Json {
    let described = json!({ "id": text(), "descriptions": names(), "deviceId": text(), "propertyName": text() });
    let seconds = json!({
        "type": ["integer", "null"], "minimum": 1, "description": "Seconds between two samples; at every change if not given",
    });
    let mut all = described.clone();
    for (name, schema) in
        [("interval", seconds.clone()), ("limit", number()), ("total", number()), ("properties", anything())]
    {
        all[name] = schema;
    }
    let entry = object(&json!({ "timestamp": { "type": "string", "format": "date-time" }, "value": {} }));
    json!({
        "Histories": list("histories", &object(&described)),
        "NewHistory": {
            "type": "object", "required": ["deviceId", "propertyName"], "additionalProperties": false,
            "properties": {
                "descriptions": names(), "deviceId": text(), "propertyName": text(), "interval": seconds,
                "limit": { "type": "integer", "minimum": 1, "maximum": histories::MOST, "default": 1000 },
            },
        },
        "History": object(&all),
        "Entries": list("history", &entry),
    })
}

/// The properties that a class knows, as the values of a device of it, and those of makers.
fn of_class(class: &'static Class) -> Json {
    let is_shown = |spec: &PropertySpec| spec.access.get.is_applicable() && !(0x9D..=0x9F).contains(&spec.epc);
    let own = class.properties.iter().filter(|spec| is_shown(spec));
    let mut properties: Map<_, _> =
        own.map(|spec| (spec.short_name.to_owned(), of_property(spec, spec.name().to_owned()))).collect();
    for ([a, b, c], spec) in data::of_makers(class.code).filter(|(_, spec)| is_shown(spec)) {
        let schema = of_property(spec, format!("{}, of maker {a:02X}{b:02X}{c:02X}", spec.name()));
        add(&mut properties, spec.short_name, schema);
    }
    let mut of = json!({
        "type": "object",
        "description": class.name(),
        "eoj": format!("0x{:04X}", class.code.to_u16()),
        "properties": properties,
    });
    let common = &class::SUPER_CLASS;
    // A class may have a property of its own under a name that all others inherit.
    let is_own = |spec: &PropertySpec| {
        class.properties.iter().any(|own| own.short_name == spec.short_name && own.epc != spec.epc)
    };
    if class.code != common.code && !common.properties.iter().any(is_own) {
        of["allOf"] = json!([reference("schemas", common.short_name)]);
    }
    of
}

fn of_property(spec: &'static PropertySpec, description: String) -> Json {
    let mut property = json!({ "description": description, "epc": format!("{:#04X}", spec.epc) });
    if !spec.access.set.is_applicable() {
        property["readOnly"] = true.into();
    }
    if let (Json::Object(property), Json::Object(schema)) = (&mut property, schema::of(spec)) {
        property.extend(schema);
    }
    property
}

/// Adds a maker's property. Where another maker has one of this name, the value is one of either.
fn add(properties: &mut Map<String, Json>, name: &str, schema: Json) {
    let Some(there) = properties.get_mut(name) else {
        properties.insert(name.to_owned(), schema);
        return;
    };
    if let Some(Json::Array(all)) = there.get_mut("anyOf") {
        if !all.contains(&schema) {
            all.push(schema);
        }
    } else if *there != schema {
        let other = there.take();
        *there = json!({ "anyOf": [other, schema] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_one_name_are_alternatives() {
        let mut properties = Map::new();
        for size in [1, 1, 2, 3, 2] {
            add(&mut properties, "power", json!({ "size": size }));
        }
        assert_eq!(properties["power"], json!({ "anyOf": [{ "size": 1 }, { "size": 2 }, { "size": 3 }] }));
        add(&mut properties, "mode", json!({ "size": 1 }));
        assert_eq!(properties["mode"], json!({ "size": 1 }));
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_class_is_there() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        assert_eq!(schemas["generalLighting"]["properties"]["lightLevel"]["maximum"], 100);
        assert_eq!(schemas["generalLighting"]["allOf"][0]["$ref"], "#/components/schemas/common");
        assert_eq!(schemas["controller"]["allOf"], Json::Null);
        assert!(class::all().iter().filter(|class| schemas.contains_key(class.short_name)).count() >= 190);
        let ids: Vec<_> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|item| item.as_object().unwrap().values())
            .filter_map(|operation| operation["operationId"].as_str())
            .collect();
        assert_eq!(ids.len(), 29);
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
        println!("{} bytes", text.len());
    }
}
