//! The class tables beside those that pychonet was written from: another reading of the same appendix.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

use echonet_lite::class::{self, Data, Format, PropertySpec};

use super::install::PYTHON;

/// The differences and their reasons. `name`: pychonet has a property that ours does not; `codes`: one of its states is
/// none here; `signed`, `time`, `date`: it reads another kind of value.
const DIFFERENCES: &[(&str, &str)] = &[
    ("name 002A E0", "an array of up to 128 items that release K lets nobody read"),
    ("name 002B E0", "an array of up to 384 bytes: no EDT has so many"),
    ("name 0145 CA, 0146 CA", "not in release C; these classes are not in K"),
    ("name 013A F0 F1 F2 F3 F4 F5 F6 F7 FC", "a maker's own properties"),
    ("codes 013A F1 F2 F3 F4 F7 FC", "a maker's own properties"),
    ("name 0280 E4", "not in the machine-readable appendix"),
    ("codes 001E B0 B1", "releases C and K have 0xE0 alone"),
    ("codes 0130 B0", "FF is no mode: a maker's"),
    ("codes 0130 C1", "pychonet takes the levels of C4 for it"),
    ("codes 0130 CC", "45 is a maker's"),
    ("signed 0130 B3 B4", "0..=50 and 0..=100, FD is undefined: the sign is never used"),
    ("codes 0155 C0 C3 C4 C7 C8", "release K says 30 and 31, pychonet 41 to 43"),
    ("codes 0155 A1", "release K begins at 31"),
    ("time 0155 C6", "release K has the hour alone"),
    ("codes 0260 E9", "45 and above are the user's to define"),
    ("codes 026B D7", "the appendix says 30 and 31, pychonet 41 and 42"),
    ("codes 026F E7", "the appendix says 41 and 40, pychonet 41 and 42"),
    ("signed 027B 84 85 E9", "unsigned in the appendix; 84 and 85 are the super class's"),
    ("codes 027C D0", "the appendix ends at 02"),
    ("codes 027E DA", "41 and 45 are not in the appendix' states of this mode"),
    ("codes 03BB B0", "the appendix says 41 and 42, pychonet 30 and 31"),
    ("codes 03CE B0", "44 is not in the appendix"),
    ("codes 03CE E0 E1 E2 E7", "the appendix says 30 and 31, pychonet 41 and 42"),
    ("signed 05FF 86", "bytes whose meaning is the maker's"),
];

#[test]
fn pychonet_s_tables_agree_or_the_difference_is_named() {
    let Some(folder) = PYTHON.installed() else { return };
    let mut command = Command::new(folder.join("venv/bin/python"));
    command.arg(folder.join("pychonet_tables.py"));
    let (mut names, mut kinds) = (0, 0);
    let mut found = BTreeSet::new();
    for line in test_peers::printed(&command).lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, eoj, epc, what] = fields[..] else { panic!("{line}") };
        *if kind == "name" { &mut names } else { &mut kinds } += 1;
        let class = class::by_name(eoj).unwrap_or_else(|| panic!("no class {eoj}"));
        let property = class.property(u8::from_str_radix(epc, 16).unwrap());
        let agrees = match property {
            None => kind != "name" && kind != "codes",
            Some(property) => has(property, kind, what),
        };
        if !agrees {
            found.insert(format!("{kind} {eoj} {epc}"));
        }
    }
    let expected: BTreeSet<String> = DIFFERENCES.iter().flat_map(|(list, _)| spelt_out(list)).collect();
    let mut report = String::new();
    for key in found.difference(&expected) {
        writeln!(report, "{key} differs, and is not named").unwrap();
    }
    for key in expected.difference(&found) {
        writeln!(report, "{key} is named, and does not differ").unwrap();
    }
    assert!(report.is_empty(), "{report}");
    println!("{names} properties and {kinds} kinds of values were compared");
    assert!(names > 1_000 && kinds > 300, "{names} {kinds}");
}

/// `codes 0260 E9 EA, 0261 E9` as the three of them.
fn spelt_out(list: &str) -> Vec<String> {
    let (kind, rest) = list.split_once(' ').unwrap();
    let classes = rest.split(", ").map(|class| class.split_once(' ').unwrap());
    classes.flat_map(|(class, epcs)| epcs.split(' ').map(move |epc| format!("{kind} {class} {epc}"))).collect()
}

/// Whether a property has all these codes, or is of this kind.
fn has(property: &PropertySpec, kind: &str, codes: &str) -> bool {
    let arms = if let Data::OneOf(arms) = property.data { arms } else { std::slice::from_ref(property.data) };
    match kind {
        "name" => true,
        "codes" => codes.split(',').all(|code| {
            let bytes = u64::from_str_radix(code, 16).unwrap().to_be_bytes();
            property.decode(&bytes[8 - property.data.sizes().0.min(8)..]).is_ok()
        }),
        "signed" => arms.iter().any(|arm| match arm {
            Data::Number(number) => matches!(number.format, Format::Int8 | Format::Int16 | Format::Int32),
            _ => false,
        }),
        "time" => arms.iter().any(|arm| matches!(arm, Data::Time(_))),
        "date" => arms.iter().any(|arm| matches!(arm, Data::Date)),
        other => panic!("{other}"),
    }
}
