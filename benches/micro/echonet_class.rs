//! **Question**: what does echonet-lite's table of classes cost: looking up a class and a property, and a value from bytes and
//! back?
//! **Source**: none; these are the crate's own figures.

use std::hint::black_box;

use crate::settings::settings;
use criterion::{Criterion, criterion_group};
use echonet_lite::class::{self, HOME_AIR_CONDITIONER, LV_SMART_ELECTRIC_ENERGY_METER, Value};
use echonet_lite::wire::ClassCode;

fn look_up(c: &mut Criterion) {
    let codes: Vec<ClassCode> = class::all().iter().map(|class| class.code).collect();
    let mut group = c.benchmark_group("ECHONET class");
    let mut turn = codes.iter().cycle();
    group.bench_function("find, each class in turn", |b| {
        b.iter(|| turn.next().and_then(|code| class::find(black_box(*code))));
    });
    group.bench_function("find, no such class", |b| b.iter(|| class::find(black_box(ClassCode::new(0x01, 0x99)))));
    let mut epc = 0x80;
    group.bench_function("property, each code in turn", |b| {
        b.iter(|| {
            epc = (epc + 1) | 0x80;
            HOME_AIR_CONDITIONER.property(black_box(epc))
        });
    });
    group.bench_function("find and property", |b| {
        b.iter(|| class::find(black_box(ClassCode::new(0x01, 0x30)))?.property(black_box(0xB3)));
    });
    group.bench_function("by name", |b| b.iter(|| class::by_name(black_box("lvSmartElectricEnergyMeter"))));
    group.finish();
}

fn values(c: &mut Criterion) {
    let temperature = HOME_AIR_CONDITIONER.property(0xB3).expect("it has a target temperature");
    let measured = LV_SMART_ELECTRIC_ENERGY_METER.property(0xEA).expect("it has the energy at fixed times");
    let mut group = c.benchmark_group("ECHONET value");
    group.bench_function("decode 22 °C", |b| b.iter(|| temperature.decode(black_box(&[22]))));
    let mut edt = [0; 255];
    group.bench_function("encode 22 °C", |b| b.iter(|| temperature.encode(black_box(Value::whole(22)), &mut edt)));
    group.bench_function("parse \"22 °C\"", |b| b.iter(|| temperature.parse(black_box("22 °C"), &mut edt)));
    let bytes = [0x07, 0xE8, 12, 31, 14, 30, 0, 0, 1, 0xE2, 0x40];
    group.bench_function("decode energy at a moment", |b| b.iter(|| measured.decode(black_box(&bytes))));
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = look_up, values }
