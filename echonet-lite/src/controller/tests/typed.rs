//! Typed values of what comes.

use super::*;

/// The answer of the only request.
fn answer(table: &mut Table, request: &Request<'_>, frame: &str) -> Answer {
    table.request(request);
    table.sent();
    table.comes(NODE, frame);
    match table.controller.poll_event() {
        Some(Event::Done { result: Ok(answer), .. }) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_energy_of_a_meter_is_scaled() {
    let meter = Eoj::new(0x02, 0x88, 1);
    let cases = [
        ("0001 028801 C 72 03 E0 04 0001E240 D3 04 0000000A E1 01 01", Some("123456.0 kWh")),
        ("0001 028801 C 52 03 E0 04 0001E240 D3 00 E1 01 01", Some("12345.6 kWh")),
        ("0001 028801 C 52 03 E0 00 D3 04 0000000A E1 01 01", None),
        ("0001 028801 C 72 03 E0 04 FFFFFFFE D3 04 0000000A E1 01 01", None),
    ];
    for (frame, energy) in cases {
        let answer = answer(&mut Table::quiet(), &Request::get(meter, &[0xE0, 0xD3, 0xE1]), frame);
        assert_eq!(answer.quantity(0xE0).map(|energy| format!("{energy}")).as_deref(), energy, "{frame}");
    }
    // Not without what it is to be multiplied with.
    let answer = answer(&mut Table::quiet(), &Request::get(meter, &[0xE0]), "0001 028801 C 72 01 E0 04 0001E240");
    assert_eq!(answer.quantity(0xE0), None);
}

#[test]
fn values_have_names_and_units() {
    let air_conditioner = Eoj::new(0x01, 0x30, 1);
    let request = Request::get(air_conditioner, &[0x80, 0xB3, 0xBB, 0xF0]);
    let answer = answer(&mut Table::quiet(), &request, "0001 013001 C 52 04 80 01 30 B3 01 16 BB 00 F0 01 01");
    let values: Vec<_> =
        answer.values().map(|(property, value)| format!("{}={}", property.short_name, value.unwrap())).collect();
    assert_eq!(values, ["operationStatus=true", "targetTemperature=22 °C"]);
    assert!(answer.value(0xBB).is_none());

    let mut table = Table::quiet();
    table.comes(NODE, "0001 013001 0EF001 73 02 BB 01 19 B0 01 60");
    table.controller.poll_event();
    let Some(Event::Notification(news)) = table.controller.poll_event() else { panic!("it is news") };
    assert_eq!(news.value(0xBB).map(|value| format!("{}", value.unwrap())).as_deref(), Some("25 °C"));
    assert!(news.value(0xB0).unwrap().is_err(), "there is no such mode");
    assert_eq!(news.values().count(), 2);
}
