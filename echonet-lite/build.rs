//! Makes the class tables and the types of properties from `classes.tsv`.

#[path = "build/facts.rs"]
mod facts;
#[path = "build/names.rs"]
mod names;
#[path = "build/tables.rs"]
mod tables;
#[path = "build/types.rs"]
mod types;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=classes.tsv");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(echonet_portable)");
    let text = fs::read_to_string("classes.tsv").expect("the package has its facts");
    let classes = facts::read(&text);
    let mut statics = tables::Statics::default();
    let mut out = String::new();
    for class in &classes {
        tables::class(&mut out, class, &mut statics);
    }
    tables::all(&mut out, &classes);
    let types = types::modules(&mut out, &classes, &mut statics);
    statics.write(&mut out);
    let entries = types.iter().map(|path| format!("entry::<class::{path}>(),\n")).collect::<String>();
    let folder = env::var_os("OUT_DIR").expect("cargo says where");
    // The second one is for the tests.
    for (name, text) in [("tables.rs", out), ("every_type.rs", format!("[{entries}]"))] {
        fs::write(Path::new(&folder).join(name), text).expect("cargo's folder can be written to");
    }
}
